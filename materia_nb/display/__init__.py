"""Rendering: blocks as text, HTML and panel JSON, and pictures of graphs; independent of any kernel."""
