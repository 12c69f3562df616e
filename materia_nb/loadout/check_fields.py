"""Checks that report problems and hints about fields, materia definitions and MCP servers (R21, R26, R28, R38)."""

from __future__ import annotations

import re
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from materia_nb.errors import close_match
from materia_nb.jsonvalue import JSON, Object, as_list, as_object, is_object
from materia_nb.loadout import models
from materia_nb.loadout.fields import Fault, FieldRow, Model, field_path, find_row, walk_objects
from materia_nb.loadout.report import (
    INVALID_CONFIG,
    INVALID_MATERIA,
    NO_EFFECT,
    UNKNOWN_FIELD,
    Findings,
    Fix,
    brief,
    do,
    removal_fix,
    safe_fix,
    suggested_fix,
)
from materia_nb.loadout.topology import BUILT_IN_SCRIPTS, materia_kind, parts_to_check
from materia_nb.loadout.vocabulary import COLOUR_NAMES, CONDITIONS, tint_of


def check_fields(
    findings: Findings, model: type[Model], raw: JSON, path: str = "", *, object_path: str | None = None
) -> None:
    """Report problems with the fields of an object and of the objects inside it.

    Args:
        findings: collects the problems.
        model: the model of the object.
        raw: the object as written.
        path: the path of the object; the paths of the fields begin with this path.
        object_path: the path for problems with the object as a whole; None uses ``path``.
    """
    try:
        model.model_validate(raw)
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            _report_error(findings, model, fault, path, path if object_path is None else object_path)


def _report_error(findings: Findings, model: type[Model], error: ErrorDetails, path: str, object_path: str) -> None:
    """Report a pydantic error as a problem with a field, or with an object or entry that has the wrong type."""
    row: FieldRow | None = None
    whole_entry = True
    for part in error["loc"]:
        if row is not None and row.container and not whole_entry:
            path, whole_entry = row.entry(path, part), True
            continue
        model = model if row is None or row.part is None else row.part
        row, whole_entry, path = find_row(model, str(part)), False, field_path(path, str(part))
    if row is None or (whole_entry and row.part is not None):
        expected = model if row is None or row.part is None else row.part
        message = f"the value is {brief(error['input'])}, not {expected.noun}"
        findings.problem(expected.code, path if row else object_path, message, f"write {expected.example}")
        return
    fault = error.get("ctx", {}).get("error")
    fault = fault if isinstance(fault, Fault) else Fault()
    message = fault.message or f"{path if whole_entry else row.field} cannot be {brief(error['input'])}"
    if error["type"] == "missing":
        message = row.missing_message or f"{row.field} is missing"
    hint = fault.hint if fault.message or whole_entry else row.advice or fault.hint
    fix = _field_fix(findings, row, error, object_path)
    findings.problem(row.code or model.code, path + fault.path, message, hint or _advice(row), fix)


def _field_fix(findings: Findings, row: FieldRow, error: ErrorDetails, owner: str) -> Fix | None:
    """Return a fix for an invalid edge condition or a missing field with a default value, and None for other errors."""
    match error["loc"]:
        case ("sockets", str(id_), "edges", int(index), "when"):
            condition = findings.closest(error["input"], CONDITIONS) or "always"
            return suggested_fix(f"Change the condition to {condition}", do("change_edge", id_, index, when=condition))
        case (str(field),) if error["type"] == "missing" and row.first_value is not None:
            id_ = owner.removeprefix("materia.")
            value = str(row.first_value)
            return suggested_fix(f"Set {field} of {id_} to {value}", do("set_materia", id_, field, value))
    return None


def _advice(row: FieldRow) -> str:
    if row.part is not None and not row.container:
        return f"write an object, such as {row.part.example}"
    article = _ARTICLES.get(row.shape.partition(" ")[0], "")
    return f"write {article}{row.shape}" + ("" if row.required else ", or remove the field")


_ARTICLES: Final = {"object": "an ", "list": "a ", "number": "a ", "whole": "a ", "percent": "a "}
"""Articles to write before descriptions of valid values, by the first word of the description."""


def check_materia(findings: Findings, name: str, raw: JSON) -> None:
    """Report problems with a materia definition."""
    path = f"materia.{name}"
    if is_object(raw) and _is_ambiguous(raw):
        message = f"the materia {name!r} has both a prompt and a command or script, but no type"
        findings.problem(INVALID_MATERIA, name, message, 'write "type": "agent" or "type": "utility"')
    utility = is_object(raw) and materia_kind(raw) == "utility"
    check_fields(findings, models.materia_model(as_object(raw)), raw, path)
    if not is_object(raw):
        return
    for field in ("parallel", "parallelPlanner"):
        if raw.get(field) is True and raw.get("generator") is not True:
            message = f"the materia {name!r} is parallel but not a generator, so it has no items for the lanes"
            advice = f'add "generator": true, or remove `{field}`'
            findings.problem(INVALID_MATERIA, f"{path}.{field}", message, advice)
    program = next(iter(as_list(raw.get("command"))), None)
    if utility and isinstance(program, str) and program.isspace():
        message = "the program, which is the first part of the command, is blank"
        findings.problem(INVALID_MATERIA, f"{path}.command[0]", message, "write the name of a program, such as python3")
    if utility and raw.get("command") is not None and raw.get("script") is not None:
        message = f"the utility {name!r} has both a command and a script"
        findings.problem(INVALID_MATERIA, f"{path}.script", message, "remove either `command` or `script`")
    if utility and raw.get("command") is None and raw.get("script") is None:
        _check_program(findings, path, name, raw.get("utility"))


def _is_ambiguous(raw: Object) -> bool:
    """Return True if a definition has a prompt and a program, but no ``type`` (R38).

    Such a definition is refused, so that a missing ``type`` never causes a program to run.
    """
    has_program = raw.get("command") is not None or raw.get("script") is not None
    return raw.get("type") is None and raw.get("prompt") is not None and has_program


def _check_program(findings: Findings, path: str, name: str, alias: JSON) -> None:
    if isinstance(alias, str) and alias in BUILT_IN_SCRIPTS:
        return
    findings.problem(
        INVALID_MATERIA,
        f"{path}.command" if alias is None else f"{path}.utility",
        f"the utility {name!r} has neither a command nor a script"
        + ("" if alias is None else f", and {brief(alias)} is not built into this engine"),
        'write "command": ["program", "argument", ...] or "script": {"kind": "shippedUtility", "name": "....mjs"}',
    )


def check_servers(findings: Findings, servers: JSON) -> None:
    """Report MCP servers that have an invalid name, or that do not have exactly one of ``command`` and ``url``."""
    for name, raw in as_object(servers).items():
        path = f"mcpServers.{name}"
        transports = [field for field in ("command", "url") if as_object(raw).get(field)]
        if not _SERVER_NAME.fullmatch(name):
            message = f"{brief(name)} is not a valid server name"
            findings.problem(INVALID_CONFIG, path, message, "use only letters, digits, _ and -, at most 40 characters")
        if is_object(raw) and len(transports) != 1:
            message = "has both a command and a url" if transports else "has neither a command nor a url"
            findings.problem(INVALID_CONFIG, path, f"the server {name!r} {message}", "write either `command` or `url`")


_SERVER_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")


# -- hints -----------------------------------------------------------------------------------

FIELD_HINTS: Final = {
    UNKNOWN_FIELD: "An unknown field, with the closest known name",
    NO_EFFECT: "A known field without effect, with the reason",
}
_MATERIA_MODELS: tuple[type[Model], ...] = (models.AgentMateria, models.UtilityMateria)


def hint_fields(findings: Findings, document: Object, loadout: str | None) -> None:
    """Add hints about fields that are unknown or have no effect.

    Args:
        findings: collects the hints.
        document: the config.
        loadout: the loadout to check with its materia; None checks all loadouts and materia.
    """
    _hint_fields(findings, models.Config, document)
    if as_object(document.get("budget")).get("stopAtLimit") is False:
        message = "`stopAtLimit: false` has no effect, since a maximum always stops the cast"
        findings.hint(NO_EFFECT, "budget.stopAtLimit", message, "remove `maxTokens` to cast without a maximum")
    names, definitions = parts_to_check(document, loadout)
    for name in names:
        findings.loadout = name
        _hint_fields(findings, models.Loadout, as_object(document["loadouts"][name]))
        findings.loadout = None
    for id_, raw in definitions.items():
        _hint_materia(findings, f"materia.{id_}", as_object(raw))


def _hint_materia(findings: Findings, path: str, raw: Object) -> None:
    _hint_fields(findings, models.materia_model(raw), raw, path)
    if raw.get("utility") is not None and (raw.get("command") or raw.get("script")) is not None:
        message = "the field `utility` has no effect, since the materia has a command or script"
        findings.hint(NO_EFFECT, f"{path}.utility", message, "remove `utility`")
    colour = raw.get("color")
    if colour is not None and tint_of(colour) is None:
        advice = f"write #rgb, #rrggbb, or a name: {', '.join(COLOUR_NAMES)}"
        findings.hint(NO_EFFECT, f"{path}.color", f"{brief(colour)} is not a known colour", advice)


def _hint_fields(findings: Findings, model: type[Model], raw: Object, path: str = "") -> None:
    """Add hints about unknown fields and fields without effect, in an object and in the objects inside it."""
    for part, owner, part_path in walk_objects(model, raw, path):
        rows = part.rows
        for field, value in owner.items():
            row = rows.get(field) or find_row(part, field)
            if row is None:
                _hint_unknown_field(findings, part, owner, field, part_path)
            elif (reason := row.ignored_reason) is not None and _has_effect(value):
                fix = removal_fix(part_path, field) if part is models.SocketFields else None
                findings.hint(NO_EFFECT, field_path(part_path, field), f"`{field}` has no effect", reason, fix)


def _hint_unknown_field(findings: Findings, model: type[Model], owner: Object, field: str, path: str) -> None:
    if field.startswith("x-"):  # reserved for other programs
        return
    source, in_socket = field_path(path, field), model is models.SocketFields
    misplacement = _misplacement(model, owner, field)
    if misplacement is not None:
        message = f"`{field}` has no effect in this object: {misplacement}"
        fix = removal_fix(path, field) if in_socket else None
        findings.hint(NO_EFFECT, source, message, "move the field, or remove it", fix)
        return
    closest = close_match(field, model.rows)
    advice, fix = "remove the field, or start its name with x- to keep it for another program", None
    if closest is not None:
        advice = f"did you mean {closest!r}?"
    if closest is not None and closest not in owner and in_socket:
        steps = do("set_socket", path, closest, owner[field]), do("set_socket", path, field, None)
        fix = safe_fix(f"Rename the field to {closest}", *steps)
    findings.hint(UNKNOWN_FIELD, source, f"{field!r} is not a field of {model.noun}", advice, fix)


def _misplacement(model: type[Model], owner: Object, field: str) -> str | None:
    """Return a clause that says where a misplaced field belongs, or None if no other object has this field."""
    if model is models.Loadout and find_row(models.Config, field):
        return "the field belongs to the top level of the config"
    if model not in (models.SocketFields, *_MATERIA_MODELS) or not any(
        find_row(kind, field) for kind in _MATERIA_MODELS
    ):
        return None
    if model is models.SocketFields:
        materia_id = owner.get("materia")
        return f"the field belongs to {f'materia.{materia_id}' if isinstance(materia_id, str) else 'the materia'}"
    has_assign = model is models.AgentMateria and "assign" in owner
    return f"this materia is {model.noun}{', so `assign` belongs to its socket' * has_assign}"


def _has_effect(value: JSON) -> bool:
    """Return True unless a value is empty or is an object with ``enabled: false``."""
    return bool(value) and not (is_object(value) and value.get("enabled") is False)
