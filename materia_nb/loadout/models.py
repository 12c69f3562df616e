"""Models of the config file: every field that means something here, described once.

The documentation of the format, the close matches for unknown fields and the JSON
Schema come from these models. They are views: a config is kept, checked and
written as the JSON that it is, so unknown fields, order and spelling survive (R28).
"""

from __future__ import annotations

from collections.abc import Iterator as Iterating
from dataclasses import dataclass
from typing import Any

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import CastContext
from materia_nb.loadout.model_base import Model, known
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
from materia_nb.loadout.models_materia import AgentMateria, AnyMateria, Script, UtilityMateria

__all__ = [
    "MODELS",
    "Advance",
    "AgentMateria",
    "AnyMateria",
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
    "config_schema",
    "model_fields",
]


class Budget(Model):
    """How much a cast may use."""

    max_tokens: int | None = known(
        "Tokens, input and output together, after which the cast stops.", "whole number from 0 up", "R20"
    )
    warn_at_percent: float | None = known("When to warn; left out, 75.", "percent", "R20")
    max_cost_usd: JSON = known(
        "Cost in US dollars.", "number", "R20", ignored="cost is recorded, never enforced; use maxTokens"
    )
    stop_at_limit: JSON = known("Whether the maximum stops the cast, which it always does.", "true", "R20")


class Limits(Model):
    """Bounds of a cast."""

    repair_attempts: int | None = known(
        "Repair turns after an invalid agent output; left out, 1.", "whole number from 0 up", "R19"
    )
    max_no_advance_cycles: int | None = known(
        "Cycles in which an item does not move on; left out, 3.", "whole number from 0 up", "R18"
    )
    max_edge_traversals: int | None = known(
        "Traversals, outside items, of an edge without maxTraversals; left out, 25.",
        "whole number from 1 up",
        "R18",
    )
    max_socket_visits: JSON = known(
        "Visits of a socket.", "whole number", "R21", ignored="visits are counted and shown, never enforced"
    )


class Config(Model):
    """A config file."""

    artifact_dir: str | None = known(
        "Where run directories are made, relative to the project; left out, `.pi/pi-materia`.", "path", "R29"
    )
    active_loadout: str | None = known("The loadout to cast; left out, the first.", "name of a loadout")
    loadouts: dict[str, Loadout] | None = known("Name -> loadout. Required.", "object", "R26")
    materia: dict[str, AnyMateria] | None = known("Id -> materia.", "object", "R26")
    budget: Budget | None = known("How much a cast may use.", "object", "R20")
    limits: Limits | None = known("Bounds of a cast.", "object", "R18", "R19")
    cast_context: CastContext | None = known(
        "How much of the cast agents are told, where neither socket nor loadout says; left out, `full`.",
        "full, request or none",
        "R32",
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


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One field of the config, for documentation: ``ignored`` says why it has no effect, if it has none."""

    model: str
    field: str
    shape: str
    description: str
    rules: tuple[str, ...]
    ignored: str | None


def model_fields(model: type[Model]) -> Iterating[FieldRow]:
    """Yield the fields of one model in the order in which they are documented."""
    for name, info in model.model_fields.items():
        extra = info.json_schema_extra
        facts: dict[str, Any] = extra if isinstance(extra, dict) else {}
        yield FieldRow(
            model=model.__name__,
            field=info.alias or name,
            shape=facts["x-shape"],
            description=info.description or "",
            rules=tuple(facts["x-rules"]),
            ignored=facts.get("x-ignored"),
        )


def config_fields() -> list[FieldRow]:
    """Return every field of the format, model by model, for the documentation."""
    return [row for model in MODELS for row in model_fields(model)]


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of a config, for editors."""
    return Config.model_json_schema(by_alias=True)
