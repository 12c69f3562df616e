"""How the canvas looks: mid-tones that can be read on light and on dark, and nothing told by colour alone."""

from __future__ import annotations

from typing import Any, Final

from materia_nb.display.svg import FONT as SVG_FONT
from materia_nb.loadout.conditions import DESCRIBED

FONT: Final = SVG_FONT.replace("'", '"')
"""The family that the layout measures, in the quotes that cytoscape takes: it refuses the whole list for one of the others."""
_INK, _PLATE, _RIM = "#1f2630", "#d3dae3", "#98a1ad"
_LOOP, _NOW, _BAD, _HEAT, _PICK = "#8f6fd1", "#e0a100", "#d5404d", "#e0662b", "#3b82f6"
_LINES: Final = {word: condition.colour for word, condition in DESCRIBED.items()}


def _rule(selector: str, **style: Any) -> dict[str, Any]:
    return {"selector": selector, "style": {name.replace("_", "-"): value for name, value in style.items()}}


_NODES: Final = [
    _rule(
        "node",
        label="",
        width="data(w)",
        height="data(h)",
        font_family=FONT,
        font_size=11.5,
        text_wrap="wrap",
        text_max_width="1000px",
        text_valign="center",
        text_halign="center",
        line_height=1.2,
        min_zoomed_font_size=3,
    ),
    _rule(
        "node.socket",
        label="data(label)",
        shape="round-rectangle",
        color="#ffffff",
        background_color="#2c5d8f",
        border_width=1.5,
        border_color=_RIM,
    ),
    _rule("node.utility", shape="cut-rectangle", background_color="#4a5560"),
    _rule("node.tinted", background_color="data(fill)", color="data(ink)"),
    _rule("node.generator", border_width=6, border_style="double", border_color=_RIM),
    _rule("node.detached", border_style="dotted", border_width=3),
    _rule(
        "node.sign",
        label="data(label)",
        shape="round-rectangle",
        color="#ffffff",
        background_color="#2b313a",
        border_width=1.5,
        border_color=_RIM,
    ),
    _rule("node.end", border_width=4, border_style="double"),
    _rule(
        "node.loop",
        label="data(label)",
        shape="round-rectangle",
        background_color=_LOOP,
        background_opacity=0.09,
        border_width=1.5,
        border_color=_LOOP,
        color=_INK,
        text_valign="top",
        text_margin_x="data(dx)",
        text_margin_y="data(dy)",
        text_background_color=_PLATE,
        text_background_opacity=1,
        text_background_padding="4px",
        text_background_shape="roundrectangle",
        text_border_color=_LOOP,
        text_border_width=1,
        text_border_opacity=0.6,
        padding=0,
        compound_sizing_wrt_labels="exclude",
    ),
    _rule("node.frame", z_compound_depth="bottom"),
    _rule("node.anchor", background_opacity=0, border_width=0, events="no", padding=0),
]

_EDGES: Final = [
    _rule(
        "edge.line",
        curve_style="segments",
        edge_distances="node-position",
        segment_weights="data(ws)",
        segment_distances="data(ds)",
        source_endpoint="data(from)",
        target_endpoint="data(to)",
        width=1.8,
        line_color=_LINES["always"],
        target_arrow_color=_LINES["always"],
        target_arrow_shape="triangle",
        arrow_scale=0.9,
        label="data(label)",
        font_family=FONT,
        font_size=10.5,
        color=_INK,
        text_margin_x="data(dx)",
        text_margin_y="data(dy)",
        text_background_color=_PLATE,
        text_background_opacity=1,
        text_background_padding="3px",
        text_background_shape="roundrectangle",
        text_border_width=1,
        text_border_opacity=1,
        text_border_color=_LINES["always"],
        min_zoomed_font_size=3,
    ),
    *(
        _rule(f"edge.{when}", line_color=colour, target_arrow_color=colour, text_border_color=colour)
        for when, colour in _LINES.items()
    ),
    _rule("edge.not_satisfied", line_style="dashed", line_dash_pattern=[3, 5], width=2.2),
    _rule(
        "edge.exit",
        line_style="dashed",
        line_dash_pattern=[11, 6],
        target_arrow_fill="hollow",
    ),
    _rule("edge.implied", line_style="dashed", line_dash_pattern=[1, 5]),
    _rule("edge.start", events="no"),
]

_MOMENT: Final = [
    *(
        _rule(
            f"node.heat-{level}",
            underlay_color=_HEAT,
            underlay_opacity=0.28,
            underlay_padding=1.5 + 2 * level,
        )
        for level in range(1, 5)
    ),
    _rule("node.current", border_width=5, border_style="solid", border_color=_NOW),
    _rule("node.waiting", border_width=5, border_style="solid", border_color=_NOW),
    _rule("node.failed", border_width=5, border_style="dashed", border_color=_BAD),
    _rule("node.end.taken", border_width=4, border_style="solid", border_color=_NOW),
    _rule(
        "edge.taken",
        width=4,
        line_color=_NOW,
        target_arrow_color=_NOW,
        text_border_color=_NOW,
        text_border_width=2.5,
        font_weight="bold",
        z_index=20,
    ),
    # Under the node: over it, its text would be pale.
    _rule("node.selected", underlay_color=_PICK, underlay_opacity=0.6, underlay_padding=8),
    _rule("node.loop.selected", border_width=4, border_color=_PICK),
    _rule("edge.selected", overlay_color=_PICK, overlay_opacity=0.35, overlay_padding=5),
    _rule(".hidden", display="none"),
]

STYLE: Final[list[dict[str, Any]]] = [*_NODES, *_EDGES, *_MOMENT]
"""The style sheet of the canvas; labels, places and sizes come from the data of each element."""

PAGE_RULES: Final = (
    ".mnb-canvas.custom-widget, .mnb-canvas.custom-widget:hover"
    "{background:var(--jp-layout-color0,#fff);border:none;resize:none;flex:none}"
    # The canvas remembers where on the page it is, and forgets it at the end of a transition: so what
    # was put in above it (an output) does not lead clicks astray.
    ".mnb-canvas.custom-widget{outline:1px solid transparent;transition:outline-color 1ms}"
    ".mnb-canvas.custom-widget:hover{outline-color:rgba(128,128,128,0.01)}"
    ".mnb-frame{border:1px solid var(--jp-border-color2,#9aa3ad66);border-radius:4px;"
    "background:var(--jp-layout-color0,#fff)}"
    ".mnb-still svg{max-width:max(100%,1200px);height:auto}"
    ".mnb-panel .widget-html-content,.mnb-panel .jupyter-widgets-html-content"
    "{line-height:1.4;align-self:stretch}"
    ".mnb-panel button:focus-visible,.mnb-panel select:focus-visible"
    "{outline:2px solid var(--jp-brand-color1,#3b82f6);outline-offset:1px}"
)
"""The canvas in the page: its own white box and hover border taken away, the theme's background in their place."""
