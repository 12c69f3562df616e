"""What must an output be? Finding the JSON, what a socket requires, and issues with paths."""

from materia_nb.handoff.jsontext import NotJson, agent_object, strict_json, utility_object
from materia_nb.handoff.protocol import (
    Gist,
    HandoffProtocol,
    Issue,
    Reading,
    Requirements,
    Translated,
    TurnFacts,
    protocol,
    requirements,
    translate,
)
from materia_nb.handoff.sparse import SparseProtocol, item_issues
from materia_nb.loadout.vocabulary import protocol_names

__all__ = [
    "Gist",
    "HandoffProtocol",
    "Issue",
    "NotJson",
    "Reading",
    "Requirements",
    "SparseProtocol",
    "Translated",
    "TurnFacts",
    "agent_object",
    "item_issues",
    "protocol",
    "protocol_names",
    "requirements",
    "strict_json",
    "translate",
    "utility_object",
]
