"""The format of a config: every field that means something here, described once.

What a field may hold is checked by these models; the hints on unknown and idle fields, the documentation and the
JSON Schema come from them too. A config is kept and written as the JSON that it is, so unknown fields, order and
spelling survive (R28).
"""

from __future__ import annotations

from typing import Final

from materia_nb.jsonvalue import JSON
from materia_nb.loadout import graph
from materia_nb.loadout.fields import (
    Count,
    CountFromOne,
    FieldRow,
    Key,
    Model,
    Path,
    Percent,
    Reference,
    Told,
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
    Socket,
    SocketLimits,
)
from materia_nb.loadout.models_materia import AgentMateria, Script, UtilityMateria

_LIMITS: Final = graph.Limits()
_BUDGET: Final = graph.Budget()

__all__ = [
    "MODELS",
    "Advance",
    "AgentMateria",
    "Assignment",
    "Budget",
    "Config",
    "Consumes",
    "Edge",
    "ExitRoute",
    "FieldRow",
    "Foreach",
    "Iterator",
    "LegacyExit",
    "Limits",
    "Loadout",
    "Loop",
    "Model",
    "Script",
    "Socket",
    "SocketLimits",
    "UtilityMateria",
    "config_fields",
]


class Budget(Model):
    """How much a cast may use."""

    words = "a budget"

    max_tokens: Count | None = known(
        "Tokens, input and output together, after which the cast stops.", "whole number from 0 up", "R20"
    )
    warn_at_percent: Percent | None = known(
        "When to warn.", "percent", "R20", default=_BUDGET.warn_at_percent
    )
    max_cost_usd: JSON = known(
        "Cost in US dollars.", "number", "R20", ignored="cost is recorded, never enforced; use maxTokens"
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
    max_socket_visits: JSON = known(
        "Visits of a socket.", "whole number", "R21", ignored="visits are counted and shown, never enforced"
    )


class Config(Model):
    """A config file."""

    words = "a config"
    example = '{"loadouts": { ... }, "materia": { ... }}'

    schema_: JSON = known(
        "The JSON Schema that an editor checks this file with; `python -m materia_nb.schema` prints it.",
        "path or address",
        name="$schema",
    )

    artifact_dir: Path | None = known(
        "Where run directories are made, relative to the project; left out, `.pi/pi-materia`.",
        "path",
        "R29",
        write='write a path, such as ".pi/pi-materia"',
    )
    active_loadout: Reference | None = known("The loadout to cast; left out, the first.", "name of a loadout")
    loadouts: dict[Key, JSON] = known(
        "Name -> loadout. Required.",
        "object",
        "R26",
        required=True,
        least=1,
        missing="the config has no loadouts",
        write='write {"My loadout": {"entry": ..., "sockets": ...}}',
    )
    materia: dict[Key, JSON] | None = known("Id -> materia.", "object", "R26")
    budget: Budget | None = known("How much a cast may use.", "object", "R20")
    limits: Limits | None = known("Bounds of a cast.", "object", "R18", "R19")
    cast_context: Told | None = known(
        "How much of the cast agents are told, where neither socket nor loadout says.",
        "full, request or none",
        "R32",
        default=CAST_CONTEXTS[0],
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
    parallelism: JSON = known(
        "Lanes of the reference engine.", "object", ignored="items are worked on one after another"
    )


MODELS: tuple[type[Model], ...] = (
    Config,
    Budget,
    Limits,
    Loadout,
    Socket,
    Edge,
    Advance,
    Foreach,
    Assignment,
    SocketLimits,
    Loop,
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
