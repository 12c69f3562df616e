"""Problems and hints of fields: each error of pydantic with its path, unknown and idle fields, materia (R4, R21, R25-R28, R38)."""

from __future__ import annotations

import re
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from materia_nb.errors import close_match
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import models
from materia_nb.loadout.facts import (
    BUILT_IN,
    LANE_UTILITIES,
    Object,
    as_list,
    as_object,
    is_object,
    materia_kind,
)
from materia_nb.loadout.models import (
    AgentMateria,
    Fault,
    FieldRow,
    Model,
    UtilityMateria,
    field_path,
    objects,
    row_named,
)
from materia_nb.loadout.report import (
    INVALID_CONFIG,
    INVALID_MATERIA,
    NO_EFFECT,
    UNKNOWN_FIELD,
    Findings,
    Mend,
    brief,
    do,
    mend,
    suggest,
    without_field,
)
from materia_nb.loadout.vocabulary import CONDITIONS, NAMED, tint_of


def check_fields(
    findings: Findings, model: type[Model], raw: JSON, here: str = "", *, itself: str | None = None
) -> None:
    """Note what is wrong with the fields of an object, and of the objects inside it.

    ``here`` is the path in front of its fields, and ``itself`` its own, where that is another.
    """
    try:
        model.model_validate(raw)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            _note(findings, model, one, here, here if itself is None else itself)


def _note(findings: Findings, model: type[Model], error: ErrorDetails, here: str, itself: str) -> None:
    """Say an error in the words of the field that it is about, or of the model that an entry is not."""
    row: FieldRow | None = None
    whole_entry = True
    for part in error["loc"]:
        if row is not None and row.many and not whole_entry:
            here, whole_entry = row.entry(here, part), True
            continue
        model = model if row is None or row.part is None else row.part
        row, whole_entry, here = row_named(model, str(part)), False, field_path(here, str(part))
    if row is None or (whole_entry and row.part is not None):
        wanted = model if row is None or row.part is None else row.part
        wrong = f"this is {brief(error['input'])}, not {wanted.words}"
        findings.problem(wanted.code, here if row else itself, wrong, f"write {wanted.example}")
        return
    fault = error.get("ctx", {}).get("error")
    fault = fault if isinstance(fault, Fault) else Fault()
    what = fault.what or f"{here if whole_entry else row.field} is {brief(error['input'])}"
    if error["type"] == "missing":
        what = row.missing or f"{row.field} is missing"
    hint = fault.hint if fault.what or whole_entry else row.write or fault.hint
    mended = _mend(findings, row, error, itself)
    findings.problem(row.code or model.code, here + fault.at, what, hint or _advice(row), mended)


def _mend(findings: Findings, row: FieldRow, error: ErrorDetails, owner: str) -> Mend | None:
    """Return what mends a wrong condition of an edge, or a field that is missing and has a value to begin with."""
    match error["loc"]:
        case ("sockets", str(id_), "edges", int(place), "when"):
            condition = findings.closest(error["input"], CONDITIONS) or "always"
            return suggest(f"Make it {condition}", do("change_edge", id_, place, when=condition))
        case (str(field),) if error["type"] == "missing" and row.first_value is not None:
            id_ = owner.removeprefix("materia.")
            value = str(row.first_value)
            return suggest(f"Let {field} of {id_} be {value}", do("set_materia", id_, field, value))
    return None


def _advice(row: FieldRow) -> str:
    if row.part is not None and not row.many:
        return f"write an object, such as {row.part.example}"
    return f"write {row.shape}" + ("" if row.required else ", or leave it out")


def check_materia(findings: Findings, name: str, raw: JSON) -> None:
    """Note what is wrong with the definition of the materia ``name``."""
    here = f"materia.{name}"
    if is_object(raw) and _is_ambiguous(raw):
        what = f"the materia {name!r} has both a prompt and something to run, and does not say which it is"
        findings.problem(INVALID_MATERIA, name, what, 'write "type": "agent" or "type": "utility"')
    utility = is_object(raw) and materia_kind(raw) == "utility"
    check_fields(findings, UtilityMateria if utility else AgentMateria, raw, here)
    if not is_object(raw):
        return
    for field in ("parallel", "parallelPlanner"):
        if raw.get(field) is True and raw.get("generator") is not True:
            what = f"materia {name!r} is parallel and no generator, so it has no items to hand to streams"
            advice = f'write "generator": true too, or remove {field}'
            findings.problem(INVALID_MATERIA, f"{here}.{field}", what, advice)
    program = next(iter(as_list(raw.get("command"))), None)
    if utility and isinstance(program, str) and program.isspace():
        what = "the program of the command has no name"
        findings.problem(INVALID_MATERIA, f"{here}.command[0]", what, "write one, such as python3")
    if utility and raw.get("command") is not None and raw.get("script") is not None:
        what = f"the utility {name!r} has both a command and a script, and does not say which is run"
        findings.problem(INVALID_MATERIA, f"{here}.script", what, "remove one of them")
    if utility and raw.get("command") is None and raw.get("script") is None:
        _nothing_to_run(findings, here, name, raw.get("utility"))


def _is_ambiguous(raw: Object) -> bool:
    """Whether it could be an agent as well as a utility: no program may start for want of a field (R38)."""
    runs = raw.get("command") is not None or raw.get("script") is not None
    return raw.get("type") is None and raw.get("prompt") is not None and runs


def _nothing_to_run(findings: Findings, here: str, name: str, alias: JSON) -> None:
    if isinstance(alias, str) and alias in BUILT_IN:
        return
    findings.problem(
        INVALID_MATERIA,
        f"{here}.command" if alias is None else f"{here}.utility",
        f"the utility {name!r} has nothing to run"
        + ("" if alias is None else f": {brief(alias)} is built into another engine"),
        _LANES
        if alias in LANE_UTILITIES
        else 'write "command": ["program", "argument", ...] or "script": {"kind": "shippedUtility", "name": "....py"}',
    )


_LANES: Final = "it works in workspaces of jj: place Git-Spawn, Git-Integrate or Git-Finalize, which work in worktrees of Git"


def check_servers(findings: Findings, servers: JSON) -> None:
    """Note what is wrong with the MCP servers of a config beside their fields."""
    for name, raw in as_object(servers).items():
        here, ways = f"mcpServers.{name}", [way for way in ("command", "url") if as_object(raw).get(way)]
        if not _SERVER_NAME.fullmatch(name):
            what = f"{brief(name)} cannot be the name of a server"
            findings.problem(INVALID_CONFIG, here, what, "use letters, digits, _ and -")
        if is_object(raw) and len(ways) != 1:
            what = "has both a command and a url" if ways else "has neither a command nor a url"
            findings.problem(INVALID_CONFIG, here, f"the server {name!r} {what}", "write one of them")


_SERVER_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")


# -- hints -----------------------------------------------------------------------------------

FIELD_HINTS: Final = {
    UNKNOWN_FIELD: "A field that nothing reads, with the nearest known name",
    NO_EFFECT: "A known field that has no effect here, and why",
}
_MATERIA_MODELS: tuple[type[Model], ...] = (models.AgentMateria, models.UtilityMateria)


def hint_fields(findings: Findings, document: Object, loadout: str | None) -> None:
    """Hint on the fields of a config; of one loadout and its materia when ``loadout`` names it."""
    _fields(findings, models.Config, document)
    if as_object(document.get("budget")).get("stopAtLimit") is False:
        what = "the maximum always stops a cast"
        findings.hint(NO_EFFECT, "budget.stopAtLimit", what, "leave maxTokens out for no maximum")
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
    if raw.get("utility") is not None and (raw.get("command") or raw.get("script")) is not None:
        why = "utility has no effect beside what is to be run"
        findings.hint(NO_EFFECT, f"{here}.utility", why, "remove it")
    colour = raw.get("color")
    if colour is not None and tint_of(colour) is None:
        advice = f"write #rrggbb, or a name: {', '.join(NAMED)}"
        findings.hint(NO_EFFECT, f"{here}.color", "this is not a colour that is understood", advice)


def _fields(findings: Findings, model: type[Model], raw: Object, here: str = "") -> None:
    """Hint on the fields of an object and of the objects inside it."""
    for part, one, at in objects(model, raw, here):
        for field, value in one.items():
            _field(findings, part, one, field, value, at)


def _field(findings: Findings, model: type[Model], owner: Object, field: str, value: JSON, here: str) -> None:
    row, source = row_named(model, field), field_path(here, field)
    remove = without_field(here, field) if model is models.SocketFields else None
    if row is not None:
        if row.ignored is not None and _says_something(value):
            findings.hint(NO_EFFECT, source, f"{field} has no effect", row.ignored, remove)
    elif (elsewhere := _elsewhere(model, owner, field)) is not None:
        why = f"{field} has no effect here: {elsewhere}"
        findings.hint(NO_EFFECT, source, why, "move it, or remove it", remove)
    elif not field.startswith("x-"):  # whose they are, nobody else says anything of
        near = close_match(field, model.rows)
        advice = f"did you mean {near!r}?" if near else "it is kept, and nothing reads it"
        rename = near is not None and near not in owner and model is models.SocketFields
        mended = mend(f"Call it {near}", do("rename_field", here, field, near)) if rename else None
        findings.hint(UNKNOWN_FIELD, source, f"{field!r} is not a field of {model.words}", advice, mended)


def _elsewhere(model: type[Model], owner: Object, field: str) -> str | None:
    """Say where a field belongs that stands on a loadout, on a socket, or on a materia of the other kind."""
    if model is models.Loadout and row_named(models.Config, field):
        return "it belongs to the top of the config, beside loadouts"
    if model not in (models.SocketFields, *_MATERIA_MODELS) or not any(
        row_named(one, field) for one in _MATERIA_MODELS
    ):
        return None
    if model is models.SocketFields:
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
