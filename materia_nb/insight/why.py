"""Explanations of routing decisions, evaluation of predictions, and the suggestions and final reports of agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from materia_nb.engine.conversation import truncate
from materia_nb.engine.entering import enter
from materia_nb.engine.routing import (
    AdvanceRecord,
    Choice,
    Decision,
    RouteCheck,
    SkippedSocket,
    choose_edge,
    handled_failures,
    short_label,
)
from materia_nb.engine.rules import Rules, SocketRules
from materia_nb.engine.session import StepRecord
from materia_nb.engine.state import CastState, Failure
from materia_nb.errors import MateriaError, counted, did_you_mean, plain
from materia_nb.handoff.base import AgentReport, HandoffProtocol, SuggestionKind
from materia_nb.jsonvalue import JSON, compact
from materia_nb.loadout.graph import END, Graph
from materia_nb.loadout.vocabulary import VERDICTS, Result, condition_spec
from materia_nb.registry import mimebundle_from_view

THINKING_HEADING: Final = "The agent's thinking"
"""Heading of an agent's thinking in explanations. Thinking is shown only to people, never to agents (R49)."""

_MAX_THINKING_CHARS: Final = 600
_MAX_REASON_CHARS: Final = 400

EDGE_COLUMNS = ("kind", "when", "to", "taken", "reason", "used")


@dataclass(frozen=True, slots=True)
class Why:
    """The explanation of the route that one step took.

    Attributes:
        title: a description of the visit, such as its socket and work item.
        lines: the sentences of the explanation, in the order of the decisions.
        rows: all edges and exits that were checked, in order; see :data:`EDGE_COLUMNS`.
        thinking: the agent's thinking before its answer, or "" if it is unknown (R49).
    """

    title: str
    lines: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    thinking: str = ""

    def __str__(self) -> str:
        thinking = truncate(" ".join(self.thinking.split()), _MAX_THINKING_CHARS)
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
    """Explain the route of a step: the verdict with its reason, the target, and notes about the output.

    Args:
        rules: the rules of the cast.
        title: a description of the visit.
        decision: the decision of the step, or None while its socket has no output yet.
        after: the state after the step.
        entry: the decision that entered the socket, if loops without items were skipped.
        onward: the decision that entered the next socket, if loops without items were skipped.
        pinned: the name of the pin that answered, or None if no pin answered (R40).
    """
    names = rules.graph.names
    lines = _explain_skips(names, entry)
    if decision is None:
        lines.append(f"The cast is {after.status}: {names[after.at.socket] if after.at else 'it'} has no output yet.")
        return Why(title, tuple(lines), ())
    if pinned is not None:
        lines.append(_explain_pin(rules, decision, pinned))
    lines += _explain_verdict(names, decision)
    if decision.issues:
        is_refused = not decision.reading.accepted
        lines.append("The output was refused:" if is_refused else "The output says that the work is not done:")
        lines += [f"- {issue.line}" for issue in decision.issues]
    if decision.advance is not None:
        lines.append(_explain_advance(decision.advance, decision))
    if decision.by in ("failure", "budget") and after.failure is None and after.status == "waiting":
        lines.append(f"{names[decision.socket or END]} was cut short and is asked again.")
    else:
        lines += _explain_route(rules, decision, after)
    lines += [f"Output: {note}." for note in decision.reading.notes]
    lines += [f"Note: {warning.message}" for warning in decision.warnings]
    lines += [
        f"state.{assignment.target} was not changed: {assignment.source} does not exist."
        for assignment in decision.assigned
        if not assignment.found
    ]
    lines += _explain_skips(names, onward)
    if after.failure is not None and decision.failure is None:
        lines += _explain_failure(after.failure)  # the next socket could not be entered
    rows = tuple(_edge_row(names, check, decision) for check in _edge_records(rules, decision))
    return Why(title, tuple(lines), rows)


def _explain_pin(rules: Rules, decision: Decision, pinned: str) -> str:
    is_utility = decision.socket is not None and rules.sockets[decision.socket].socket.is_utility
    effect = "no process was started" if is_utility else "its agent was not called"
    return f"The output was pinned to {pinned}; {effect}."


def _explain_skips(names: Mapping[str, str], entry: Decision | None) -> list[str]:
    return [" ".join(_explain_skip(names, skip) for skip in entry.skips)] if entry and entry.skips else []


def _explain_skip(names: Mapping[str, str], skip: SkippedSocket) -> str:
    reason = "its list is empty" if skip.empty else "no item of its list is left"
    skipped = names[skip.socket] if skip.loop is None else f"{names[skip.socket]} of loop {skip.loop}"
    if skip.route is not None:
        outcome = f"the always exit of the loop led to {names[skip.target]}"
    elif skip.target != END:
        outcome = f"so the detour ended, and the cast returned to {names[skip.target]}"
    else:
        outcome = "the loop has no always exit, so the cast ended there successfully"
    return f"{skipped} was skipped: {reason}; {outcome}."


def _explain_verdict(names: Mapping[str, str], decision: Decision) -> list[str]:
    """Return sentences about the result of a visit: its verdict and the reason, or the failure that an edge handles."""
    result = decision.result
    if result.is_silent:
        is_handled = decision.by not in ("failure", "budget")
        return [f"{result.sentence.capitalize()}: {decision.reading.reason}"] if is_handled else []
    if result not in VERDICTS or not decision.reading.accepted:
        return []
    verdict = f"{names[decision.socket or END]} was {'' if result.satisfied else 'not '}satisfied"
    reason = short_label(decision.reading.context or "", _MAX_REASON_CHARS)
    return [f"{verdict}: {reason}" if reason and not result.satisfied else f"{verdict}."]


def _explain_advance(fact: AdvanceRecord, decision: Decision) -> str:
    name = "The derived advance" if fact.derived else "advance"
    if not fact.moved:
        return f"{name} did not move: it needs {fact.when}, and {decision.result.sentence}."
    rest_text = f"{fact.length - fact.after} of {fact.length} are left"
    if fact.exhausted:
        rest_text = "the list is exhausted"
    return f"{name} moved the cursor {fact.cursor} from {fact.before} to {fact.after} ({fact.when}); {rest_text}."


_EXPLANATIONS: Final = {
    "repair": "{socket} is asked again, in the same visit.",
    "draft": "The output is a draft: refine it, or accept it.",
    "finalize": "The work is done; {socket} is asked to hand it over, in the same conversation.",
    "reissue": "{socket} is asked to continue, in the same visit. {reason}",
    "pause": "The output asks for a person: {reason}",
    "escalate": "A person must decide: {reason}",
    "detour": "The output asks for {target} to run first: {reason}",
    "return": "The detour has ended; the cast returns to {target}.",
    "person": "A person chose to continue with {target}.",
    "recording": "The recording leads to {target}. Its edges are not evaluated: the loadout cannot be cast here.",
}  # Explanations of decisions that neither an edge nor an exit made, by kind of decision.


def _explain_route(rules: Rules, decision: Decision, after: CastState) -> list[str]:
    by, chosen, names = decision.by, decision.chosen, rules.graph.names
    target = names.get(decision.target or "", decision.target or "its end")
    if decision.failure is not None and by in ("failure", "budget"):
        return _explain_failure(decision.failure)
    if by in _EXPLANATIONS:
        words = {"socket": names[decision.socket or END], "target": target, "reason": decision.reading.reason}
        return [_EXPLANATIONS[by].format(**words)]
    if by == "implied end":
        if decision.checks:
            end = f"No edge or exit matches ({decision.result.sentence}), so the cast ends successfully."
            socket = rules.graph.sockets.get(decision.socket or "")
            if socket is not None and socket.parse == "text" and decision.result is Result.NOTHING:
                owner = f"materia.{socket.materia.id}" if socket.materia.kind == "utility" else socket.id
                end += f' Text has no `satisfied`: write "parse": "json" on {owner}, or add an edge for always.'
            return [end, *_explain_alternatives(rules, decision)]
        is_exhausted = decision.advance is not None and decision.advance.exhausted
        reason = "loop has no exit route from this socket" if is_exhausted else "socket has no edges"
        return [f"The {reason}, so the cast ends successfully."]
    if chosen is None:
        return [f"It continues with {target}."]
    condition = condition_spec(chosen.when)
    name = "the exit" if chosen.edge_index is None else f"edge {chosen.edge_index + 1}"
    name = f"{name} ({condition.short})" if condition.matches_any_output else f"so {name} ({condition.short})"
    is_back = condition.sends_back and chosen.to in after.visits
    lines = [f"{name[0].upper()}{name[1:]} leads {'back ' * is_back}to {names[chosen.to]}."]
    if is_back and chosen.limit is not None:
        work = short_label(decision.at.item.label) if decision.at and decision.at.item else "The work"
        lines.append(f"{work} has come back {(chosen.used or 0) + 1} of {counted(chosen.limit, 'time')}.")
    return lines + _explain_alternatives(rules, decision)


def _explain_failure(failure: Failure) -> list[str]:
    lines = [f"The cast stopped: {failure.message}"]
    return [*lines, f"To continue: {failure.hint}."] if failure.hint else lines


def _explain_alternatives(rules: Rules, decision: Decision) -> list[str]:
    """Return a sentence for each other result that would have led to a different target."""
    if decision.socket is None:
        return []
    socket_rules, name = rules.sockets[decision.socket], rules.graph.names[decision.socket]
    is_unknown = decision.advance is None and socket_rules.socket.advance is not None
    verdicts = () if socket_rules.requirements.parse == "text" or is_unknown else VERDICTS
    lines = []
    for result in (*verdicts, *dict.fromkeys(handled_failures(socket_rules).values())):
        choice = None if result is decision.result else _find_choice(socket_rules, decision.advance, result)
        if choice is not None and choice.target != decision.target:
            verdict = f"If {name} had {'' if result.satisfied else 'not '}been satisfied"
            condition = verdict if result in VERDICTS else f"After {result.noun}"
            lines.append(f"{condition}, the cast would go to {rules.graph.names[choice.target]}.")
    return lines


def _find_choice(socket_rules: SocketRules, fact: AdvanceRecord | None, result: Result) -> Choice | None:
    is_last = fact is not None and fact.before + 1 >= fact.length
    return choose_edge(
        socket_rules, result, exhausted=fact is not None and is_last and condition_spec(fact.when).matches(result)
    )


def _edge_records(rules: Rules, decision: Decision) -> tuple[RouteCheck, ...]:
    """Return the records of the edges and exits that were checked, followed by the edges that were not checked."""
    checked_indexes = {check.edge_index for check in decision.checks if check.kind == "edge"}
    if not checked_indexes or decision.socket is None:
        return decision.checks
    edges = rules.graph.sockets[decision.socket].edges
    unchecked_edges = (edge for edge in edges if edge.index not in checked_indexes)
    return (*decision.checks, *(RouteCheck("edge", edge.when, edge.to, False, edge.index) for edge in unchecked_edges))


def _edge_row(names: Mapping[str, str], check: RouteCheck, decision: Decision) -> tuple[str, ...]:
    is_checked = check in decision.checks
    uses_text = "" if check.limit is None else f"{(check.used or 0) + check.matched} of {check.limit}"
    reason = check.reason(decision.result) if is_checked else "not checked: an earlier edge matched"
    kind = check.route or f"edge {0 if check.edge_index is None else check.edge_index + 1}"
    return (kind, check.when, names[check.to], "yes" if check.matched else "no", reason, uses_text)


# -- guesses ---------------------------------------------------------------------------------

STOP: Final = "stop"
"""The prediction that the cast stops, because it fails or is held for a person."""

_HELD: Final = frozenset({"pause", "escalate"})
_ROUTED_BY: Final = frozenset({"edge", "exit", "implied end"})


@dataclass(frozen=True, slots=True)
class Prediction:
    """A prediction of the target of a step, with the actual target and an explanation.

    Attributes:
        guess: the predicted target: a socket, ``end`` or ``stop``.
        outcome: the actual target: a socket, ``end`` or ``stop``.
        title: a description of the visit.
        lines: sentences that evaluate the prediction and give the reasons.
        retry_lines: sentences for a person who may try again; they explain what is wrong without revealing the outcome.
    """

    guess: str
    outcome: str
    title: str
    lines: tuple[str, ...]
    retry_lines: tuple[str, ...]

    @property
    def right(self) -> bool:
        """True if the prediction was correct."""
        return self.guess == self.outcome

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"  {line}" for line in self.lines)])


def possible_guesses(rules: Rules) -> tuple[str, ...]:
    """Return all possible predictions: the sockets of the loadout, ``end`` and ``stop``."""
    return tuple(dict.fromkeys([*rules.graph.sockets, END, STOP]))


def parse_guess(rules: Rules, guess: str) -> str:
    """Return the target that a prediction names. Case is ignored, and a socket may be identified by its materia.

    Raises:
        MateriaError: the socket does not exist (``unknown_socket``), or several sockets contain the materia
            (``ambiguous``).
    """
    known, target = possible_guesses(rules), resolve_target(rules.graph, guess)
    if target in known:
        return target
    hint = f"{did_you_mean(guess, known)} (a socket of this loadout, end, or stop)"
    raise MateriaError(f"A step cannot lead to {guess!r}.", hint=hint, kind="unknown_socket")


def resolve_target(graph: Graph, word: str) -> str:
    """Return the socket, ``end`` or ``stop`` that a word names; a socket may be identified by its materia.

    Case is ignored. An unknown word is returned unchanged.

    Raises:
        MateriaError: kind ``ambiguous``: several sockets contain the materia that the word names.
    """
    normalized, targets = word.strip().casefold(), (*graph.sockets, END, STOP)
    if word in targets:
        return word
    if matches := [target for target in targets if target.casefold() == normalized]:
        return matches[0] if len(matches) == 1 else word
    matches = [socket.id for socket in graph.sockets.values() if socket.materia.id.casefold() == normalized]
    if len(matches) > 1:
        message = f"{word.strip()} is the materia of {' and '.join(matches)}."
        raise MateriaError(message, hint="name the socket", kind="ambiguous")
    return matches[0] if matches else word


def next_target(rules: Rules, state: CastState) -> str:
    """Return the socket that runs next, ``end`` or ``stop``. Loops without items are skipped (R16)."""
    return _enter_next(rules, state)[0]


def judge_guess(
    rules: Rules, guess: str, title: str, decision: Decision, after: CastState, entry: Decision | None = None
) -> Prediction:
    """Compare a prediction with the decision of a step.

    Args:
        rules: the rules of the cast.
        guess: the prediction, which must be one of :func:`possible_guesses`.
        title: a description of the visit.
        decision: the decision of the step.
        after: the state after the step.
        entry: the decision that entered the socket, if loops without items were skipped.
    """
    outcome, onward = _outcome(rules, decision, after)
    names = rules.graph.names
    lines = [_verdict_text(names, guess, outcome), *explain(rules, title, decision, after, entry, onward=onward).lines]
    if onward is not None and onward.failure is not None:
        lines += _explain_failure(onward.failure)[:1]
    if guess == outcome:
        return Prediction(guess, outcome, title, tuple(filter(None, lines)), tuple(lines[:1]))
    against = _reason_guess_is_wrong(rules, decision, outcome, guess)
    retry_lines = (f"Not this time. Your guess: {describe_target(names, guess)}.", against)
    return Prediction(guess, outcome, title, tuple(filter(None, [*lines, against])), tuple(filter(None, retry_lines)))


def _outcome(rules: Rules, decision: Decision, after: CastState) -> tuple[str, Decision | None]:
    """Return the target of a step, and the decision that entered the next socket."""
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


def _verdict_text(names: Mapping[str, str], guess: str, outcome: str) -> str:
    outcome_clause = describe_target(names, outcome)
    if guess == outcome:
        return f"Right: {outcome_clause}."
    return f"Not this time. Your guess: {describe_target(names, guess)}. What happened: {outcome_clause}."


def describe_target(names: Mapping[str, str], target: str) -> str:
    """Return a clause that describes a target, such as ``the cast ends``."""
    if target == STOP:
        return "the cast stops"
    return "the cast ends" if target == END else f"the cast goes to {names[target]}"


def _reason_guess_is_wrong(rules: Rules, decision: Decision, outcome: str, guess: str) -> str:
    """Return the reason why a prediction is wrong, or "" if the explanation of the step already contains it."""
    if guess == STOP:
        return "Nothing failed, no limit was reached, and no person is needed."
    if outcome == STOP or guess == decision.target or decision.by not in _ROUTED_BY or decision.socket is None:
        return ""
    for check in decision.checks:
        if check.to == guess:
            name = rules.graph.names[guess]
            return f"The {check.kind} to {name} was checked, but {check.reason(decision.result)}."
    return _reason_not_checked(rules, decision, guess)


def _reason_not_checked(rules: Rules, decision: Decision, guess: str) -> str:
    socket_rules, name = rules.sockets[decision.socket or ""], rules.graph.names[guess]
    if any(edge.to == guess for edge in socket_rules.socket.edges):
        if decision.advance is not None and decision.advance.exhausted:
            return f"There is an edge to {name}, but the list is exhausted, so only exits are checked."
        return f"There is an edge to {name}, but an earlier edge matched."
    if any(route.target == guess for route in socket_rules.exits):
        return f"There is an exit to {name}, but exits are checked only in a step that exhausts the list."
    return f"No edge or exit leads from {rules.graph.names[decision.socket or END]} to {name}."


# Name of the section of the project's knowledge document to which accepted suggestions are added.
_SECTION: Final = "memory"


class Suggestion(NamedTuple):
    """A memory or note that an agent suggests for the project's knowledge document.

    Attributes:
        number: the number of the suggestion in ``Cast.suggestions``, starting at 1.
        step: the number of the step whose output contains the suggestion.
        kind: ``memory`` (with fields such as a description and a body) or ``note`` (with a text as the only field).
        fields: the content of the suggestion; all values are strings.
        is_kept: True if a person has accepted the suggestion.
    """

    number: int
    step: int
    kind: SuggestionKind
    fields: Mapping[str, str]
    is_kept: bool

    @property
    def entry(self) -> dict[str, JSON]:
        """The suggestion in the format of an entry in the project's knowledge document."""
        return {"kind": self.kind, **self.fields}


def suggestions_of(rules: Rules, steps: Sequence[StepRecord], kept_entries: Sequence[JSON]) -> list[Suggestion]:
    """Return the suggestions in the accepted outputs of steps, in order and without duplicates."""
    suggestions: dict[str, Suggestion] = {}
    for step in steps:
        protocol = rules.sockets[step.socket].protocol
        for value in _accepted_values(step):
            for kind, fields in protocol.suggestions(value):
                new = Suggestion(len(suggestions) + 1, step.number, kind, fields, is_kept=False)
                suggestions.setdefault(compact(new.entry), new._replace(is_kept=new.entry in kept_entries))
    return list(suggestions.values())


def suggestion_at(suggestions: Sequence[Suggestion], number: int) -> Suggestion:
    """Return the suggestion with the given number, or raise MateriaError (``no_suggestion``) if there is none."""
    if type(number) is not int or not 1 <= number <= len(suggestions):
        message = f"Suggestion {number!r} does not exist; the cast has {counted(len(suggestions), 'suggestion')}."
        hint = "use `edit remember` to list the suggestions; they are numbered from 1"
        raise MateriaError(message, hint=hint, kind="no_suggestion")
    return suggestions[number - 1]


def with_memory_entry(document: Mapping[str, JSON], entry: JSON) -> dict[str, JSON]:
    """Return the document with an entry added at the end of its section, unless the entry already exists."""
    section = document.get(_SECTION, [])
    if not isinstance(section, list):
        message = f"The section {_SECTION!r} of the project's document is not a list."
        raise MateriaError(message, hint="fix the section in the document, or rename it", kind="bad_context")
    return {**document, _SECTION: section if entry in section else [*section, entry]}


def conclusion_lines(rules: Rules, steps: Sequence[StepRecord]) -> list[str]:
    """Return the lines of a cast's final report, combined from the reports in the last outputs of its agents."""
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
