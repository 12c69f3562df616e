"""What is shown: blocks as text, HTML and JSON for a panel, and pictures of graphs; nothing here knows of a kernel."""
