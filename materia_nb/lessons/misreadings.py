"""Common misreadings of the routing rules. A misreading is defined by a rule set in which one rule is wrong.

:func:`walk` computes the route through a loadout according to a rule set. :data:`CORRECT_RULES` produce the route of a
real cast, and a misreading produces the route that a learner with this misreading expects. A wrong answer is attributed
to the misreading that produces the same answer. Only the kinds of loadouts in the lessons are supported: agents that
return verdicts, and loops over the work items of one generator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from materia_nb.cast import Cast
from materia_nb.engine.items import item_label
from materia_nb.insight.why import STOP
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import Graph
from materia_nb.loadout.graph import END, ExitRoute, Socket
from materia_nb.loadout.vocabulary import Result, condition_spec

_MAX_STEPS: Final = 100


@dataclass(frozen=True, slots=True)
class RuleSet:
    """A set of routing rules. The defaults are the correct rules, and a misreading replaces one of them.

    Attributes:
        belief: the misreading, as a clause that can follow the word "if".
        edge_order: the order in which matching edges are tried.
        unmatched_target: the target if no edge matches.
        counts_per_cast: True if ``maxTraversals`` limits an edge in the whole cast instead of for each work item.
        limit_offset: a number that is added to the value of ``maxTraversals``.
        exhausted_target: the target if a matching edge has reached its limit; ``next`` to try the next matching edge.
        early_exit: the condition on which an exit is taken although work items are left: never, if the exit matches, if
            no edge matches, or after an unsatisfied verdict.
        checks_edges_first: True if edges are tried before exits when the list of work items is exhausted.
        advance_verdict: the verdict that starts the next work item; empty to use the condition in the loadout.
        empty_loop_effect: the effect of a loop that has no work items: the always exit is taken, the first exit is
            taken, the loop is entered, or the cast fails.
        exit_rule: the rule that selects an exit: the exit for the last verdict, always the first exit, or the exit that
            depends on whether any work item was refused.
    """

    belief: str = ""
    edge_order: Literal["first", "last"] = "first"
    unmatched_target: str = END
    counts_per_cast: bool = False
    limit_offset: int = 0
    exhausted_target: str = STOP
    early_exit: Literal["never", "match", "no edge", "refusal"] = "never"
    checks_edges_first: bool = False
    advance_verdict: Literal["", "always", "satisfied"] = ""
    empty_loop_effect: Literal["always exit", "first exit", "enter", "fail"] = "always exit"
    exit_rule: Literal["verdict", "first", "any refusal"] = "verdict"


CORRECT_RULES: Final = RuleSet()
MISREADINGS: Final[Mapping[str, RuleSet]] = {
    "last-match": RuleSet("the last matching edge were taken", edge_order="last"),
    "unmatched-fails": RuleSet("the cast failed when no edge matches", unmatched_target=STOP),
    "limit-per-cast": RuleSet("maxTraversals counted for the whole cast, not for each item", counts_per_cast=True),
    "one-less": RuleSet("an edge could be taken only maxTraversals - 1 times", limit_offset=-1),
    "one-more": RuleSet("an edge could be taken maxTraversals + 1 times", limit_offset=1),
    "falls-through": RuleSet("an edge that has reached its limit were skipped", exhausted_target="next"),
    "used-up-ends": RuleSet("an edge that has reached its limit ended the cast as complete", exhausted_target=END),
    "early-exit": RuleSet("a matching exit were taken while items are left", early_exit="match"),
    "exit-is-an-edge": RuleSet("an exit were checked like an edge, after the other edges", early_exit="no edge"),
    "refusal-leaves": RuleSet("a verdict that is not satisfied led out of the loop", early_exit="refusal"),
    "edges-first": RuleSet("edges were checked before exits when the list is exhausted", checks_edges_first=True),
    "satisfied-advances": RuleSet("only a satisfied verdict started the next item", advance_verdict="satisfied"),
    "always-advances": RuleSet("every verdict started the next item", advance_verdict="always"),
    "empty-enters": RuleSet("a loop without items were run once", empty_loop_effect="enter"),
    "empty-first-exit": RuleSet("a loop without items took its first exit", empty_loop_effect="first exit"),
    "empty-fails": RuleSet("a loop without items failed the cast", empty_loop_effect="fail"),
    "first-exit": RuleSet("the first exit were taken regardless of the last verdict", exit_rule="first"),
    "any-refusal": RuleSet(
        "the exit depended on a refusal of any item, not on the last verdict", exit_rule="any refusal"
    ),
}
"""Maps the name of each misreading to its rule set."""


class ScriptedVerdicts(NamedTuple):
    """The work items and verdicts on which a route depends.

    Attributes:
        items: the titles of the work items.
        verdicts: the verdicts of each socket, one for each visit. Further visits repeat the last verdict.
    """

    items: Sequence[str]
    verdicts: Mapping[str, Sequence[bool | None]]

    @classmethod
    def from_cast(cls, cast: Cast) -> ScriptedVerdicts:
        """Read the titles of the work items and the verdicts from a finished cast."""
        verdicts: dict[str, list[bool | None]] = {}
        for step in cast.steps:
            verdicts.setdefault(step.socket, []).append(step.decision and step.decision.satisfied)
        return cls([item_label(item, "") for item in cast.now.work_items], verdicts)


@dataclass(frozen=True, slots=True)
class RouteWalk:
    """The route through a loadout according to a rule set.

    Attributes:
        steps: the socket of each visit, with the title of its work item; the title is None outside a loop.
        target: the target of the last visit, which is ``end`` or ``stop``.
    """

    steps: tuple[tuple[str, str | None], ...]
    target: str

    @property
    def route(self) -> tuple[str, ...]:
        """The sockets that are visited, in order."""
        return tuple(socket for socket, _ in self.steps)

    @property
    def visits(self) -> Counter[str]:
        """The number of visits to each socket."""
        return Counter(self.route)

    @property
    def ends(self) -> str:
        """The status of a cast that takes this route: ``complete`` or ``failed``."""
        return "complete" if self.target == END else "failed"


def walk(graph: Graph, script: ScriptedVerdicts, rules: RuleSet = CORRECT_RULES) -> RouteWalk:
    """Compute the route through a loadout according to a rule set.

    A route that has more than 100 visits is treated as failed.

    Args:
        graph: the loadout.
        script: the work items, and the verdicts of the sockets.
        rules: the rule set; defaults to the correct rules.
    """
    return _RouteWalker(graph, script, rules).run()


@dataclass
class _RouteWalker:
    graph: Graph
    script: ScriptedVerdicts
    rules: RuleSet
    cursor: int = 0
    is_refused: bool = False
    route: list[str] = field(default_factory=list)
    items: list[str | None] = field(default_factory=list)
    edge_uses: Counter[tuple[str, int, int | None]] = field(default_factory=Counter)

    def run(self) -> RouteWalk:
        target = self.graph.entry
        while target in self.graph.sockets and len(self.route) < _MAX_STEPS:
            socket = self.graph.sockets[target]
            is_left = socket.iterator is not None and self.cursor >= len(self.script.items)
            enters_once = self.rules.empty_loop_effect == "enter" and target not in self.route
            may_enter = self.rules.checks_edges_first if self.script.items else enters_once
            target = self._empty_loop_target(socket) if is_left and not may_enter else self._visit(socket)
        return RouteWalk(tuple(zip(self.route, self.items, strict=True)), END if target == END else STOP)

    def _visit(self, socket: Socket) -> str:
        item = self.cursor if socket.iterator is not None else None
        self.route.append(socket.id)
        self.items.append(self.script.items[item] if item is not None and item < len(self.script.items) else None)
        verdict = self._verdict(socket)
        self.is_refused |= verdict is False
        if socket.is_generator:
            self.cursor = 0
        is_exhausted = self._advance_cursor(socket, verdict)
        exit_target = self._exit_target(socket, verdict, is_exhausted=is_exhausted)
        if exit_target and not (is_exhausted and self.rules.checks_edges_first):
            return exit_target
        return self._edge_target(socket, verdict, item) or exit_target or self._unmatched_target(socket, verdict)

    def _verdict(self, socket: Socket) -> bool | None:
        verdicts = self.script.verdicts.get(socket.id, ())
        return verdicts[min(self.route.count(socket.id), len(verdicts)) - 1] if verdicts else None

    def _advance_cursor(self, socket: Socket, verdict: bool | None) -> bool:
        """Move the cursor if the socket's advance condition matches; return True if the list is then exhausted."""
        if socket.advance is None or not _matches(self.rules.advance_verdict or socket.advance.when, verdict):
            return False
        self.cursor += 1
        return self.cursor >= len(self.script.items)

    def _exits(self, socket: Socket) -> list[ExitRoute]:
        return [route for loop in socket.loops for route in self.graph.loops[loop].routes]

    def _exit_target(self, socket: Socket, verdict: bool | None, *, is_exhausted: bool) -> str:
        """Return the target of an exit that takes precedence over all edges, or "" if there is no such exit."""
        exits = self._exits(socket)
        if is_exhausted:
            if self.rules.exit_rule == "first" and exits:
                return exits[0].target
            decisive = not self.is_refused if self.rules.exit_rule == "any refusal" else verdict
            return _matching_exit(exits, socket, decisive) or END
        if self.rules.early_exit == "match":
            return _matching_exit(exits, socket, verdict)
        if self.rules.early_exit == "refusal" and verdict is False and exits:
            return exits[-1].target
        return ""

    def _unmatched_target(self, socket: Socket, verdict: bool | None) -> str:
        """Return the target to use if no edge can be taken: an early exit if the rule set allows it, or the end."""
        early = _matching_exit(self._exits(socket), socket, verdict) if self.rules.early_exit == "no edge" else ""
        return early or (self.rules.unmatched_target if socket.edges else END)

    def _empty_loop_target(self, socket: Socket) -> str:
        exits = self._exits(socket)
        if self.rules.empty_loop_effect == "fail":
            return STOP
        if self.rules.empty_loop_effect == "first exit" and exits:
            return exits[0].target
        always = [route for route in exits if route.condition == "always"]
        own_exits = [route for route in always if route.source == socket.id]
        return next((route.target for route in (*own_exits, *always)), END)

    def _edge_target(self, socket: Socket, verdict: bool | None, item: int | None) -> str:
        """Return the target of the first matching edge that can be taken, or "" if no edge can be taken."""
        edges = [edge for edge in socket.edges if _matches(edge.when, verdict)]
        for edge in edges[:: -1 if self.rules.edge_order == "last" else 1]:
            key = socket.id, edge.index, None if self.rules.counts_per_cast else item
            if edge.max_traversals is None or self.edge_uses[key] < edge.max_traversals + self.rules.limit_offset:
                self.edge_uses[key] += 1
                return edge.to
            if self.rules.exhausted_target != "next":
                return self.rules.exhausted_target
        return ""


def _matches(condition: str, verdict: bool | None) -> bool:
    return condition_spec(condition).matches(Result.from_satisfied(verdict))


def _matching_exit(exits: Sequence[ExitRoute], socket: Socket, verdict: bool | None) -> str:
    """Return the target of the exit that matches a verdict, or "" if no exit matches.

    An exit for a specific verdict takes precedence over an always exit.
    """
    matching = [route for route in exits if route.source == socket.id and _matches(route.condition, verdict)]
    return next((route.target for route in sorted(matching, key=lambda route: route.condition == "always")), "")


class RouteAnswer(NamedTuple):
    """The right answer to a question about a route, and the answers that follow from misreadings.

    Attributes:
        graph: the loadout.
        script: the work items, and the verdicts of the sockets.
        read: a function that returns the answer for a route.
    """

    graph: Graph
    script: ScriptedVerdicts
    read: Callable[[RouteWalk], JSON]

    @property
    def truth(self) -> JSON:
        """The right answer, which is computed with the correct rules."""
        return self.read(walk(self.graph, self.script))

    def answer_for(self, rules: RuleSet) -> JSON:
        """Return the answer according to a rule set, such as a misreading."""
        return self.read(walk(self.graph, self.script, rules))

    def last_common_step(self, rules: RuleSet) -> int:
        """Return the number of the step after which the route of a misreading differs from the correct route."""
        right, wrong = walk(self.graph, self.script), walk(self.graph, self.script, rules)
        pairs = zip((*right.route, right.target), (*wrong.route, wrong.target), strict=False)
        return next((number for number, (left, other) in enumerate(pairs) if left != other), len(right.route))


def from_route(cast: Cast, read: Callable[[RouteWalk], JSON]) -> RouteAnswer:
    """Return the right answer to a question about the route of a finished cast.

    Args:
        cast: the cast, whose loadout must have at most one generator.
        read: a function that returns the answer for a route, such as ``lambda walk: walk.visits["Socket-2"]``.
    """
    return RouteAnswer(cast.graph, ScriptedVerdicts.from_cast(cast), read)


def explain_misreading(
    answers: Sequence[tuple[object, RouteAnswer]], is_same: Callable[[object, JSON], bool]
) -> Iterator[str]:
    """Yield a sentence about the misreading that best explains a learner's answers, or yield nothing.

    A misreading is considered only if it produces at least one of the wrong answers.

    Args:
        answers: pairs of the learner's answer and the right answer.
        is_same: a function that returns True if a learner's answer is equal to a computed answer.
    """

    def explained(rules: RuleSet, pairs: Sequence[tuple[object, RouteAnswer]]) -> list[RouteAnswer]:
        return [right for answer, right in pairs if is_same(answer, right.answer_for(rules))]

    wrong = [(answer, right) for answer, right in answers if not is_same(answer, right.truth)]
    candidates = [rules for rules in MISREADINGS.values() if explained(rules, wrong)]
    if candidates:
        rules = max(candidates, key=lambda candidate: len(explained(candidate, answers)))
        step = explained(rules, wrong)[0].last_common_step(rules)
        yield f"Your answer would be right if {rules.belief}. Look at step {step}, where the rules lead to another target."
