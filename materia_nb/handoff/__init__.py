"""What must an output be? Finding the JSON, what a socket requires, and issues with paths."""

from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.handoff.jsontext import NotJson, agent_object, strict_json, utility_object
from materia_nb.handoff.protocol import HandoffProtocol, Issue, Reading
from materia_nb.handoff.requirements import Requirements, requirements
from materia_nb.handoff.sparse import SparseProtocol, item_issues

_PROTOCOLS: dict[str, HandoffProtocol] = {"sparse": SparseProtocol()}


def protocol(name: str) -> HandoffProtocol:
    """Return the protocol of that name; raises MateriaError for an unknown one."""
    try:
        return _PROTOCOLS[name]
    except KeyError:
        raise MateriaError(
            f"There is no handoff protocol {name!r}.",
            hint=did_you_mean(name, _PROTOCOLS),
            kind="unknown_protocol",
        ) from None


__all__ = [
    "HandoffProtocol",
    "Issue",
    "NotJson",
    "Reading",
    "Requirements",
    "SparseProtocol",
    "agent_object",
    "item_issues",
    "protocol",
    "requirements",
    "strict_json",
    "utility_object",
]
