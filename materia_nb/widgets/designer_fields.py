"""The fields of the design forms. All can be used by keyboard: text fields and buttons, no lists.

A field tells what a person did once it is done: on Enter, or when the field is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import ipywidgets as ui

from materia_nb.jsonvalue import JSON, pretty
from materia_nb.loadout import CONDITIONS, read_text
from materia_nb.widgets.base import Panel, show_html
from materia_nb.widgets.controls import heading

_NAME: Final = "72px"
_WORDS: Final = {"description_width": _NAME}
SHORT: Final = {"description_width": "initial"}


def text_field(panel: Panel, name: str, what: str, act: Callable[[str], object]) -> ui.Text:
    """Make a field for a line of text."""
    made = ui.Text(
        description=name,
        placeholder=what,
        tooltip=what,
        continuous_update=False,
        style=_WORDS,
        layout=ui.Layout(width="auto"),
    )
    made.observe(panel.guarded(lambda change: act(change["new"].strip())), names="value")
    return made


def choice_field(
    panel: Panel,
    name: str,
    what: str,
    act: Callable[[str], object] | None = None,
    *,
    width: str = "auto",
    enter: Callable[[], object] | None = None,
) -> ui.Combobox:
    """Make a field for one of several names, offered as one types; without ``act`` it is only read.

    ``enter`` is what the Enter key does in a field without ``act``: what the button beside it does.
    """
    made = ui.Combobox(
        description=name,
        placeholder=what,
        tooltip=what,
        continuous_update=act is None,
        style=_WORDS if width == "auto" else SHORT,
        layout=ui.Layout(width=width),
    )
    if act is not None:
        made.observe(panel.guarded(lambda change: act(change["new"].strip())), names="value")
    if enter is not None:
        made.on_msg(
            panel.guarded(lambda _, content, __: enter() if content.get("event") == "submit" else None)
        )
    return made


def json_field(panel: Panel, name: str, what: str, act: Callable[[JSON], object]) -> ui.Textarea:
    """Make a field for JSON, which may be typed as YAML; empty takes the value away."""
    made = ui.Textarea(
        description=name,
        placeholder=what,
        tooltip=what,
        continuous_update=False,
        rows=3,
        style=_WORDS,
        layout=ui.Layout(width="auto"),
    )

    def typed(change: Any) -> None:
        text = change["new"]
        act(read_text(text, where=name) if text.strip() else None)

    made.observe(panel.guarded(typed), names="value")
    return made


def buttons_field(
    panel: Panel, options: Iterable[tuple[str, JSON]], act: Callable[[Any], object] | None = None
) -> ui.ToggleButtons:
    """Make a row of buttons of which one is down; without ``act`` it is only read."""
    made = ui.ToggleButtons(
        options=list(options),
        value=None,
        style={"button_width": "auto"},
        layout=ui.Layout(width="auto"),
    )
    if act is not None:
        made.observe(panel.guarded(lambda change: act(change["new"])), names="value")
    return made


def condition_field(panel: Panel, act: Callable[[Any], object] | None = None) -> ui.ToggleButtons:
    """Make a choice of the three conditions."""
    made = buttons_field(panel, [(condition, condition) for condition in CONDITIONS], act)
    if act is None:
        made.value = CONDITIONS[0]
    return made


def named(name: str, field: ui.Widget) -> ui.HBox:
    """Put a name beside a row of buttons, as it stands beside other fields."""
    layout = ui.Layout(
        width=_NAME, flex="0 0 auto", display="flex", justify_content="flex-end", margin="2px 8px 2px 2px"
    )
    return ui.HBox([ui.Label(value=name, layout=layout), field], layout=ui.Layout(align_items="center"))


def title(text: str) -> ui.HTML:
    """Make the title of a group of fields."""
    made = ui.HTML()
    show_html(made, heading(text))
    return made


def json_text(value: JSON) -> str:
    """Return what a JSON field shows of a value."""
    return "" if value is None else pretty(value)


def fill(field: Any, value: JSON) -> None:
    """Put a value of the document into a field; one of the wrong type is shown as JSON or as nothing chosen."""
    if isinstance(field, ui.ToggleButtons):
        known = [option for _, option in field.options]
        wanted = value if value in known else None
    else:
        wanted = value if isinstance(value, str) else json_text(value)
    if field.value != wanted:
        field.value = wanted
