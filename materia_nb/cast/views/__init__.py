"""Views of casts and loadouts, which display themselves as text, SVG or escaped HTML and do not need a kernel."""
