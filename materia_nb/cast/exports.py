"""Exports of a cast as an HTML page, a recording, a test case or files (``cast.export``), and the reader of recordings.

A recording does not contain paths, secret keys or other data about the machine. A notebook that is distributed together
with a recording gives the same results without a model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from materia_nb.agents.interface import KIND_BY_MODE, Reply, TurnKind, Usage
from materia_nb.agents.notebook_agents import RecordedAgent, RecordedTurn, recording_key
from materia_nb.cast.cases import case_of, write_case, write_export
from materia_nb.cast.edits import PartOfCast
from materia_nb.engine.conversation import parse_call
from materia_nb.engine.session import Session, StepRecord, parts_of
from materia_nb.engine.state import Mode
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON, as_list
from materia_nb.loadout import read_config
from materia_nb.store.files import FileFormat
from materia_nb.store.rundir import write_prompt

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot


class Exports(PartOfCast):
    """Methods that export a cast."""

    def __repr__(self) -> str:
        return f"<exports of {self._runner.run_dir.path.name}: page, recording, test ...>"

    def page(self, path: str | Path) -> Path:
        """Write the cast to a self-contained HTML page, and return the path of the page."""
        from materia_nb.cast.views.step_views import cast_page_html

        return write_export(Path(path), "page", cast_page_html(self._runner.snapshot()))

    def recording(self, path: str | Path) -> Path:
        """Write the answers of the cast to a recording file for other casts, and return the path of the file."""
        text = json.dumps(recording_of(self._runner.snapshot()), ensure_ascii=False, indent=1) + "\n"
        return write_export(Path(path), "recording", text)

    def derived_files(self) -> None:
        """Write the files derived from the journal now, instead of at the end of the run."""
        self._runner.write_now()

    def contexts(self) -> Path:
        """Write the prompts of all turns to ``contexts/`` in the run directory, and return the path of this directory.

        There is one file per visit. If the config sets ``artifacts`` to ``"all"``, casts write these files
        automatically (R63).

        Raises:
            MateriaError: the cast is open read-only (``read_only``), or the files cannot be written.
        """
        runner = self._runner
        with runner.lock(), runner.change():
            for part in parts_of(runner.session):
                for step in part.steps:
                    write_prompt(runner.run_dir, runner.rules, step, part.prefix)
        return runner.run_dir.path / "contexts"

    def test(self, path: str | Path, *, follows: str | Path | None = None) -> Path:
        """Write the cast to a test case for ``pytest``, and return the path ``NAME.materia-case.json``.

        The test replays the recorded answers in the loadout, without running agents or processes. It passes if the
        route, the end and the final state are the same.

        Args:
            path: the path of the test case; the suffix is added if it is missing.
            follows: the path of the config file to test, which must contain a loadout with the same name; by default
                the test contains a copy of the loadout of this cast.

        Raises:
            MateriaError: a replay of the answers takes another route or has another final state (``no_test``), or this
                engine cannot cast the recorded loadout (``not_castable``).
        """
        self._runner.snapshot().require_castable()
        document = read_config(self._runner.run_dir.path / "config.resolved.json")
        case = case_of(self._runner.rules, self._runner.session)
        return write_case(Path(path).absolute(), case, document, follows)


RECORDING_FORMAT: Final = "materia-nb recording 1"
_RECORDING: Final = FileFormat(
    "recording", RECORDING_FORMAT, "write a recording of the current cast with `export recording FILE`"
)
_META: Final = ("model", "provider", "finish")
"""Names of the answer metadata that recordings include. Other metadata may contain paths or secret keys."""
# Kind of a turn by the `kind` field of a recording; the first draft of a visit is a `work` turn.
_KINDS: Final[Mapping[str, TurnKind]] = {mode: KIND_BY_MODE.get(mode, mode) for mode in get_args(Mode)}


def _recorded_steps(session: Session) -> list[StepRecord]:
    """Return the steps of a cast and of its lanes.

    Raises:
        MateriaError: the names of the lanes are not unique, so a recording cannot distinguish them (``no_recording``).
    """
    names = [name for streams in session.streams for name in streams.lanes]
    if len(set(names)) < len(names):
        raise MateriaError(
            "Items were distributed more than once to lanes with the same names, and a recording cannot distinguish the answers of these lanes.",
            hint="keep the run directory instead",
            kind="no_recording",
        )
    return [step for part in parts_of(session) for step in part.steps]


def recording_of(cast: Snapshot) -> dict[str, JSON]:
    """Return the answers of agents and people in a cast, in order, as the JSON document of a recording.

    The outputs of utilities are omitted, because utilities run again. Abandoned steps are also omitted. If a visit was
    retried, only the turns of the last try are included, and the usage of the earlier tries is added to the first of
    these turns.
    """
    turns: list[JSON] = []
    for step in _recorded_steps(cast.session):
        if cast.rules.sockets[step.socket].socket.is_utility:
            continue
        usages = [used for turn in step.turns[: step.turns_before_retry] for used in (*turn.spent, turn.usage) if used]
        for turn in step.turns[step.turns_before_retry :]:
            if turn.mode == "correction":
                continue
            entry: dict[str, JSON] = {"socket": step.socket, "visit": step.visit, "kind": turn.mode, "text": turn.text}
            if step.after.lane is not None:
                entry["lane"] = step.after.lane.name
            if turn.usage is not None:
                entry["usage"] = turn.usage.as_json()
            if spent := [*usages, *turn.spent]:
                entry["spent"] = [used.as_json() for used in spent]
                usages = []
            entry |= {name: text for name in ("thinking", "cut") if (text := getattr(turn, name))}
            if turn.calls:
                entry["calls"] = [call.as_json() for call in turn.calls]
            if meta := {name: turn.meta[name] for name in _META if name in turn.meta}:
                entry["meta"] = meta
            turns.append(entry)
    return {"format": RECORDING_FORMAT, "loadout": cast.graph.name, "request": cast.request, "turns": turns}


def read_recording(path: Path) -> RecordedAgent:
    """Read a recording from a file, and return an agent that replays its answers.

    Raises:
        MateriaError: the file cannot be read (``no_recording``), or is not a recording (``bad_recording``).
    """
    return agent_from_recording(_RECORDING.read(path), path.name, path)


def agent_from_recording(recording: JSON, name: str, where: Path | str = "") -> RecordedAgent:
    """Return an agent that replays the answers in a recording.

    Args:
        recording: the JSON document of the recording.
        name: the name of the agent.
        where: the path of the file, for error messages.

    Raises:
        MateriaError: the document is not a recording (``bad_recording``).
    """
    turns = _RECORDING.check(recording, where).get("turns")
    turns_of_visit: dict[tuple[str, int], list[RecordedTurn]] = {}
    for number, turn in enumerate(turns if isinstance(turns, list) else [None]):
        if not isinstance(turn, dict) or not isinstance(turn.get("text"), str):
            raise _RECORDING.format_error(where, f"turns[{number}] has no text")
        socket, visit = turn.get("socket"), turn.get("visit")
        if not isinstance(socket, str) or not isinstance(visit, int):
            raise _RECORDING.format_error(where, f"turns[{number}] has no socket or visit")
        visit_turns = turns_of_visit.setdefault((recording_key(socket, str(turn.get("lane", ""))), visit), [])
        visit_turns.append(_turn(turn, first=not visit_turns))
    return RecordedAgent(turns_of_visit, name=name)


def _turn(turn: Mapping[str, Any], *, first: bool) -> RecordedTurn:
    mode, usage, meta = turn.get("kind"), turn.get("usage"), turn.get("meta")
    kind: TurnKind | None = "work" if first and mode == "draft" else _KINDS.get(str(mode))
    meta_fields = {**(meta if isinstance(meta, dict) else {}), "recorded": True}
    calls = tuple(filter(None, map(parse_call, as_list(turn.get("calls")))))
    spent = tuple(filter(None, map(_usage, as_list(turn.get("spent")))))
    texts = {name: turn[name] for name in ("thinking", "cut") if isinstance(turn.get(name), str)}
    return RecordedTurn(Reply(str(turn["text"]), _usage(usage), meta_fields, **texts), calls, kind, spent)


def _usage(value: object) -> Usage | None:
    if not isinstance(value, dict) or not value:
        return None
    return Usage(**{key: value[key] for key in Usage.__dataclass_fields__ if key in value})
