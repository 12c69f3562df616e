"""What must an output be? Finding the JSON, what a socket requires, and issues with paths."""

from materia_nb.handoff.jsontext import NotJson, agent_object, strict_json, utility_object
from materia_nb.handoff.protocol import (
    HandoffProtocol,
    Issue,
    Reading,
    Requirements,
    SimpleAnswer,
    TurnFacts,
    protocol,
    requirements,
)
from materia_nb.handoff.sparse import SparseProtocol, item_issues
from materia_nb.loadout.vocabulary import protocol_names

__all__ = [
    "HandoffProtocol",
    "Issue",
    "NotJson",
    "Reading",
    "Requirements",
    "SimpleAnswer",
    "SparseProtocol",
    "TurnFacts",
    "agent_object",
    "item_issues",
    "protocol",
    "protocol_names",
    "requirements",
    "strict_json",
    "utility_object",
]
