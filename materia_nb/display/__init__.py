"""Model to text, SVG, mermaid and escaped HTML: pure functions that know nothing of a kernel."""

from materia_nb.display.blocks import Shown
from materia_nb.display.escape import Html, html_json, html_panel, html_table, html_text, status_badge
from materia_nb.display.graph_parts import Marks
from materia_nb.display.layout import Placed, place
from materia_nb.display.mime import MimeBundle, bundle
from materia_nb.display.svg import GraphPicture, graph_svg
from materia_nb.display.text import graph_mermaid, graph_text, table

__all__ = [
    "GraphPicture",
    "Html",
    "Marks",
    "MimeBundle",
    "Placed",
    "Shown",
    "bundle",
    "graph_mermaid",
    "graph_svg",
    "graph_text",
    "html_json",
    "html_panel",
    "html_table",
    "html_text",
    "place",
    "status_badge",
    "table",
]
