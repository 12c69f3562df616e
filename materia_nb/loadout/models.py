"""The format of a config: every field that means something here, described once; its JSON Schema for editors."""

from __future__ import annotations

from typing import Any, Final

from pydantic.json_schema import models_json_schema

from materia_nb.jsonvalue import JSON
from materia_nb.loadout import graph
from materia_nb.loadout.fields import (
    CONTEXT_SHAPE,
    Amount,
    AnyKey,
    Artifacts,
    ContextValue,
    Count,
    CountFromOne,
    FieldRow,
    FilesField,
    Flag,
    Model,
    PathText,
    Percent,
    PromptCharacters,
    Reference,
    known,
    rows_of,
)
from materia_nb.loadout.graph import CAST_CONTEXTS
from materia_nb.loadout.models_graph import (
    Advance,
    Assignment,
    Consumes,
    Edge,
    ExitRoute,
    Foreach,
    Iterator,
    LegacyExit,
    Loadout,
    Loop,
    Parallel,
    Socket,
    SocketLimits,
)
from materia_nb.loadout.models_materia import AgentMateria, Script, UtilityMateria
from materia_nb.loadout.report import INVALID_CONFIG

__all__ = [
    "MODELS",
    "AgentMateria",
    "Budget",
    "Config",
    "Consumes",
    "FieldRow",
    "Iterator",
    "Limits",
    "Loadout",
    "Socket",
    "UtilityMateria",
    "config_fields",
    "config_schema",
    "field_schemas",
]


_LIMITS: Final = graph.Limits()
_BUDGET: Final = graph.Budget()


class Budget(Model):
    """How much a cast may use."""

    words = "a budget"

    max_tokens: Count | None = known(
        "Tokens, input and output together, after which the cast stops.", "whole number from 0 up", "R20"
    )
    warn_at_percent: Percent | None = known(
        "When to warn.", "percent", "R20", default=_BUDGET.warn_at_percent
    )
    max_cost_usd: Amount | None = known(
        "Cost in US dollars, as far as it is known, after which the cast stops.",
        "number from 0 up",
        "R20",
        "R56",
    )
    stop_at_limit: JSON = known("Whether the maximum stops the cast, which it always does.", "true", "R20")


class Limits(Model):
    """Bounds of a cast."""

    words = "limits"

    repair_attempts: Count = known(
        "Repair turns after an invalid agent output.",
        "whole number from 0 up",
        "R19",
        default=_LIMITS.repair_attempts,
    )
    max_no_advance_cycles: Count = known(
        "Cycles in which an item does not move on.",
        "whole number from 0 up",
        "R18",
        default=_LIMITS.max_no_advance_cycles,
    )
    max_edge_traversals: CountFromOne = known(
        "Traversals, outside items, of an edge without maxTraversals.",
        "whole number from 1 up",
        "R18",
        default=_LIMITS.max_edge_traversals,
    )
    prompt_characters: PromptCharacters = known(
        "Characters that an agent is told at most in one prompt.",
        "whole number from 4,000 up",
        "R50",
        default=_LIMITS.prompt_characters,
    )
    max_socket_visits: JSON = known(
        "Visits of a socket.", "whole number", "R21", ignored="visits are counted and shown, never enforced"
    )


class Parallelism(Parallel):
    """How many lanes run at once where a loop does not say."""

    code = INVALID_CONFIG


class Config(Model):
    """A config file."""

    words = "a config"
    example = '{"loadouts": { ... }, "materia": { ... }}'

    schema_: JSON = known(
        "The JSON Schema that an editor checks this file with; `materia schema` prints it.",
        "path or address",
        name="$schema",
    )

    artifact_dir: PathText | None = known(
        "Where run directories are made, relative to the project; left out, `.pi/pi-materia`.",
        "path",
        "R29",
        write='write a path, such as ".pi/pi-materia"',
    )
    artifacts: Artifacts | None = known(
        "Which of the files that follow from the journal a cast writes: what sockets handed over (`outputs`), or `all`, "
        "also what each turn was told.",
        "outputs or all",
        "R63",
        default="outputs",
    )
    files: FilesField | None = known(
        "Whether the files of the project are kept as they were after each step, which takes Git: those that Git ignores left out "
        "(`kept`) or in (`kept with ignored`).",
        "as they are, kept, kept with ignored",
        default="as they are",
    )
    active_loadout: Reference | None = known("The loadout to cast; left out, the first.", "name of a loadout")
    loadouts: dict[AnyKey, JSON] = known(
        "Name -> loadout. Required.",
        "object",
        "R26",
        required=True,
        least=1,
        missing="the config has no loadouts",
        write='write {"My loadout": {"entry": ..., "sockets": ...}}',
    )
    materia: dict[AnyKey, JSON] | None = known("Id -> materia.", "object", "R26")
    budget: Budget | None = known("How much a cast may use.", "object", "R20")
    limits: Limits | None = known("Bounds of a cast.", "object", "R18", "R19")
    cast_context: ContextValue | None = known(
        "What agents are told of the cast, where neither socket, materia nor loadout says.",
        CONTEXT_SHAPE,
        "R50",
        default=next(iter(CAST_CONTEXTS)),
    )
    keep_thinking: Flag | None = known(
        "Whether what agents thought before they answered is kept with the cast.",
        "true or false",
        "R49",
        default=True,
    )
    active_loadout_id: JSON = known("Kept for the reference's editor.", "text")
    compaction: JSON = known(
        "Compaction in the reference's host.", "object", ignored="it belongs to another host"
    )
    finalization: JSON = known(
        "Finalization in the reference's host.", "object", ignored="it belongs to another host"
    )
    eventing: JSON = known(
        "Event sinks of the reference engine.", "object", ignored="it belongs to another host"
    )
    quest_default_loadout_id: JSON = known("Kept for the reference's quest board.", "text")
    parallelism: Parallelism | None = known(
        f"Lanes, where a loop does not say; left out, {graph.LANES_AT_ONCE} at once.", "object"
    )


MODELS: tuple[type[Model], ...] = (
    Config,
    Budget,
    Limits,
    Parallelism,
    Loadout,
    Socket,
    Edge,
    Advance,
    Foreach,
    Assignment,
    SocketLimits,
    Loop,
    Parallel,
    Consumes,
    Iterator,
    ExitRoute,
    LegacyExit,
    AgentMateria,
    UtilityMateria,
    Script,
)


def config_fields() -> list[FieldRow]:
    """Return every field of the format, model by model, for the documentation."""
    return [row for model in MODELS for row in rows_of(model).values()]


_MERGED: Final = (Config, Loadout, AgentMateria, UtilityMateria)
"""What a file may hold in part, since a layer below has the rest; null takes a field away (R33)."""
_IS_UTILITY: Final = {
    "anyOf": [
        {"properties": {"type": {"const": "utility"}}, "required": ["type"]},
        {"not": {"required": ["type"]}, "anyOf": [{"required": ["command"]}, {"required": ["script"]}]},
    ]
}
"""What ``materia_kind`` says."""


def field_schemas() -> dict[str, Any]:
    """Return of every model the JSON Schema of its fields one by one, as :func:`check_config` says it."""
    _, made = models_json_schema([(model, "validation") for model in MODELS])
    definitions: dict[str, Any] = made["$defs"]
    for model in MODELS:
        _in_words(model, definitions[model.__name__])
    return definitions


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of a config file, for editors: what is wrong is underlined at its field.

    It is strict: a field that it does not know is an error, unless it begins with ``x-`` (a hint of ``check``, R28). What a
    loadout, a materia or the config must have may be in a layer below (R33), so that it may be missing here. Fields
    without effect are marked as deprecated.
    """
    definitions = field_schemas()
    for model in MODELS:
        _close(model, definitions[model.__name__])
    agent, utility = ({"$ref": f"#/$defs/{model.__name__}"} for model in (AgentMateria, UtilityMateria))
    config = definitions.pop(Config.__name__)
    loadout = {"$ref": f"#/$defs/{Loadout.__name__}"}
    materia = {"if": _IS_UTILITY, "then": utility, "else": agent}
    config["properties"]["loadouts"]["additionalProperties"] = {"anyOf": [loadout, _NULL]}
    config["properties"]["materia"]["additionalProperties"] = {"if": _NULL, "else": materia}
    config["title"] = "Loadouts and materia"
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", **config, "$defs": definitions}
    pointed: dict[str, Any] = _pointed(made)
    return pointed


def _close(model: type[Model], made: dict[str, Any]) -> None:
    """Let an object have no other fields than those of its model, and say which it needs by itself."""
    rows = rows_of(model)
    if model.model_config.get("populate_by_name"):
        fields = model.model_fields.items()
        made["properties"] |= {name: made["properties"][info.alias or name] for name, info in fields}
    if model not in _MERGED:
        needed = [name for name, row in rows.items() if row.required or row.needed]
        made |= {"required": needed} if needed else {}
    made |= {"additionalProperties": False, "patternProperties": {"^x-": {}}}


def _pointed(schema: Any) -> Any:
    """Write alternatives as conditions, so that an error is told of the field inside the one that is meant.

    Of ``anyOf`` a validator says that nothing of it fits, of the whole object.
    """
    if isinstance(schema, list):
        return [_pointed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: value if key == "if" else _pointed(value) for key, value in schema.items()}
    kinds = [inner for kind in made.get("anyOf", ()) for inner in kind.get("anyOf", (kind,))]
    inside = [kind for kind in kinds if _type_of(kind) in {"object", "array"}]
    if not inside:
        return made
    del made["anyOf"]
    flat = [kind for kind in kinds if kind not in inside and kind != _NULL]
    chain: Any = inside.pop() if not flat else flat[0] if len(flat) == 1 else {"anyOf": flat}
    for kind in inside:
        chain = {"if": {"type": _type_of(kind)}, "then": kind, "else": chain}
    if _NULL in kinds:
        chain = {"if": _NULL, "else": chain}
    return {**made, "allOf": [chain]}


def _type_of(kind: dict[str, Any]) -> Any:
    return "object" if "$ref" in kind else kind.get("type")


_NULL: Final = {"type": "null"}


def _in_words(model: type[Model], made: dict[str, JSON]) -> None:
    """Say of each field what its row says, in place of what pydantic makes of it."""
    for name, row in rows_of(model).items():
        field = made["properties"][name]
        description = row.description if row.ignored is None else f"No effect: {row.ignored}."
        kept = {key: value for key, value in field.items() if key not in ("x-about", "title")}
        if kept.get("default", ...) is None:
            del kept["default"]
        if model in _MERGED:
            kept = _or_null(kept)
        idle = {} if row.ignored is None else {"deprecated": True}
        made["properties"][name] = {**kept, "description": description, **idle}
    if model in _MERGED:
        made.pop("required", None)


def _or_null(field: dict[str, JSON]) -> dict[str, JSON]:
    kinds = [kind for kind in field.get("anyOf", [field]) if kind != _NULL]
    outer = {key: field[key] for key in ("default",) if key in field}
    inner = [
        {key: value for key, value in kind.items() if key not in ("default", "description")} for kind in kinds
    ]
    return {"anyOf": [*inner, _NULL], **outer} if any(inner) else outer
