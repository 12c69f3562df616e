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
            what = f"it lacks {error}" if isinstance(error, KeyError) else "a value is of the wrong type"
            raise MateriaError(
                f"The case is damaged: {what}.",
                where=str(self.path),
                hint="put back what was changed, or write it anew: cast.export.test(path)",
                kind="bad_case",
            ) from error

    def _check(self) -> list[str]:
        kept = build_graph(self.given["config"])
        follows = self.given.get("follows")
        graph = kept
        if follows is not None:
            beside = self.path.parent
            graph = load_layers(beside / follows, project=beside).graph(self.given["loadout"])
        if "ways" in self.given:
            return self._ways(graph)
        went, needs = _run(self.given, Rules(graph))
        told = self._held(went, needs)
        if told and follows is not None:
            before, _ = _run(self.given, Rules(kept))
            first = Comparison(
                ComparedCast("", Rules(kept), before), ComparedCast("", Rules(graph), went)
            ).first
            if first is not None:
                told += ["A is the loadout of the case, B that of the file.", *str(first).splitlines()]
        return told

    def _ways(self, graph: Graph) -> list[str]:
        """Walk the loadout again, and say which visits there can no longer be, and which there can be now."""
        wanted = self.given["ways"]
        found = Exploration(graph, wanted["items"]).moves
        gone = [f"No way does this any more: {one}" for one in wanted["moves"] if one not in found]
        new = [f"A way does this now: {one}" for one in found if one not in wanted["moves"]]
        more = max(0, len(gone) - _CHANGES) + max(0, len(new) - _CHANGES)
        return [*gone[:_CHANGES], *new[:_CHANGES], *([f"and {more} more"] if more else [])]

    def _held(self, went: Session, needs: MissingAnswer | None) -> list[str]:
        wanted = self.given["expect"]
        told = [] if needs is None or wanted["ends"] == "needs" else [f"It needs an answer: {needs.why}."]
        told += _route(wanted["route"], _visits(went))
        if (ends := replay_end(went, needs)) != wanted["ends"]:
            told.append(f"It should end: {wanted['ends']}. It ends: {ends}.")
        for one in value_changes(wanted["state"], dict(went.state.data))[:_CHANGES]:
            left, right = format_difference(one.a, one.b, _SHOWN)
            told.append(f"state.{one.path} should be {left}. It is {right}.")
        return told


def _route(wanted: list[JSON], found: list[JSON]) -> list[str]:
    for number, (one, other) in enumerate(zip(wanted, found, strict=False), start=1):
        if one != other:
            return [f"Step {number} should be {_words(one)}. It is {_words(other)}."]
    if len(wanted) != len(found):
        return [f"It should take {counted(len(wanted), 'step')}. It takes {len(found)}."]
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


def ways_case(
    explored: Exploration, document: Mapping[str, JSON], follows: str | None = None
) -> dict[str, JSON]:
    """Return everything that a loadout can do as a case; see :func:`case_of`.

    Raises:
        MateriaError: the search was cut off (``not_explored``).
    """
    given: dict[str, JSON] = {
        "format": CASE_FORMAT,
        "loadout": explored.graph.name,
        "request": "",
        "answers": [],
        "expect": {},
        "ways": {"items": list(explored.items), "moves": list(explored.moves)},
    }
    if follows is not None:
        given["follows"] = follows
    return given | {"config": dict(document)}


def write_case(path: Path, case: Mapping[str, JSON]) -> Path:
    """Write a case, the ending put behind a name that lacks it; returns its path.

    Raises:
        DiskError: it cannot be written.
    """
    if not path.name.endswith(SUFFIX):
        path = path.with_name(f"{path.name.removesuffix('.json')}{SUFFIX}")
    return write_export(path, "case", json.dumps(case, ensure_ascii=False, indent=1) + "\n")


def write_export(path: Path, what: str, text: str) -> Path:
    """Write a file that is made of a cast, with the folders that lack on the way; returns its path."""
    with disk(path, f"write the {what}"):
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
    found: dict[str, JSON] = {"mode": turn.mode, "text": turn.text}
    if turn.message is not None:
        found["message"] = turn.message
    if turn.usage is not None:
        found["usage"] = turn.usage.as_json()
    if turn.spent:
        found["spent"] = [usage.as_json() for usage in turn.spent]
    return found


def read_case(path: Path) -> Case:
    """Read a case.

    Raises:
        MateriaError: it cannot be read (``no_case``), or is none (``bad_case``).
    """
    given = _CASE.read(path)
    missing = [name for name in _FIELDS if name not in given]
    if missing:
        raise _CASE.bad(path, f"it has no {missing[0]!r}")
    return Case(given, path)


def _run(given: Mapping[str, Any], rules: Rules) -> tuple[Session, MissingAnswer | None]:
    state = entering.begin(rules, given["request"], given.get("knowledge"), given.get("state"))
    most: dict[str, Any] = {bound.field: given.get(bound.key) for bound in _BOUNDS}
    if any(one is not None for one in most.values()):
        state = state._replace(budget=replace(rules.graph.budget, **most))
    state = state._replace(budget=replace(state.budget, max_seconds=None))
    answers: RecordedAnswers = {
        ((one["socket"], one["item"], one["label"]), one["time"]): [_turn_of(turn) for turn in one["turns"]]
        for one in given["answers"]
    }
    edits = [_edit(one, state) for one in given.get("edits", [])]
    return send_answers(rules, begin_at(state), answers, edits)


def _turn_of(turn: Mapping[str, Any]) -> TurnRecord:
    usage = Usage(**turn["usage"]) if turn.get("usage") else None
    spent = tuple(Usage(**one) for one in turn.get("spent", ()))
    mode, text = turn["mode"], turn["text"]
    return TurnRecord(mode, None, text, None, None, usage, message=turn.get("message"), spent=spent)


def _edit(given: Mapping[str, Any], start: CastState) -> Edit:
    before = start._replace(data=given["before"], status=given["status"], steps=given["step"])
    return Edit(0, given["step"], (), (), before, before._replace(data=given["after"]))
