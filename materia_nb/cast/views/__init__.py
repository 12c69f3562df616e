"""Views of casts and loadouts, which display themselves as text, SVG or escaped HTML. They do not need a kernel."""
