"""Reading a contract: found, checked, held against the last one, projected, or asked for again (section 14)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from materia_nb.handoff.answer_form import form_words
from materia_nb.handoff.capabilities import Learned, Section, StatusPath, SuggestionKind, Task
from materia_nb.handoff.contract import contract_fields
from materia_nb.handoff.contract.contract_check import Checked, validate
from materia_nb.handoff.contract.contract_fields import (
    AROUND,
    FINDINGS,
    STATUSES,
    apply_updates,
    memorialize_suggestions,
    output_of,
)
from materia_nb.handoff.contract.contract_texts import (
    conclusion,
    context,
    from_gist,
    layout,
    to_gist,
    verdict,
    work_items,
)
from materia_nb.handoff.contract.contract_turn import (
    FORM_WORDS_OF_CONTRACTS,
    TAG,
    ask,
    assignment_of,
    consolidation_required,
    find,
    form,
    legal_next,
    refusal,
    remembered,
    report,
    writable_sections,
)
from materia_nb.handoff.jsontext import too_deep, without_infinities
from materia_nb.handoff.protocol import (
    SAMPLE,
    UNKNOWN,
    Action,
    Gist,
    Outcome,
    Reading,
    Refusal,
    TurnFacts,
    Verdict,
    missing_sources,
    sample_gist,
    without_backticks,
)
from materia_nb.handoff.requirements import Requirements
from materia_nb.jsonvalue import JSON, set_path

MOST_REPAIRS: Final = 2
"""How often a refused contract is asked for again before a person is called."""


class Examined(NamedTuple):
    """A reading with what was checked on the way to it; ``contract`` is None for a missing block."""

    reading: Reading
    checked: Checked
    contract: dict[str, JSON] | None


_NOBODY: Final = "a000000"
"""An agent id as contracts want it; nobody has it."""


class ContractProtocol:
    """Reads and asks for agent contracts."""

    name = "agent-contract"
    to_gist = staticmethod(to_gist)
    from_gist = staticmethod(from_gist)
    ask = staticmethod(ask)
    form = staticmethod(form)
    after_answer = "Report IN_PROGRESS and go on."
    conclusion = staticmethod(conclusion)
    layout = staticmethod(layout)

    def read(self, text: str, wanted: Requirements, facts: TurnFacts = UNKNOWN) -> Reading:
        """Read an agent's reply; text sockets accept anything."""
        if wanted.parse == "text":
            return Reading(text.strip())
        return examine(find(text), wanted, facts).reading

    def given(self, task: Task) -> dict[str, JSON]:
        """Return the five sections of the envelope that the agent is handed (section 1)."""
        return assignment_of(task).envelope()

    def learn(
        self, value: Mapping[str, JSON], given: Mapping[str, JSON], knowledge: Mapping[str, JSON]
    ) -> Learned:
        """Merge ``update_contracts`` into what is kept about the project (section 10)."""
        writable = writable_sections(given)
        done = apply_updates(knowledge, value.get("update_contracts"), writable or ())
        # Where the agent was given what it may write, the reading has already refused the rest, by the agent's id.
        refused = done.warnings if writable is None else ()
        return Learned(done.document, (*refused, *done.issues))

    def suggestions(self, value: Mapping[str, JSON]) -> list[tuple[SuggestionKind, Mapping[str, str]]]:
        """List what an agent suggests to remember (section 9)."""
        said = output_of(value)
        found: list[tuple[SuggestionKind, Mapping[str, str]]] = []
        found += [("memory", one) for one in said.memorialize_suggestions.suggestions]
        return found + [("note", {"text": note}) for note in said.memory_suggestions]

    def way(self, readings: Sequence[Reading]) -> list[Section]:
        """Show the plan statuses of a visit, without those that were refused."""
        statuses = tuple(_recorded(readings))
        if not statuses:
            return []
        way = StatusPath(statuses, legal_next(statuses[-1]), STATUSES[0], AROUND)
        return [Section("plan_status", statuses=way)]

    detours = False

    def samples(self, outcome: Outcome, count: int) -> Iterator[dict[str, JSON]]:
        """Yield contracts that may say an outcome."""
        # What is not satisfied is told as done and not of this agent's making: work in progress may be asked to go on.
        told: Outcome = "done" if outcome == "again" else outcome
        value = from_gist(sample_gist(told, count, agent=_NOBODY))
        if outcome != "again":
            yield value
        owner = "not_my_surface" if outcome == "again" else "owned_here"
        report: dict[str, JSON] = {name: [SAMPLE] for name in FINDINGS if name != "open_gaps"}
        evidence = value.get("evidence_report")
        gaps: JSON = evidence.get("open_gaps") if isinstance(evidence, dict) else None
        for open_gaps in (gaps, [SAMPLE]):
            found = {**report, "ownership_assessment": owner, "open_gaps": open_gaps}
            yield {**value, "consolidation_report": found}

    def stopping(self) -> Iterator[dict[str, JSON]]:
        """Yield contracts that need a person."""
        for value in self.samples("stuck", 0):
            yield value
            status = value.get("agent_status")
            known = status if isinstance(status, dict) else {}
            yield {**value, "agent_status": {**known, "plan_status": "NEEDS_INPUT"}}

    def written(self, value: Mapping[str, JSON]) -> str:
        """Write a contract in its fence."""
        return _fenced(value)

    def by_person(self, gist: Gist, facts: TurnFacts) -> str:
        """Write a contract that a person verified, in the name of the agent; who says no verdict is done."""
        outcome: Outcome = "done" if gist.outcome == "open" else gist.outcome
        value = from_gist(replace(gist, outcome=outcome, agent=facts.agent_id))
        value = set_path(value, ["evidence_report", "verification", "method"], "A person judged.")
        if consolidation_required(facts.given):
            nothing: dict[str, JSON] = {name: ["none"] for name in FINDINGS}
            value = {**value, "consolidation_report": {"ownership_assessment": "owned_here", **nothing}}
        return _fenced(value)


def _fenced(value: Mapping[str, JSON]) -> str:
    return f"```{TAG}\n{without_backticks(value)}\n```"


def _recorded(readings: Sequence[Reading]) -> Iterator[str]:
    for reading in readings:
        if reading.accepted and isinstance(reading.value, dict):
            status = contract_fields.plan_status(reading.value)
            # Work that says itself that it is not done is accepted, and yet its status is not recorded.
            if isinstance(reading.memory, dict) and reading.memory.get("plan_status") == status:
                yield status


def examine(contract: JSON, wanted: Requirements, facts: TurnFacts = UNKNOWN) -> Examined:
    """Check a contract that was found, None for none, and decide what happens next (section 14)."""
    found = contract if isinstance(contract, dict) and not too_deep(contract) else None
    checked = validate(found, facts)
    value = without_infinities(found)
    missing = (
        (*missing_sources(value, wanted), *form_words(found, FORM_WORDS_OF_CONTRACTS))
        if found is not None
        else ()
    )
    reading = _reading(found or {}, value, checked._replace(issues=checked.issues + missing), wanted, facts)
    said = contract_fields.agent_id(found or {})
    if reading.accepted and facts.agent_id not in ("", said):
        note = f"agent_status.agent_id is {said}, and the agent was given {facts.agent_id}"
        reading = reading._replace(notes=(*reading.notes, note))
    return Examined(reading, checked, found)


def _reading(
    contract: dict[str, JSON], value: JSON, checked: Checked, wanted: Requirements, facts: TurnFacts
) -> Reading:
    if checked.only_unfinished:
        way = Verdict(False, reason=checked.issues[0].message)
        return _accepted(contract, value, checked, way, wanted, facts.memory)
    step = report(remembered(facts.memory), checked.status)
    if checked.issues:
        late = (step.issue,) if step.issue is not None and checked.status in STATUSES else ()
        return _refused(value, checked._replace(issues=checked.issues + late), facts)
    if step.issue is not None:
        return Reading(
            value,
            "contract",
            (step.issue,),
            action=refusal(step.issue),
            warnings=checked.warnings,
            reason=f"{step.issue.message} {step.issue.fix}.",
            memory=facts.memory,
        )
    if step.warning is not None:
        checked = checked._replace(warnings=(*checked.warnings, step.warning))
    return _accepted(
        contract, value, checked, verdict(contract, checked.status), wanted, step.record.as_json()
    )


def _accepted(
    contract: dict[str, JSON],
    value: JSON,
    checked: Checked,
    way: Verdict,
    wanted: Requirements,
    memory: JSON,
) -> Reading:
    unfinished = checked.only_unfinished or checked.status == "IN_PROGRESS"
    if way.action == "route" and way.satisfied is False and unfinished and not wanted.sends_back:
        way = way._replace(satisfied=None, action="reissue")  # run the node again (section 14)
    unread = memorialize_suggestions(contract.get("memorialize_suggestions")).warnings
    made = way._replace(warnings=checked.warnings).reading(
        value,
        context=context(contract, checked.warnings),
        work_items=work_items(contract) if wanted.work_items else None,
        issues=checked.issues,
        memory=memory,
    )
    return made._replace(notes=tuple(unread))


def _refused(value: JSON, checked: Checked, facts: TurnFacts) -> Reading:
    error: Refusal = "not_json" if value is None else "contract"
    action: Action = "reissue"
    reason = "The contract is not valid."
    if facts.refused >= MOST_REPAIRS:
        action, reason = "escalate", f"The contract is still not valid after {MOST_REPAIRS} repairs."
    elif checked.tier == "repair" and checked.repair == "escalate_contract_repair":
        action, reason = "escalate", "The contract is not valid, and no agent id says who could repair it."
    return Reading(
        value,
        error,
        checked.issues,
        action=action,
        warnings=checked.warnings,
        reason=reason,
        memory=facts.memory,
    )
