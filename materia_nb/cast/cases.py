"""Test cases for loadouts: files with a loadout, recorded answers, and the expected route, end and final state.

A second type of test case lists every possible visit of a loadout. Checking a test case does not call agents or start
processes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from materia_nb.engine import entering
from materia_nb.engine.evolve import session_at
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Edit, Session, TurnRecord, all_steps
from materia_nb.engine.state import BOUNDS, CastState, Failure, Usage
from materia_nb.errors import MateriaError, counted
from materia_nb.file_io import replace_file
from materia_nb.insight.compare import ComparedCast, Comparison, step_target
from materia_nb.insight.explore import Exploration, behaviour_changes
from materia_nb.insight.replay import MissingAnswer, RecordedAnswers, recorded_answers, replay_end, send_answers
from materia_nb.insight.values import format_difference, value_changes
from materia_nb.jsonvalue import JSON, equal_json
from materia_nb.loadout import build_graph, load_layers
from materia_nb.loadout.graph import Graph
from materia_nb.store.files import FileFormat, disk_errors

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

    def check(self) -> list[str]:
        """Run the test case and return a line for each expectation that is not met.

        Raises:
            MateriaError: the loadout has problems, the config file to test does not exist, or the test case is damaged
                (``bad_case``).
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
        graph_of_case = build_graph(self.fields["config"])
        follows, (graph, _) = self.fields.get("follows"), self._tested_loadout()
        if "ways" in self.fields:
            return self._changed_moves(graph, None if follows is None else graph_of_case)
        replay, missing_answer = _run(self.fields, Rules(graph))
        failures = self._differences(replay, missing_answer)
        if failures and follows is not None:
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
            MateriaError: the loadout has problems, or needs answers that the test case does not contain (``no_test``).
        """
        graph, document = self._tested_loadout()
        if "ways" in self.fields:
            case = moves_case(Exploration(graph, self.fields["ways"]["items"]), document, self.fields.get("follows"))
        else:
            replay, missing_answer = _run(self.fields, Rules(graph))
            if missing_answer is not None and self.fields["expect"]["ends"] != "needs":
                raise _no_test_error(f"an answer is missing ({missing_answer.why})")
            case = {**self.fields, "expect": _expected(replay, missing_answer), "config": dict(document)}
        write_case(self.path, case)

    def _changed_moves(self, graph: Graph, graph_of_case: Graph | None) -> list[str]:
        """Return a line for each visit that has become possible or is no longer possible.

        If all visits are the same, the casts of the loadout are compared with those of ``graph_of_case``.
        """
        expected = self.fields["ways"]
        exploration = Exploration(graph, expected["items"])
        moves = exploration.moves
        missing = [f"No longer possible: {move}" for move in expected["moves"] if move not in moves]
        new = [f"Now also possible: {move}" for move in moves if move not in expected["moves"]]
        if not missing and not new and graph_of_case is not None:
            changes = behaviour_changes(Exploration(graph_of_case, expected["items"]), exploration)
            new = [
                f"{change.after}: {change.b} instead of {change.a}, after {' → '.join(change.route)}"
                for change in changes
            ]
        more = max(0, len(missing) - _MAX_CHANGES) + max(0, len(new) - _MAX_CHANGES)
        return [*missing[:_MAX_CHANGES], *new[:_MAX_CHANGES], *([f"and {more} more"] if more else [])]

    def _differences(self, replayed: Session, missing_answer: MissingAnswer | None) -> list[str]:
        expected = self.fields["expect"]
        failures = []
        if missing_answer is not None and expected["ends"] != "needs":
            failures.append(f"The replay needs an answer: {missing_answer.why}.")
        failures += _route_differences(expected["route"], _visits(replayed))
        if (ends := replay_end(replayed, missing_answer)) != expected["ends"]:
            failures.append(f"Expected end: {expected['ends']}. Actual end: {ends}.")
        for change in value_changes(expected["state"], dict(replayed.state.data))[:_MAX_CHANGES]:
            left, right = format_difference(change.a, change.b, _MAX_VALUE_CHARS)
            failures.append(f"state.{change.path} should be {left}, but is {right}.")
        return failures


def _route_differences(expected: list[JSON], actual: list[JSON]) -> list[str]:
    for number, (visit, other) in enumerate(zip(expected, actual, strict=False), start=1):
        if visit != other:
            return [f"Step {number} should be {_visit_words(visit)}, but is {_visit_words(other)}."]
    if len(expected) != len(actual):
        return [f"The cast should take {counted(len(expected), 'step')}, but takes {len(actual)}."]
    return []


def _visit_words(visit: Any) -> str:
    item = f" ({visit['item']})" if visit["item"] else ""
    return f"{visit['socket']}{item}, followed by {visit['to'] or 'nothing'}"


def _visits(session: Session) -> list[JSON]:
    return [
        {"socket": step.socket, "visit": step.visit, "item": step.item_key, "to": step_target(step)}
        for step in all_steps(session)
    ]


def case_of(
    rules: Rules, session: Session, document: Mapping[str, JSON], follows: str | None = None
) -> dict[str, JSON]:
    """Create the JSON document of a test case from a cast.

    Args:
        rules: the rules that the engine applies to the cast.
        session: the session of the cast.
        document: the config of the cast.
        follows: the path, relative to the test case, of the config file to test, which must contain a loadout with the
            same name; by default the config of the cast is tested.

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
    route, state = _visits(replay), dict(replay.state.data)
    if not equal_json(state, dict(session.state.data)) or route != _visits(session):
        raise _no_test_error("a replay of its answers has a different route or state")
    case["expect"] = _expected(replay, missing_answer)
    if follows is not None:
        case["follows"] = follows
    case["config"] = dict(document)
    return case


def _expected(replayed: Session, missing_answer: MissingAnswer | None) -> dict[str, JSON]:
    ends, state = replay_end(replayed, missing_answer), dict(replayed.state.data)
    return {"ends": ends, "route": _visits(replayed), "state": state}


def moves_case(exploration: Exploration, document: Mapping[str, JSON], follows: str | None = None) -> dict[str, JSON]:
    """Create a test case that lists all possible visits of a loadout. :func:`case_of` describes the arguments.

    Raises:
        MateriaError: the exploration was cut off, so some visits are unknown (``not_explored``).
    """
    case: dict[str, JSON] = {
        "format": CASE_FORMAT,
        "loadout": exploration.graph.name,
        "request": "",
        "answers": [],
        "expect": {},
        "ways": {"items": list(exploration.items), "moves": list(exploration.moves)},
    }
    if follows is not None:
        case["follows"] = follows
    return case | {"config": dict(document)}


def write_case(path: Path, case: Mapping[str, JSON]) -> Path:
    """Write a test case to a file, and return the path, whose suffix is always ``.materia-case.json``.

    Raises:
        DiskError: the file cannot be written.
    """
    if not path.name.endswith(SUFFIX):
        path = path.with_name(f"{path.name.removesuffix('.json')}{SUFFIX}")
    return write_export(path, "case", json.dumps(case, ensure_ascii=False, indent=1) + "\n")


def write_export(path: Path, kind: str, text: str) -> Path:
    """Write ``text`` to a file, create missing parent directories, and return the path. Errors mention ``kind``."""
    with disk_errors(path, f"write the {kind}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode("utf-8", "replace"))
    return path


def relative_config_path(folder: Path, follows: str | Path | None) -> str | None:
    """Return the path of a config file relative to the directory of a test case, or None if there is no config file."""
    return None if follows is None else os.path.relpath(Path(follows).absolute(), folder.absolute())


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
    missing = [name for name in _FIELDS if name not in fields]
    if missing:
        raise _CASE.format_error(path, f"it has no {missing[0]!r}")
    return Case(fields, path)


def _run(fields: Mapping[str, Any], rules: Rules) -> tuple[Session, MissingAnswer | None]:
    state = entering.begin(rules, fields["request"], fields.get("knowledge"), fields.get("state"))
    limits: dict[str, Any] = {bound.field: fields.get(bound.key) for bound in _BOUNDS}
    if any(entry is not None for entry in limits.values()):
        state = state._replace(budget=replace(rules.graph.budget, **limits))
    state = state._replace(budget=replace(state.budget, max_seconds=None))
    answers: RecordedAnswers = {
        ((entry["socket"], entry["item"], entry["label"]), entry["time"]): [_turn_of(turn) for turn in entry["turns"]]
        for entry in fields["answers"]
    }
    edits = [_edit(entry, state) for entry in fields.get("edits", [])]
    return send_answers(rules, session_at(state), answers, edits)


def _turn_of(turn: Mapping[str, Any]) -> TurnRecord | Failure:
    if "failed" in turn:
        return Failure(turn["failed"], turn["message"])
    usage = Usage(**turn["usage"]) if turn.get("usage") else None
    spent = tuple(Usage(**used) for used in turn.get("spent", ()))
    mode, text = turn["mode"], turn["text"]
    return TurnRecord(mode, None, text, None, None, usage, message=turn.get("message"), spent=spent)


def _edit(fields: Mapping[str, Any], start: CastState) -> Edit:
    before = start._replace(data=fields["before"], status=fields["status"], steps=fields["step"])
    return Edit(0, fields["step"], (), (), before, before._replace(data=fields["after"]))
