"""A handoff in other formats than the one that it was given in, and what each of them cannot hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from materia_nb.display.bundle import Shown, bundle
from materia_nb.display.escape import clip, plain
from materia_nb.display.html import Html, html_fold, html_join, html_json, html_lines, html_panel, html_table
from materia_nb.errors import MateriaError
from materia_nb.handoff import translate
from materia_nb.handoff.wording import as_text
from materia_nb.jsonvalue import MISSING, get_path, pretty
from materia_nb.loadout.protocol_names import OWN_PROTOCOLS
from materia_nb.views import SHOWN_CHARS

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.engine.session import StepRecord


class TranslationView(Shown):
    """The handoff of a step in one protocol.

    Attributes:
        value: the object in that protocol.
        lost: the paths of the original that it cannot hold, each with what stood there.

    Raises:
        MateriaError: the step has no output (``no_output``), its output is no object (``not_an_object``),
            or there is no such protocol (``unknown_protocol``).
    """

    def __init__(self, cast: Snapshot, step: StepRecord, to: str) -> None:
        reading = step.reading
        if reading is None:
            raise MateriaError(
                f"Step {step.number} has no output that was read.", hint="step first", kind="no_output"
            )
        spoken = cast.rules.sockets[step.socket].protocol.name
        self.value, lost = translate(reading.value, frm=spoken, to=to)
        self.lost = [(path, _at(reading.value, path)) for path in lost]
        self.name = to
        self.title = f"Step {step.number}, {step.socket}: {spoken} as {to}"

    def __repr__(self) -> str:
        lines = [self.title, *(f"  lost: {path}: {text}" for path, text in self.lost)]
        if not self.lost:
            lines.append("  nothing is lost")
        return plain("\n".join([*lines, clip(pretty(self.value), SHOWN_CHARS)]))

    def _show(self) -> dict[str, Any]:
        return bundle(repr(self), html=html_panel(self.title, self.body()))

    def body(self) -> Html:
        """Return the object and what is lost as HTML, without a frame."""
        told = (
            html_table(("lost", "what it said"), self.lost) if self.lost else html_lines(["nothing is lost"])
        )
        return html_join([told, html_json(self.value, 2)])


def other_formats_html(cast: Snapshot, step: StepRecord | None) -> Html:
    """Return the handoff of a step in every protocol of ours, each to be opened; nothing without an object."""
    if step is None or step.reading is None or not isinstance(step.reading.value, dict):
        return Html()
    parts = []
    for name in OWN_PROTOCOLS:
        try:
            view = TranslationView(cast, step, name)
        except MateriaError as error:
            parts.append(html_lines([f"{name}: {error.what}"]))
            continue
        count = f" ({len(view.lost)} lost)" if view.lost else ""
        parts.append(html_fold(f"{name}{count}", view.body()))
    return html_fold("in other formats", html_join(parts))


def _at(value: Any, path: str) -> str:
    found = get_path(value, path.split(".")[1:])
    return "" if found is MISSING else clip(as_text(found), 400)
