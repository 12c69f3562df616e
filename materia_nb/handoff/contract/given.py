"""The envelope that an agent is given before its turn (agent contract rules, sections 1 and 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from materia_nb.handoff.contract.fields import part
from materia_nb.handoff.protocol import Task
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import told_in


@dataclass(frozen=True, slots=True)
class Assignment:
    """What an agent is told before its turn; :meth:`envelope` writes it in five sections.

    Attributes:
        goal: what the turn is for.
        acceptance_criteria: what must hold at the end.
        scope: what it may touch.
        project_knowledge: facts about the project, by contract name.
        surfaces: the parts of the project that the task concerns.
        adjacent_agents: who works on the neighbouring parts.
        primary: whether this agent leads; an assistant must report what it found to be consolidated.
        writable_sections: the contracts that it may update.
        readable_sections: the contracts that it may read.
        session_id: of the run, for tracing.
        provider: of the model, for tracing.
        contract_version: of the format, for tracing.
    """

    goal: str = ""
    acceptance_criteria: Sequence[str] = ()
    scope: str = ""
    project_knowledge: Mapping[str, JSON] = field(default_factory=dict)
    surfaces: Sequence[str] = ()
    adjacent_agents: Sequence[str] = ()
    primary: bool = True
    writable_sections: Sequence[str] = ()
    readable_sections: Sequence[str] = ()
    session_id: str = ""
    provider: str = ""
    contract_version: str = "1"

    def envelope(self) -> dict[str, JSON]:
        """Return the five sections as one JSON object."""
        several = len(self.surfaces) > 1
        consolidate = several or not self.primary
        return {
            "project_knowledge": dict(self.project_knowledge),
            "surface_routing": {
                "surfaces": list(self.surfaces),
                "multi_surface": several,
                "role": "primary" if self.primary else "assisting",
                "adjacent_agents": list(self.adjacent_agents),
            },
            "agent_contract_handoff": {
                "goal": self.goal,
                "acceptance_criteria": list(self.acceptance_criteria),
                "scope": self.scope,
                "consolidation_required": consolidate,
                "cross_check_required": consolidate,
            },
            "write_permissions": {
                "writable_sections": list(self.writable_sections),
                "readable_sections": list(self.readable_sections),
            },
            "metadata": {
                "session_id": self.session_id,
                "provider": self.provider,
                "contract_version": self.contract_version,
            },
        }


def assignment_of(task: Task) -> Assignment:
    """Read what the loadout says of a task, in either spelling; anything of the wrong type is left out."""

    def told(name: str) -> JSON:
        return told_in(task.assignment, name)

    readable = told("readable_sections")
    wanted = _texts(readable) if isinstance(readable, list) else list(task.knowledge)
    return Assignment(
        goal=_text(told("goal")) or task.goal,
        acceptance_criteria=_texts(told("acceptance_criteria")),
        scope=_text(told("scope")),
        project_knowledge={name: task.knowledge[name] for name in wanted if name in task.knowledge},
        surfaces=_texts(told("surfaces")),
        adjacent_agents=_texts(told("adjacent_agents")),
        primary=told("primary") is not False,
        writable_sections=_texts(told("writable_sections")),
        readable_sections=wanted,
        session_id=task.session or task.agent_id,
        provider=task.provider,
    )


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: JSON) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def consolidation_required(given: Mapping[str, JSON]) -> bool:
    """Whether the output must have a consolidation report; flags count by truthiness, a missing section is empty."""
    briefs = (part(given, "agent_contract_handoff"), part(given, "investigation_brief"))
    flags = [
        brief.get(name) for brief in briefs for name in ("consolidation_required", "cross_check_required")
    ]
    return any(flags) or bool(part(given, "surface_routing").get("multi_surface"))


def writable_sections(given: Mapping[str, JSON]) -> list[str] | None:
    """Return the contracts that may be updated; None when the envelope does not say."""
    names = part(given, "write_permissions").get("writable_sections")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else None
