"""Casts as tests: a file with a loadout, answers, and what is to hold when they are sent through it.

A case of another kind holds every visit that there can be in a loadout, whatever is answered.

Nothing runs: no agent is asked and no process started, so such a test takes milliseconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from materia_nb.engine import entering
from materia_nb.engine.evolve import begin_at
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Edit, Session, TurnRecord, all_steps
from materia_nb.engine.state import BOUNDS, CastState, Usage
from materia_nb.errors import MateriaError, counted
from materia_nb.file_io import replace_file
from materia_nb.insight import diff
from materia_nb.insight.compare import (
    Comparison,
    MissingAnswer,
    RecordedAnswers,
    recorded_answers,
    replay_end,
    send_answers,
)
from materia_nb.insight.diff import ComparedCast, format_difference, value_changes
from materia_nb.insight.explore import Exploration
from materia_nb.jsonvalue import JSON, same
from materia_nb.loadout import build_graph, load_layers
from materia_nb.loadout.graph import Graph
from materia_nb.store.files import OwnFormat, disk

CASE_FORMAT: Final = "materia-nb case 1"
SUFFIX: Final = ".materia-case.json"
_CASE: Final = OwnFormat("case", CASE_FORMAT, "cast.export.test(path) writes one")
_FIELDS: Final = ("config", "loadout", "answers", "expect", "request")
_BOUNDS: Final = [bound for bound in BOUNDS if bound.of != "seconds"]
"""What a case bounds: answers that are read take no time."""
_SHOWN: Final = 80
_CHANGES: Final = 8


@dataclass(frozen=True, slots=True)
class Case:
    """A case as read from its file."""

    given: Mapping[str, Any]
    path: Path

    def check(self) -> list[str]:
        """Return what does not hold, a line each; empty when all does.

        Raises:
            MateriaError: the loadout has problems, the config that it is read from is not there, or the case was
                damaged (``bad_case``).
        """
        try:
            return self._check()
        except (KeyError, TypeError, AttributeError) as error:
            message = f"it lacks {error}" if isinstance(error, KeyError) else "a value is of the wrong type"
            raise MateriaError(
                f"The case is damaged: {message}.",
                where=str(self.path),
                hint="put back what was changed, or write it anew: cast.export.test(path)",
                kind="bad_case",
            ) from error

    def _check(self) -> list[str]:
        graph_of_case = build_graph(self.given["config"])
        follows = self.given.get("follows")
        graph = graph_of_case
        if follows is not None:
            folder = self.path.parent
            graph = load_layers(folder / follows, project=folder).graph(self.given["loadout"])
        if "ways" in self.given:
            return self._ways(graph)
        went, needs = _run(self.given, Rules(graph))
        failures = self._held(went, needs)
        if failures and follows is not None:
            before, _ = _run(self.given, Rules(graph_of_case))
            first = Comparison(
                ComparedCast("", Rules(graph_of_case), before), ComparedCast("", Rules(graph), went)
            ).first
            if first is not None:
                failures += ["A is the loadout of the case, B that of the file.", *str(first).splitlines()]
        return failures

    def _ways(self, graph: Graph) -> list[str]:
        """Walk the loadout again, and say which visits there can no longer be, and which there can be now."""
        expected = self.given["ways"]
        moves = Exploration(graph, expected["items"]).moves
        missing = [f"No way does this any more: {move}" for move in expected["moves"] if move not in moves]
        new = [f"A way does this now: {move}" for move in moves if move not in expected["moves"]]
        more = max(0, len(missing) - _CHANGES) + max(0, len(new) - _CHANGES)
        return [*missing[:_CHANGES], *new[:_CHANGES], *([f"and {more} more"] if more else [])]

    def _held(self, went: Session, needs: MissingAnswer | None) -> list[str]:
        expected = self.given["expect"]
        failures = [] if needs is None or expected["ends"] == "needs" else [f"It needs an answer: {needs.why}."]
        failures += _route(expected["route"], _visits(went))
        if (ends := replay_end(went, needs)) != expected["ends"]:
            failures.append(f"It should end: {expected['ends']}. It ends: {ends}.")
        for change in value_changes(expected["state"], dict(went.state.data))[:_CHANGES]:
            left, right = format_difference(change.a, change.b, _SHOWN)
            failures.append(f"state.{change.path} should be {left}. It is {right}.")
        return failures


def _route(expected: list[JSON], actual: list[JSON]) -> list[str]:
    for number, (visit, other) in enumerate(zip(expected, actual, strict=False), start=1):
        if visit != other:
            return [f"Step {number} should be {_words(visit)}. It is {_words(other)}."]
    if len(expected) != len(actual):
        return [f"It should take {counted(len(expected), 'step')}. It takes {len(actual)}."]
    return []


def _words(visit: Any) -> str:
    item = f" ({visit['item']})" if visit["item"] else ""
    return f"{visit['socket']}{item}, going to {visit['to'] or 'nowhere'}"


def _visits(session: Session) -> list[JSON]:
    return [
        {"socket": step.socket, "visit": step.visit, "item": step.item_key, "to": diff.step_target(step)}
        for step in all_steps(session)
    ]


def case_of(
    rules: Rules, session: Session, document: Mapping[str, JSON], follows: str | None = None
) -> dict[str, JSON]:
    """Return a cast as a case.

    Args:
        rules: what it runs by.
        session: everything that it knows.
        document: its config.
        follows: the config file whose loadout of that name is tested, relative to the case; its own if left out.

    Raises:
        MateriaError: its answers alone do not lead where it went (``no_test``).
    """
    if session.state.extra:
        raise _no_test("a limit was granted once more")
    start = session.start
    given: dict[str, JSON] = {
        "format": CASE_FORMAT,
        "loadout": rules.graph.name,
        "request": start.request,
        "state": dict(start.data),
        "knowledge": dict(start.knowledge),
        "maxTokens": session.state.budget.max_tokens,
        **{bound.key: most for bound in _BOUNDS if (most := bound.most(session.state.budget)) is not None},
        "answers": [
            {
                "socket": key[0],
                "item": key[1],
                "label": key[2],
                "time": times,
                "turns": list(map(_turn, turns)),
            }
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
    went, needs = _run(given, rules)
    if not same(dict(went.state.data), dict(session.state.data)) or _visits(went) != _visits(session):
        raise _no_test("its answers alone do not lead where it went")
    given["expect"] = {
        "ends": replay_end(went, needs),
        "route": _visits(went),
        "state": dict(went.state.data),
    }
    if follows is not None:
        given["follows"] = follows
    given["config"] = dict(document)
    return given


def ways_case(explored: Exploration, document: Mapping[str, JSON], follows: str | None = None) -> dict[str, JSON]:
    """Return everything that a loadout can do as a case; see :func:`case_of`.

    Raises:
        MateriaError: the search was cut off (``not_explored``).
    """
    document_: dict[str, JSON] = {
        "format": CASE_FORMAT,
        "loadout": explored.graph.name,
        "request": "",
        "answers": [],
        "expect": {},
        "ways": {"items": list(explored.items), "moves": list(explored.moves)},
    }
    if follows is not None:
        document_["follows"] = follows
    return document_ | {"config": dict(document)}


def write_case(path: Path, case: Mapping[str, JSON]) -> Path:
    """Write a case, the ending put behind a name that lacks it; returns its path.

    Raises:
        DiskError: it cannot be written.
    """
    if not path.name.endswith(SUFFIX):
        path = path.with_name(f"{path.name.removesuffix('.json')}{SUFFIX}")
    return write_export(path, "case", json.dumps(case, ensure_ascii=False, indent=1) + "\n")


def write_export(path: Path, kind: str, text: str) -> Path:
    """Write a file that is made of a cast, with the folders that lack on the way; returns its path."""
    with disk(path, f"write the {kind}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode("utf-8", "replace"))
    return path


def relative_to(folder: Path, follows: str | Path | None) -> str | None:
    """Return how a case in a folder names the config file that it follows; None when it follows none."""
    return None if follows is None else os.path.relpath(Path(follows).absolute(), folder.absolute())


def _no_test(why: str) -> MateriaError:
    return MateriaError(
        f"This cast cannot be a test: {why}.",
        hint="what a person decided and limits that were raised are not part of its answers",
        kind="no_test",
    )


def _turn(turn: TurnRecord) -> JSON:
    fields: dict[str, JSON] = {"mode": turn.mode, "text": turn.text}
    if turn.message is not None:
        fields["message"] = turn.message
    if turn.usage is not None:
        fields["usage"] = turn.usage.as_json()
    if turn.spent:
        fields["spent"] = [usage.as_json() for usage in turn.spent]
    return fields


def read_case(path: Path) -> Case:
    """Read a case.

    Raises:
        MateriaError: it cannot be read (``no_case``), or is none (``bad_case``).
    """
    fields = _CASE.read(path)
    missing = [name for name in _FIELDS if name not in fields]
    if missing:
        raise _CASE.bad(path, f"it has no {missing[0]!r}")
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
    return send_answers(rules, begin_at(state), answers, edits)


def _turn_of(turn: Mapping[str, Any]) -> TurnRecord:
    usage = Usage(**turn["usage"]) if turn.get("usage") else None
    spent = tuple(Usage(**one) for one in turn.get("spent", ()))
    mode, text = turn["mode"], turn["text"]
    return TurnRecord(mode, None, text, None, None, usage, message=turn.get("message"), spent=spent)


def _edit(fields: Mapping[str, Any], start: CastState) -> Edit:
    before = start._replace(data=fields["before"], status=fields["status"], steps=fields["step"])
    return Edit(0, fields["step"], (), (), before, before._replace(data=fields["after"]))
