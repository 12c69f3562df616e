"""Hints about fields: unknown ones with the nearest known name, and known ones without effect (R4, R21, R28)."""

from __future__ import annotations

from functools import cache

from materia_nb.errors import close_match
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import models
from materia_nb.loadout.colours import NAMED, tint_of
from materia_nb.loadout.facts import Object, as_list, as_object, is_object, materia_kind
from materia_nb.loadout.report import Findings

_MATERIA_MODELS: tuple[type[models.Model], ...] = (models.AgentMateria, models.UtilityMateria)


def hint_fields(findings: Findings, document: Object, loadout: str | None) -> None:
    """Hint on the fields of a config; of one loadout and its materia when ``loadout`` names it."""
    _fields(findings, "", document, models.Config)
    for field, model in (("budget", models.Budget), ("limits", models.Limits)):
        _fields(findings, field, document.get(field), model)
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
            _loadout(findings, as_object(raw), used)
            findings.loadout = None
    for id_, raw in as_object(document.get("materia")).items():
        if loadout is None or id_ in used:
            _materia(findings, f"materia.{id_}", as_object(raw))


def _loadout(findings: Findings, raw: Object, used: set[JSON]) -> None:
    _fields(findings, "", raw, models.Loadout)
    for id_, socket in as_object(raw.get("sockets")).items():
        if not is_object(socket):
            continue
        named = socket.get("materia")
        if isinstance(named, str):
            used.add(named)
        elsewhere = (
            f"it belongs to materia.{named}" if isinstance(named, str) else "it belongs to the materia"
        )
        _fields(findings, id_, socket, models.Socket, _MATERIA_MODELS, elsewhere)
        _fields(findings, f"{id_}.advance", socket.get("advance"), models.Advance)
        _fields(findings, f"{id_}.foreach", socket.get("foreach"), models.Foreach)
        _fields(findings, f"{id_}.limits", socket.get("limits"), models.SocketLimits)
        _fields(findings, f"{id_}.assignment", socket.get("assignment"), models.Assignment)
        for place, edge in enumerate(as_list(socket.get("edges"))):
            _fields(findings, f"{id_}.edges[{place}]", edge, models.Edge)
    for id_, loop in as_object(raw.get("loops")).items():
        here = f"loops.{id_}"
        if not is_object(loop):
            continue
        _fields(findings, here, loop, models.Loop)
        _fields(findings, f"{here}.consumes", loop.get("consumes"), models.Consumes)
        _fields(findings, f"{here}.iterator", loop.get("iterator"), models.Iterator)
        _fields(findings, f"{here}.exit", loop.get("exit"), models.LegacyExit)
        for place, route in enumerate(as_list(loop.get("exits"))):
            _fields(findings, f"{here}.exits[{place}]", route, models.ExitRoute)


def _materia(findings: Findings, here: str, raw: Object) -> None:
    kind = materia_kind(raw)
    own, other = _MATERIA_MODELS if kind == "agent" else _MATERIA_MODELS[::-1]
    article = "an agent" if kind == "agent" else "a utility"
    elsewhere = f"this materia is {article}"
    if kind == "agent" and "assign" in raw:
        elsewhere += "; assign of an agent goes on its socket"
    _fields(findings, here, raw, own, (other,), elsewhere)
    _fields(findings, f"{here}.script", raw.get("script"), models.Script)
    colour = raw.get("color")
    if colour is not None and tint_of(colour) is None:
        advice = f"write #rrggbb, or a name: {', '.join(NAMED)}"
        findings.hint("no-effect", f"{here}.color", "this is no colour that is understood", advice)


def _fields(
    findings: Findings,
    here: str,
    raw: JSON,
    model: type[models.Model],
    others: tuple[type[models.Model], ...] = (),
    elsewhere: str = "",
) -> None:
    """Hint on the fields of one object; ``others`` are models whose fields were meant ``elsewhere``."""
    if not is_object(raw):
        return
    own = _known(model)
    for field, value in raw.items():
        source = f"{here}.{field}" if here else str(field)
        if field in own:
            why = own[field]
            if why is not None and _says_something(value):
                findings.hint("no-effect", source, f"{field} has no effect", why)
        elif any(field in _known(other) for other in others):
            findings.hint(
                "no-effect", source, f"{field} has no effect here: {elsewhere}", "move it, or remove it"
            )
        else:
            near = close_match(field, own)
            advice = f"did you mean {near!r}?" if near else "it is kept, and nothing reads it"
            findings.hint("unknown-field", source, f"{field!r} is not a field of {_WORDS[model]}", advice)


def _says_something(value: JSON) -> bool:
    """Whether a field asks for anything; switched off and empty ones do not."""
    return bool(value) and not (is_object(value) and value.get("enabled") is False)


@cache
def _known(model: type[models.Model]) -> dict[str, str | None]:
    """Return the fields of a model, each with why it has no effect, if it has none."""
    known = {row.field: row.ignored for row in models.model_fields(model)}
    if model is models.Assignment:
        known |= dict.fromkeys(
            model.model_fields
        )  # a contract spells them acceptance_criteria, and so may a config
    return known


_WORDS: dict[type[models.Model], str] = {
    models.Config: "a config",
    models.Budget: "a budget",
    models.Limits: "limits",
    models.Loadout: "a loadout",
    models.Socket: "a socket",
    models.Edge: "an edge",
    models.Advance: "an advance",
    models.Foreach: "a foreach",
    models.Assignment: "an assignment",
    models.SocketLimits: "the limits of a socket",
    models.Loop: "a loop",
    models.Consumes: "consumes",
    models.Iterator: "an iterator",
    models.ExitRoute: "an exit route",
    models.LegacyExit: "an exit",
    models.AgentMateria: "an agent",
    models.UtilityMateria: "a utility",
    models.Script: "a script",
}
