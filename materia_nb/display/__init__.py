"""Rendering of blocks as text, HTML and JSON for panels, and of graphs as pictures. No kernel is needed."""
