"""Hints about fields: unknown ones with the nearest known name, and known ones without effect (R4, R21, R28)."""

from __future__ import annotations

from materia_nb.errors import close_match
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import models
from materia_nb.loadout.facts import Object, as_object, is_object, materia_kind
from materia_nb.loadout.fields import Model, objects, row_named, rows_of, step
from materia_nb.loadout.report import Findings
from materia_nb.loadout.vocabulary import NAMED, tint_of

_MATERIA_MODELS: tuple[type[Model], ...] = (models.AgentMateria, models.UtilityMateria)


def hint_fields(findings: Findings, document: Object, loadout: str | None) -> None:
    """Hint on the fields of a config; of one loadout and its materia when ``loadout`` names it."""
    _fields(findings, models.Config, document)
    if as_object(document.get("budget")).get("stopAtLimit") is False:
        findings.hint(
            "no-effect",
            "budget.stopAtLimit",
            "the maximum always stops a cast",
            "leave maxTokens out for no maximum",
        )
    used: set[JSON] = set()
    for name, raw in as_object(document.get("loadouts")).items():
        if loadout is None or name == loadout:
            findings.loadout = name
            _fields(findings, models.Loadout, as_object(raw))
            findings.loadout = None
            sockets = as_object(as_object(raw).get("sockets")).values()
            named = [as_object(socket).get("materia") for socket in sockets]
            used.update(id_ for id_ in named if isinstance(id_, str))
    for id_, raw in as_object(document.get("materia")).items():
        if loadout is None or id_ in used:
            _materia(findings, f"materia.{id_}", as_object(raw))


def _materia(findings: Findings, here: str, raw: Object) -> None:
    own = _MATERIA_MODELS[materia_kind(raw) == "utility"]
    _fields(findings, own, raw, here)
    colour = raw.get("color")
    if colour is not None and tint_of(colour) is None:
        advice = f"write #rrggbb, or a name: {', '.join(NAMED)}"
        findings.hint("no-effect", f"{here}.color", "this is no colour that is understood", advice)


def _fields(findings: Findings, model: type[Model], raw: Object, here: str = "") -> None:
    """Hint on the fields of an object and of the objects inside it."""
    for part, one, at in objects(model, raw, here):
        for field, value in one.items():
            _field(findings, part, one, field, value, step(at, field))


def _field(
    findings: Findings, model: type[Model], owner: Object, field: str, value: JSON, source: str
) -> None:
    row = row_named(model, field)
    if row is not None:
        if row.ignored is not None and _says_something(value):
            findings.hint("no-effect", source, f"{field} has no effect", row.ignored)
    elif (elsewhere := _elsewhere(model, owner, field)) is not None:
        findings.hint(
            "no-effect", source, f"{field} has no effect here: {elsewhere}", "move it, or remove it"
        )
    else:
        near = close_match(field, rows_of(model))
        advice = f"did you mean {near!r}?" if near else "it is kept, and nothing reads it"
        findings.hint("unknown-field", source, f"{field!r} is not a field of {model.words}", advice)


def _elsewhere(model: type[Model], owner: Object, field: str) -> str | None:
    """Say where a field of a materia belongs that stands on a socket, or on a materia of the other kind."""
    if model not in (models.Socket, *_MATERIA_MODELS) or not any(
        row_named(one, field) for one in _MATERIA_MODELS
    ):
        return None
    if model is models.Socket:
        named = owner.get("materia")
        return f"it belongs to materia.{named}" if isinstance(named, str) else "it belongs to the materia"
    more = (
        "; assign of an agent goes on its socket"
        if model is models.AgentMateria and "assign" in owner
        else ""
    )
    return f"this materia is {model.words}{more}"


def _says_something(value: JSON) -> bool:
    """Whether a field asks for anything; switched off and empty ones do not."""
    return bool(value) and not (is_object(value) and value.get("enabled") is False)
