"""Model to text, SVG, mermaid and escaped HTML: pure functions that know nothing of a kernel."""
