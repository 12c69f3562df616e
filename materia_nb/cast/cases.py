"""Test cases for loadouts: files with a loadout, recorded answers, and the expected route, end and final state.

A second type of test case lists every possible visit of a loadout, or rules that every cast follows. Checking a test
case does not call agents or start processes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from materia_nb.engine import entering
from materia_nb.engine.evolve import session_at
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Edit, Session, TurnRecord, all_steps
from materia_nb.engine.state import BOUNDS, CastState, Failure, Usage
from materia_nb.errors import MateriaError, counted
from materia_nb.insight.compare import ComparedCast, Comparison, step_target
from materia_nb.insight.explore import CastRule, Exploration, behaviour_changes
from materia_nb.insight.replay import MissingAnswer, RecordedAnswers, recorded_answers, replay_end, send_answers
from materia_nb.insight.values import format_difference, value_changes
from materia_nb.jsonvalue import JSON, equal_json
from materia_nb.loadout import build_graph, load_layers
from materia_nb.loadout.graph import Graph, shared_names, with_names
from materia_nb.store.files import FileFormat, write_file

CASE_FORMAT: Final = "materia-nb case 1"
SUFFIX: Final = ".materia-case.json"
_CASE: Final = FileFormat("case", CASE_FORMAT, "write a test case with `cast.export.test(path)`")
_FIELDS: Final = ("config", "loadout", "answers", "expect", "request")
_BOUNDS: Final = [bound for bound in BOUNDS if bound.quantity != "seconds"]
"""Budget limits that a test case stores. Time limits do not apply, because replayed answers take no time."""
_MAX_VALUE_CHARS: Final = 80
_MAX_CHANGES: Final = 8


@dataclass(frozen=True, slots=True)
class Case:
    """A test case that was read from a file.

    Attributes:
        fields: the JSON fields of the file.
        path: the path of the file.
    """

    fields: Mapping[str, Any]
    path: Path

    @property
    def advice(self) -> str:
        """The advice to display if the test case fails."""
        has_rules = "rules" in self.fields.get("ways", ())
        accept = "delete the rule from this file" if has_rules else "run `pytest --materia-update`"
        return f"fix the loadout; if the change is intended, {accept}"

    def check(self) -> list[str]:
        """Run the test case and return a line for each expectation that is not met.

        Raises:
            MateriaError: the loadout has problems, the config file to test does not exist, a rule is not broken but
                also not proven (``no_witness``), or the test case is damaged (``bad_case``).
        """
        try:
            return self._check()
        except (KeyError, TypeError, AttributeError) as error:
            message = f"it has no field {error}" if isinstance(error, KeyError) else "a value is of the wrong type"
            raise MateriaError(
                f"The case is damaged: {message}.",
                where=str(self.path),
                hint="undo the change, or write the case again with `cast.export.test(path)`",
                kind="bad_case",
            ) from error

    def _check(self) -> list[str]:
        graph_of_case, (graph, _) = build_graph(self.fields["config"]), self._tested_loadout()
        if "ways" in self.fields:
            exploration = Exploration(graph, self.fields["ways"]["items"])
            if "rules" in self.fields["ways"]:
                return list(_broken_rules(exploration, self.fields["ways"]["rules"]))
            return self._changed_moves(exploration, graph_of_case)
        names = shared_names(graph, graph_of_case)
        replay, missing_answer = _run(self.fields, Rules(graph))
        failures = self._differences(replay, missing_answer, names)
        if failures and "follows" in self.fields:
            before, _ = _run(self.fields, Rules(graph_of_case))
            expected_cast = ComparedCast("", Rules(graph_of_case), before)
            first = Comparison(expected_cast, ComparedCast("", Rules(graph), replay)).first
            if first is not None:
                failures += ["A is the loadout of the case, B is the loadout of the file.", *str(first).splitlines()]
        return failures

    def _tested_loadout(self) -> tuple[Graph, Mapping[str, JSON]]:
        """Return the loadout to test and its config, from the config file to test or else from the test case."""
        if (follows := self.fields.get("follows")) is None:
            return build_graph(self.fields["config"]), self.fields["config"]
        layers = load_layers(self.path.parent / follows, project=self.path.parent)
        return layers.graph(self.fields["loadout"]), layers.document

    def update(self) -> None:
        """Store the current loadout, and store its outcome as the expected outcome.

        Raises:
            MateriaError: the loadout has problems, breaks a rule (``broken_rule``), or needs answers that the test case
                does not contain (``no_test``).
        """
        graph, document = self._tested_loadout()
        if (ways := self.fields.get("ways")) is not None:
            exploration = Exploration(graph, ways["items"])
            expected = ways_case(exploration, ways.get("rules"))
        else:
            replay, missing_answer = _run(self.fields, Rules(graph))
            if missing_answer is not None and self.fields["expect"]["ends"] != "needs":
                raise _no_test_error(f"an answer is missing ({missing_answer.why})")
            expected = {"expect": _expected(replay, missing_answer)}
        write_case(self.path, {**self.fields, **expected}, document)

    def _changed_moves(self, exploration: Exploration, graph_of_case: Graph) -> list[str]:
        """Return a line for each visit that has become possible or is no longer possible.

        If all visits are the same, the casts of the loadout are compared with the casts of ``graph_of_case``.
        """
        expected, names = self.fields["ways"], shared_names(graph_of_case, exploration.graph)
        moves = exploration.moves
        lost_moves = [f"No longer possible: {move}" for move in expected["moves"] if move not in moves]
        new_moves = [f"Now also possible: {move}" for move in moves if move not in expected["moves"]]
        if not lost_moves and not new_moves and "follows" in self.fields:
            changes = behaviour_changes(Exploration(graph_of_case, expected["items"]), exploration)
            routes = [" → ".join(names[id_] for id_ in change.route) for change in changes]
            new_moves = [
                f"{after}: {b} instead of {a}, after {route}"
                for (after, a, b, _), route in zip(changes, routes, strict=True)
            ]
        omitted = max(0, len(lost_moves) - _MAX_CHANGES) + max(0, len(new_moves) - _MAX_CHANGES)
        lines = [*lost_moves[:_MAX_CHANGES], *new_moves[:_MAX_CHANGES], *([f"and {omitted} more"] if omitted else [])]
        return [with_names(line, names) for line in lines]

    def _differences(self, replayed: Session, missing: MissingAnswer | None, names: Mapping[str, str]) -> list[str]:
        expected = self.fields["expect"]
        failures = []
        if missing is not None and expected["ends"] != "needs":
            failures.append(f"The replay needs an answer: {missing.why}.")
        failures += self._route_differences(_visits_json(replayed), names)
        if (ends := replay_end(replayed, missing)) != expected["ends"]:
            failures.append(f"Expected end: {expected['ends']}. Actual end: {ends}.")
        for change in value_changes(expected["state"], dict(replayed.state.data))[:_MAX_CHANGES]:
            left, right = format_difference(change.a, change.b, _MAX_VALUE_CHARS)
            failures.append(f"state.{change.path} should be {left}, but is {right}.")
        return failures

    def _route_differences(self, actual: list[Any], names: Mapping[str, str]) -> list[str]:
        expected = self.fields["expect"]["route"]
        places = [[(visit["socket"], visit["visit"], visit["item"]) for visit in route] for route in (expected, actual)]
        if places[0] == places[1]:  # targets without a visit, such as a loop without items left, do not matter
            return []
        titles = {(answer["socket"], answer["item"]): answer["label"] for answer in self.fields["answers"]}
        for number, visits in enumerate(zip(expected, actual, strict=False), start=1):
            if visits[0] != visits[1]:
                visit, other = (_visit_words(visit, names, titles) for visit in visits)
                return [f"Step {number} should be {visit}, but is {other}."]
        return [f"The cast should take {counted(len(expected), 'step')}, but takes {len(actual)}."]


def _visit_words(visit: Any, names: Mapping[str, str], titles: Mapping[tuple[str, str], str]) -> str:
    """Describe a visit of a route. ``titles`` are the titles of work items, by socket and key."""
    item = titles.get((visit["socket"], visit["item"])) or visit["item"]
    target = names.get(visit["to"], visit["to"] or "nothing")
    return f"{names.get(visit['socket'], visit['socket'])}{f' ({item})' if item else ''}, followed by {target}"


def _visits_json(session: Session) -> list[JSON]:
    return [
        {"socket": step.socket, "visit": step.visit, "item": step.item_key, "to": step_target(step)}
        for step in all_steps(session)
    ]


def case_of(rules: Rules, session: Session) -> dict[str, JSON]:
    """Create the JSON document of a test case from a cast, without the config of the cast.

    Raises:
        MateriaError: a replay of the answers takes another route or has another final state (``no_test``).
    """
    if session.state.extra:
        raise _no_test_error("a limit was raised")
    start = session.start
    case: dict[str, JSON] = {
        "format": CASE_FORMAT,
        "loadout": rules.graph.name,
        "request": start.request,
        "state": dict(start.data),
        "knowledge": dict(start.knowledge),
        "maxTokens": session.state.budget.max_tokens,
        **{bound.key: limit for bound in _BOUNDS if (limit := bound.maximum(session.state.budget)) is not None},
        "answers": [
            {"socket": key[0], "item": key[1], "label": key[2], "time": times, "turns": list(map(_turn_as_json, turns))}
            for (key, times), turns in recorded_answers(session).items()
        ],
        "edits": [
            {
                "step": edit.step,
                "status": edit.before.status,
                "before": dict(edit.before.data),
                "after": dict(edit.after.data),
            }
            for edit in session.edits
        ],
    }
    replay, missing_answer = _run(case, rules)
    route, state = _visits_json(replay), dict(replay.state.data)
    if not equal_json(state, dict(session.state.data)) or route != _visits_json(session):
        raise _no_test_error("a replay of its answers has a different route or state")
    return {**case, "expect": _expected(replay, missing_answer)}


def _expected(replayed: Session, missing_answer: MissingAnswer | None) -> dict[str, JSON]:
    ends, state = replay_end(replayed, missing_answer), dict(replayed.state.data)
    return {"ends": ends, "route": _visits_json(replayed), "state": state}


def _broken_rules(exploration: Exploration, rules: Sequence[CastRule]) -> Iterator[str]:
    """Yield a line for each rule that a cast can break, with the shortest cast that breaks the rule."""
    names = exploration.graph.names
    for rule in rules:
        if (cast := exploration.counterexample(rule)) is not None:
            route = " → ".join([*(names[id_] for id_ in cast.route), cast.end or "no end"])
            yield f'The rule "never {cast.event}" is broken: {route}.'


def ways_case(exploration: Exploration, rules: Sequence[CastRule] | None = None) -> dict[str, JSON]:
    """Create a test case that lists all possible visits of a loadout or, with ``rules``, the rules that all casts follow.

    Like the result of :func:`case_of`, it does not contain the config.

    Raises:
        MateriaError: the exploration was cut off, so some visits are unknown (``not_explored``), a rule is broken
            (``broken_rule``), or a rule is invalid or not proven, as for :meth:`Exploration.counterexample`.
    """
    ways: dict[str, Any] = {"items": list(exploration.items)}
    if rules is None:
        ways["moves"] = list(exploration.moves)
    else:
        if broken := list(_broken_rules(exploration, rules)):
            raise MateriaError(broken[0], more=broken[1:], hint="change the loadout or the rule", kind="broken_rule")
        ways["rules"] = [dict(rule) for rule in rules]
    name = exploration.graph.name
    return {"format": CASE_FORMAT, "loadout": name, "request": "", "answers": [], "expect": {}, "ways": ways}


def write_case(
    path: Path, case: Mapping[str, JSON], document: Mapping[str, JSON], follows: str | Path | None = None
) -> Path:
    """Write a test case to a file, and return the path, whose suffix is always ``.materia-case.json``.

    Args:
        path: the path of the file; the suffix is added if it is missing.
        case: the test case.
        document: the config to which the expectations apply.
        follows: the path of the config file to test, which must contain a loadout with the same name; by default
            ``document`` is tested.

    Raises:
        DiskError: the file cannot be written.
    """
    if not path.name.endswith(SUFFIX):
        path = path.with_name(f"{path.name.removesuffix('.json')}{SUFFIX}")
    if follows is not None:
        case = {**case, "follows": os.path.relpath(Path(follows).absolute(), path.absolute().parent)}
    text = json.dumps({**case, "config": dict(document)}, ensure_ascii=False, indent=1)
    return write_export(path, "case", f"{text}\n")


def write_export(path: Path, kind: str, text: str) -> Path:
    """Write ``text`` to a file, create missing parent directories, and return the path. Errors mention ``kind``."""
    write_file(path, text.encode("utf-8", "replace"), f"write the {kind}")
    return path


def _no_test_error(why: str) -> MateriaError:
    message = f"This cast cannot be exported as a test: {why}."
    hint = "use a cast without decisions by a person and without raised limits"
    return MateriaError(message, hint=hint, kind="no_test")


def _turn_as_json(turn: TurnRecord | Failure) -> JSON:
    if isinstance(turn, Failure):
        return {"failed": turn.kind, "message": turn.message}
    fields: dict[str, JSON] = {"mode": turn.mode, "text": turn.text}
    if turn.message is not None:
        fields["message"] = turn.message
    if turn.usage is not None:
        fields["usage"] = turn.usage.as_json()
    if turn.spent:
        fields["spent"] = [usage.as_json() for usage in turn.spent]
    return fields


def read_case(path: Path) -> Case:
    """Read a test case from a file.

    Raises:
        MateriaError: the file cannot be read (``no_case``), or is not a test case (``bad_case``).
    """
    fields = _CASE.read(path)
    missing_names = [name for name in _FIELDS if name not in fields]
    if missing_names:
        raise _CASE.format_error(path, f"it has no {missing_names[0]!r}")
    return Case(fields, path)


def _run(fields: Mapping[str, Any], rules: Rules) -> tuple[Session, MissingAnswer | None]:
    state = entering.begin(rules, fields["request"], fields.get("knowledge"), fields.get("state"))
    limits: dict[str, Any] = {bound.field: fields.get(bound.key) for bound in _BOUNDS}
    if any(entry is not None for entry in limits.values()):
        state = state._replace(budget=replace(rules.graph.budget, **limits))
    state = state._replace(budget=replace(state.budget, max_seconds=None))
    answers: RecordedAnswers = {
        ((entry["socket"], entry["item"], entry["label"]), entry["time"]): [_read_turn(turn) for turn in entry["turns"]]
        for entry in fields["answers"]
    }
    edits = [_edit(entry, state) for entry in fields.get("edits", [])]
    return send_answers(rules, session_at(state), answers, edits)


def _read_turn(turn: Mapping[str, Any]) -> TurnRecord | Failure:
    if "failed" in turn:
        return Failure(turn["failed"], turn["message"])
    usage = Usage(**turn["usage"]) if turn.get("usage") else None
    spent = tuple(Usage(**used) for used in turn.get("spent", ()))
    mode, text = turn["mode"], turn["text"]
    return TurnRecord(mode, None, text, None, None, usage, message=turn.get("message"), spent=spent)


def _edit(fields: Mapping[str, Any], start: CastState) -> Edit:
    before = start._replace(data=fields["before"], status=fields["status"], steps=fields["step"])
    return Edit(0, fields["step"], (), (), before, before._replace(data=fields["after"]))
