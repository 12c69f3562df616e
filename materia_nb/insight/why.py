"""Explanations of routing decisions, verdicts on guesses, and the suggestions and final reports of agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from materia_nb.engine.conversation import cut_to
from materia_nb.engine.entering import enter
from materia_nb.engine.routing import AdvanceFact, Choice, Decision, Look, Passed, awaited_failures, choose_edge
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.session import StepRecord
from materia_nb.engine.state import CastState, Failure
from materia_nb.errors import MateriaError, counted, did_you_mean, plain
from materia_nb.handoff.base import AgentReport, HandoffProtocol, SuggestionKind
from materia_nb.jsonvalue import JSON, compact
from materia_nb.loadout.graph import END, Graph
from materia_nb.loadout.vocabulary import YES_OR_NO, Result, condition_spec
from materia_nb.registry import mimebundle_from_view

THINKING_HEADING: Final = "The agent's thinking"
"""The heading above an agent's thinking, which only people see (R49)."""

_MAX_THINKING_CHARS: Final = 600

EDGE_COLUMNS = ("kind", "when", "to", "taken", "reason", "used")


@dataclass(frozen=True, slots=True)
class Why:
    """The explanation of one step.

    Attributes:
        title: a description of the explained visit.
        lines: the explanation as sentences, in the order of the decisions.
        rows: every checked edge and exit, in order; see :data:`EDGE_COLUMNS`.
        decision: the explained record; None while the socket has no output yet.
        thinking: the agent's thinking before its answer; empty if unknown (R49).
    """

    title: str
    lines: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    decision: Decision | None
    thinking: str = ""

    def __str__(self) -> str:
        thinking = cut_to(" ".join(self.thinking.split()), _MAX_THINKING_CHARS)
        lines = [*self.lines, f"{THINKING_HEADING}: {thinking}"] if thinking else self.lines
        return plain("\n".join([self.title, *(f"  {line}" for line in lines)]))

    __repr__ = __str__
    _repr_mimebundle_ = mimebundle_from_view


def explain(
    rules: Rules,
    title: str,
    decision: Decision | None,
    after: CastState,
    entry: Decision | None = None,
    *,
    onward: Decision | None = None,
    pinned: str | None = None,
) -> Why:
    """Explain a routing decision.

    Args:
        rules: the rules of the cast.
        title: a description of the visit.
        decision: the step's decision; None while its socket has no output yet.
        after: the state after the step.
        entry: the decision on entering the socket, if empty loops were skipped.
        onward: the decision on entering the next socket, if empty loops were skipped there.
        pinned: the name of the pin that answered; None if no pin answered (R40).
    """
    lines: list[str] = []
    if entry is not None and entry.skipped_sockets:
        lines.append(_explain_skips(entry))
    if decision is None:
        lines.append(f"It is {after.status}: no output has been decided on yet.")
        return Why(title, tuple(lines), (), None)
    if pinned is not None:
        lines.append(_explain_pin(rules, decision, pinned))
    lines += [f"Output: {note}." for note in decision.reading.notes]
    if decision.issues:
        is_refused = not decision.reading.accepted
        lines.append("The output was refused:" if is_refused else "The output says that it is not done:")
        lines += [f"- {issue.line}" for issue in decision.issues]
    lines += [f"Note: {warning.message}" for warning in decision.warnings]
    lines += [
        f"state.{assignment.target} was not changed: {assignment.source} does not exist."
        for assignment in decision.assigned
        if not assignment.found
    ]
    if decision.advance is not None:
        lines.append(_explain_advance(decision.advance, decision))
    if decision.by in ("failure", "budget") and after.failure is None and after.status == "waiting":
        lines.append(f"{decision.socket} was cut short and is asked again.")
    else:
        if decision.result.silent and decision.failure is None:
            lines.append(f"{decision.result.sentence.capitalize()}: {decision.reading.reason}")
        lines += _explain_route(rules, decision)
    if onward is not None and onward.skipped_sockets:
        lines.append(_explain_skips(onward))
    if after.failure is not None and decision.failure is None:
        lines += _explain_failure(after.failure)  # the next socket could not be entered
    rows = tuple(_edge_row(look, decision) for look in _all_looks(rules, decision))
    return Why(title, tuple(lines), rows, decision)


def _explain_pin(rules: Rules, decision: Decision, pinned: str) -> str:
    is_utility = decision.socket is not None and rules.sockets[decision.socket].socket.is_utility
    effect = "no process was started" if is_utility else "its agent was not asked"
    return f"It was pinned to {pinned}; {effect}."


def _explain_skips(entry: Decision) -> str:
    return " ".join(_explain_skip(skip) for skip in entry.passed)


def _explain_skip(skip: Passed) -> str:
    reason = "its list is empty" if skip.empty else "no item of its list is left"
    skipped = skip.socket if skip.loop is None else f"{skip.socket} of loop {skip.loop}"
    if skip.route is not None:
        outcome = f"the always exit of the loop led to {skip.target}"
    elif skip.target != END:
        outcome = f"so the detour was over, and it went back to {skip.target}"
    else:
        outcome = "the loop has no always exit, so the cast ended there successfully"
    return f"{skipped} was skipped: {reason}; {outcome}."


def _explain_advance(fact: AdvanceFact, decision: Decision) -> str:
    name = "The derived advance" if fact.derived else "advance"
    if not fact.moved:
        return f"{name} did not move: it needs {fact.when}, and {decision.result.sentence}."
    left = f"{fact.length - fact.after} of {fact.length} are left"
    if fact.exhausted:
        left = "the list is exhausted"
    return f"{name} moved the cursor {fact.cursor} from {fact.before} to {fact.after} ({fact.when}); {left}."


_EXPLANATIONS: Final = {
    "repair": "{socket} is asked again, in the same visit.",
    "draft": "It was a draft: refine it, or accept it.",
    "finalize": "The work is done; {socket} is asked to hand it over, in the same conversation.",
    "reissue": "{socket} is asked to continue, in the same visit. {reason}",
    "pause": "The output asks for a person: {reason}",
    "escalate": "A person must decide: {reason}",
    "detour": "The output asks for {target} to run first: {reason}",
    "return": "The detour is over; it goes back to {target}.",
    "person": "A person chose to continue with {target}.",
}
"""Explanations of decisions that do not come from an edge or exit."""


def _explain_route(rules: Rules, decision: Decision) -> list[str]:
    by, target, chosen = decision.by, decision.target, decision.chosen
    if decision.failure is not None and by in ("failure", "budget"):
        return _explain_failure(decision.failure)
    if by == "recording" or by in _EXPLANATIONS:
        text = _explain_recording(target) if by == "recording" else _EXPLANATIONS[by]
        return [text.format(socket=decision.socket, target=target, reason=decision.reading.reason)]
    if by == "implied end":
        if decision.looks:
            end = f"Nothing matches ({decision.result.sentence}), so the cast ends successfully."
            return [end, *_explain_alternatives(rules, decision)]
        is_exhausted = decision.advance is not None and decision.advance.exhausted
        reason = "loop has no exit route from here" if is_exhausted else "socket has no edges"
        return [f"The {reason}, so the cast ends successfully."]
    if chosen is None:
        return [f"It continues with {target}."]
    name = "The exit route" if chosen.place is None else f"Edge {chosen.place + 1}"
    lines = [f"{name} to {chosen.to} was taken: {chosen.reason(decision.result)}."]
    if chosen.limit is not None and chosen.used is not None:
        scope = f"for {decision.item_key}" if decision.item_key is not None else "here"
        lines.append(f"It has been used {chosen.used + 1} of {counted(chosen.limit, 'time')} {scope}.")
    return lines + _explain_alternatives(rules, decision)


def _explain_recording(target: str | None) -> str:
    if target is None:
        return "The recording has its output, and ends before the next socket."
    onward = "the cast ended" if target == END else f"it continued with {target}"
    return f"The recording says that {onward}. Its edges are not evaluated, because the loadout cannot be cast here."


def _explain_failure(failure: Failure) -> list[str]:
    lines = [f"The cast stopped: {failure.message}"]
    return [*lines, f"To continue: {failure.hint}."] if failure.hint else lines


def _explain_alternatives(rules: Rules, decision: Decision) -> list[str]:
    """Return a sentence for each result that would have led to a different target."""
    if decision.socket is None:
        return []
    socket_rules = rules.sockets[decision.socket]
    is_unknown = decision.advance is None and socket_rules.socket.advance is not None
    verdicts = () if socket_rules.wanted.parse == "text" or is_unknown else YES_OR_NO
    lines = []
    for result in (*verdicts, *dict.fromkeys(awaited_failures(socket_rules).values())):
        choice = None if result is decision.result else _choice_for(socket_rules, decision.advance, result)
        if choice is not None and choice.target != decision.target:
            lines.append(f"With {result.noun} it would have gone to {choice.target}.")
    return lines


def _choice_for(socket_rules: SocketRules, fact: AdvanceFact | None, result: Result) -> Choice | None:
    is_last = fact is not None and fact.before + 1 >= fact.length
    return choose_edge(
        socket_rules, result, exhausted=fact is not None and is_last and condition_spec(fact.when).holds(result)
    )


def _all_looks(rules: Rules, decision: Decision) -> tuple[Look, ...]:
    """Return the decision's records of checked edges, followed by records for the edges that were not checked."""
    checked = {look.place for look in decision.looks if look.kind == "edge"}
    if not checked or decision.socket is None:
        return decision.looks
    edges = rules.graph.sockets[decision.socket].edges
    unchecked = (edge for edge in edges if edge.place not in checked)
    return (*decision.looks, *(Look("edge", edge.when, edge.to, False, edge.place) for edge in unchecked))


def _edge_row(look: Look, decision: Decision) -> tuple[str, ...]:
    is_checked = look in decision.looks
    used = "" if look.limit is None else f"{(look.used or 0) + look.matched} of {look.limit}"
    reason = look.reason(decision.result) if is_checked else "not looked at: an earlier one matched"
    kind = look.route or f"edge {0 if look.place is None else look.place + 1}"
    return (kind, look.when, look.to, "yes" if look.matched else "no", reason, used)


# -- guesses ---------------------------------------------------------------------------------

STOP: Final = "stop"
"""The guess that the cast stops: it fails, or is held until a person decides."""

_HELD: Final = frozenset({"pause", "escalate"})
_ROUTED: Final = frozenset({"edge", "exit", "implied end"})


@dataclass(frozen=True, slots=True)
class Prediction:
    """A guess about the next target, with the outcome and the verdict.

    Attributes:
        guess: the expected target: a socket, ``end`` or ``stop``.
        outcome: the actual target in the same form.
        title: a description of the visit.
        lines: the verdict on the guess and the reasons, as sentences.
        retry_lines: the verdict for a person who may guess again: the reasons against the guess, without the outcome.
    """

    guess: str
    outcome: str
    title: str
    lines: tuple[str, ...]
    retry_lines: tuple[str, ...]

    @property
    def right(self) -> bool:
        """True if the guess was right."""
        return self.guess == self.outcome

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"  {line}" for line in self.lines)])


def possible_guesses(rules: Rules) -> tuple[str, ...]:
    """Return every socket, ``end`` and ``stop``."""
    return tuple(dict.fromkeys([*rules.graph.sockets, END, STOP]))


def parse_guess(rules: Rules, guess: str) -> str:
    """Return a guess in the spelling of the loadout. The guess may be in any case, or name the materia of a socket.

    Raises:
        MateriaError: the socket does not exist (``unknown_socket``), or the materia is in several sockets
            (``ambiguous``).
    """
    known, target = possible_guesses(rules), resolve_target(rules.graph, guess)
    if target in known:
        return target
    hint = f"{did_you_mean(guess, known)} (a socket of this loadout, end, or stop)"
    raise MateriaError(f"A step cannot lead to {guess!r}.", hint=hint, kind="unknown_socket")


def resolve_target(graph: Graph, word: str) -> str:
    """Resolve a word to a socket, ``end`` or ``stop``; ignore case, and accept the materia of a socket.

    An unknown word is returned unchanged.

    Raises:
        MateriaError: the word names a materia that is in several sockets (``ambiguous``).
    """
    folded, targets = word.strip().casefold(), (*graph.sockets, END, STOP)
    if word in targets:
        return word
    if matches := [target for target in targets if target.casefold() == folded]:
        return matches[0] if len(matches) == 1 else word
    matches = [socket.id for socket in graph.sockets.values() if socket.materia.id.casefold() == folded]
    if len(matches) > 1:
        raise MateriaError(
            f"{word.strip()} is the materia of {' and '.join(matches)}.", hint="name the socket", kind="ambiguous"
        )
    return matches[0] if matches else word


def next_target(rules: Rules, state: CastState) -> str:
    """Return the socket that runs next, ``end`` or ``stop``; loops without items are skipped (R16)."""
    return _enter_next(rules, state)[0]


def judge_guess(
    rules: Rules, guess: str, title: str, decision: Decision, after: CastState, entry: Decision | None = None
) -> Prediction:
    """Compare a guess with the decision of a step.

    Args:
        rules: the rules of the cast.
        guess: one of :func:`possible_guesses`.
        title: a description of the visit.
        decision: the step's decision.
        after: the state after the step.
        entry: the decision on entering the socket, if empty loops were skipped.
    """
    outcome, onward = _outcome(rules, decision, after)
    lines = [_verdict(guess, outcome), *explain(rules, title, decision, after, entry).lines]
    if onward is not None and onward.failure is not None:
        lines += _explain_failure(onward.failure)[:1]
    if onward is not None and onward.skipped_sockets:
        names = ", ".join(onward.skipped_sockets)
        lines.append(f"Skipped because no item is left: {names}. The loop is left towards {outcome}.")
    if guess == outcome:
        return Prediction(guess, outcome, title, tuple(filter(None, lines)), tuple(lines[:1]))
    against = _reason_against(rules, decision, outcome, guess)
    retry_lines = (f"Not this time. Your guess: {_describe_target(guess)}.", against)
    return Prediction(guess, outcome, title, tuple(filter(None, [*lines, against])), tuple(filter(None, retry_lines)))


def _outcome(rules: Rules, decision: Decision, after: CastState) -> tuple[str, Decision | None]:
    """Return the target of a step, and the decision made on entering the next socket."""
    if after.failure is not None or decision.failure is not None or decision.by in _HELD:
        return STOP, None
    if after.status == "ready":
        return _enter_next(rules, after)
    return decision.target or END, None  # the same socket, if it owes another turn of its visit


def _enter_next(rules: Rules, state: CastState) -> tuple[str, Decision | None]:
    decision = None
    if state.status == "ready":
        step = enter(rules, state)
        state, decision = step.state, step.decision
    if state.failure is not None:
        return STOP, decision
    return (state.at.socket if state.status != "complete" and state.at else END), decision


def _verdict(guess: str, outcome: str) -> str:
    if guess == outcome:
        return f"Right: {_describe_target(outcome)}."
    return f"Not this time. Your guess: {_describe_target(guess)}. What happened: {_describe_target(outcome)}."


def _describe_target(target: str) -> str:
    return {END: "the cast comes to its end", STOP: "the cast stops here"}.get(target, f"it goes to {target}")


def _reason_against(rules: Rules, decision: Decision, outcome: str, guess: str) -> str:
    """Return the recorded reason why the guess is wrong; empty if the explanation already contains the reason."""
    if guess == STOP:
        return "Nothing failed, no limit was reached, and no person is needed."
    if outcome == STOP or guess == decision.target or decision.by not in _ROUTED or decision.socket is None:
        return ""
    for look in decision.looks:
        if look.to == guess:
            return f"The {look.kind} to {guess} was checked, but {look.reason(decision.result)}."
    return _reason_unchecked(rules.sockets[decision.socket], decision, guess)


def _reason_unchecked(socket_rules: SocketRules, decision: Decision, guess: str) -> str:
    if any(edge.to == guess for edge in socket_rules.socket.edges):
        if decision.advance is not None and decision.advance.exhausted:
            return f"There is an edge to {guess}, but the list is exhausted, and then only exits count."
        return f"There is an edge to {guess}, but an earlier one matched."
    if any(route.target == guess for route in socket_rules.exits):
        return f"There is an exit to {guess}, but exits count only in a step that exhausts the list."
    return f"No edge and no exit leads from {decision.socket} to {guess}."


_SECTION: Final = "memory"
"""Section of the project's document with the suggestions that a person kept."""


class Suggestion(NamedTuple):
    """A memory or note that an agent suggests keeping.

    Attributes:
        number: the number of the suggestion in ``Cast.suggestions``, from 1.
        step: the step whose output contains the suggestion.
        kind: ``memory`` with description, body and more fields, or ``note`` with a text.
        fields: the content of the suggestion; all values are texts.
        is_kept: True if a person has kept the suggestion.
    """

    number: int
    step: int
    kind: SuggestionKind
    fields: Mapping[str, str]
    is_kept: bool

    @property
    def entry(self) -> dict[str, JSON]:
        """The suggestion as an entry for the project's document."""
        return {"kind": self.kind, **self.fields}


def suggestions_of(rules: Rules, steps: Sequence[StepRecord], kept_entries: Sequence[JSON]) -> list[Suggestion]:
    """Return the suggestions of the accepted outputs in order, without duplicates."""
    suggestions: dict[str, Suggestion] = {}
    for step in steps:
        protocol = rules.sockets[step.socket].protocol
        for value in _accepted_values(step):
            for kind, fields in protocol.suggestions(value):
                new = Suggestion(len(suggestions) + 1, step.number, kind, fields, is_kept=False)
                suggestions.setdefault(compact(new.entry), new._replace(is_kept=new.entry in kept_entries))
    return list(suggestions.values())


def suggestion_at(suggestions: Sequence[Suggestion], number: int) -> Suggestion:
    """Return a suggestion by its number; raise MateriaError (``no_suggestion``) if the number is invalid."""
    if type(number) is not int or not 1 <= number <= len(suggestions):
        raise MateriaError(
            f"Suggestion {number!r} does not exist; the cast has {counted(len(suggestions), 'suggestion')}.",
            hint="list the suggestions with edit remember; they are numbered from 1",
            kind="no_suggestion",
        )
    return suggestions[number - 1]


def with_memory_entry(document: Mapping[str, JSON], entry: JSON) -> dict[str, JSON]:
    """Return the project's document with an entry at the end of its section; an existing entry is not repeated."""
    section = document.get(_SECTION, [])
    if not isinstance(section, list):
        raise MateriaError(
            f"The section {_SECTION!r} of the project's document is not a list.",
            hint="fix the section in the document, or rename it",
            kind="bad_context",
        )
    return {**document, _SECTION: section if entry in section else [*section, entry]}


def conclusion_lines(rules: Rules, steps: Sequence[StepRecord]) -> list[str]:
    """Return the lines of the final report of a cast, from the last output of each agent.

    An agent that worked on several items reports on each item.
    """
    last_steps = {(step.socket, step.item_key): step for step in steps}
    reports: dict[str, tuple[HandoffProtocol, list[AgentReport]]] = {}
    for step in last_steps.values():
        socket_rules = rules.sockets[step.socket]
        protocol, values = socket_rules.protocol, list(_accepted_values(step))
        if values:
            author = socket_rules.socket.materia.label + (f", {step.item_key}" if step.item_key else "")
            _, protocol_reports = reports.setdefault(protocol.name, (protocol, []))
            protocol_reports.append(AgentReport(author, values[-1]))
    return [line for protocol, protocol_reports in reports.values() for line in protocol.conclusion(protocol_reports)]


def _accepted_values(step: StepRecord) -> Iterator[Mapping[str, JSON]]:
    for turn in step.turns:
        if turn.reading is not None and turn.reading.accepted and isinstance(turn.reading.value, dict):
            yield turn.reading.value
