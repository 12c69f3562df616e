"""Recordings: what was answered in a cast, in one file that another cast can be answered from.

A recording holds no paths, no keys and nothing of the machine it was made on, so that a
notebook can ship one beside it and run the same way without a model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from materia_nb.agents.interface import Reply, TurnKind, Usage
from materia_nb.agents.notebook_agents import RecordedAgent, RecordedTurn
from materia_nb.engine.conversation import call_from
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.store.files import read_plain

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot

LONGEST: Final = 2**28
"""The longest recording that is read, in bytes."""

FORMAT: Final = "materia-nb recording 1"
_META: Final = ("model", "provider", "finish")
"""What is recorded of the things that an agent gives beside an answer; others may hold paths or keys."""
_KINDS: Final[Mapping[str, TurnKind]] = {
    "work": "work",
    "repair": "repair",
    "draft": "refine",
    "final": "finalize",
    "resume": "resume",
}
"""What an agent is asked for in a turn of a recorded mode; the first draft of a visit is asked for as work."""


def recording_of(cast: Snapshot) -> dict[str, JSON]:
    """Return what agents and people answered in a cast, in order, as JSON.

    Utilities are not part of it: they run again. Of a cast that was taken back, only the steps
    that led to the present count, and of a visit that was recast, only its turns since; what the
    earlier ones used up is kept with the first of these.
    """
    turns: list[JSON] = []
    for step in cast.steps:
        if cast.rules.sockets[step.socket].socket.is_utility:
            continue
        earlier = [used for turn in step.turns[: step.left] for used in (*turn.spent, turn.usage) if used]
        for turn in step.turns[step.left :]:
            if turn.mode == "correction":
                continue
            entry: dict[str, JSON] = {
                "socket": step.socket,
                "visit": step.visit,
                "kind": turn.mode,
                "text": turn.text,
            }
            if turn.usage is not None:
                entry["usage"] = dict(turn.usage._asdict())
            if spent := [*earlier, *turn.spent]:
                entry["spent"] = [dict(used._asdict()) for used in spent]
                earlier = []
            if turn.calls:
                entry["calls"] = [call.as_json() for call in turn.calls]
            if meta := {name: turn.meta[name] for name in _META if name in turn.meta}:
                entry["meta"] = meta
            turns.append(entry)
    return {"format": FORMAT, "loadout": cast.graph.name, "request": cast.request, "turns": turns}


def recording_text(cast: Snapshot) -> str:
    """Return the recording of a cast as the text of its file."""
    return json.dumps(recording_of(cast), ensure_ascii=False, indent=1) + "\n"


def read_recording(path: Path) -> RecordedAgent:
    """Make an agent of a recording's file.

    Raises:
        MateriaError: it cannot be read (``no_recording``), or is none (``bad_recording``).
    """
    try:
        given = json.loads(read_plain(path, LONGEST))
    except (OSError, UnicodeEncodeError) as error:
        raise MateriaError(
            f"The recording cannot be read: {getattr(error, 'strerror', 'this is no file name')}.",
            where=str(path),
            hint="record FILE writes one of the current cast",
            kind="no_recording",
        ) from error
    except (ValueError, RecursionError) as error:
        raise _bad(path, f"it is not JSON ({error})") from error
    return agent_of(given, path.name, path)


def agent_of(recording: JSON, name: str, where: Path | str = "") -> RecordedAgent:
    """Make an agent that answers as a recording says; ``name`` is what it is called where it is shown."""
    if not isinstance(recording, dict) or recording.get("format") != FORMAT:
        raise _bad(where, f"its format is not {FORMAT!r}")
    turns = recording.get("turns")
    found: dict[tuple[str, int], list[RecordedTurn]] = {}
    for number, turn in enumerate(turns if isinstance(turns, list) else [None]):
        if not isinstance(turn, dict) or not isinstance(turn.get("text"), str):
            raise _bad(where, f"turns[{number}] has no text")
        socket, visit = turn.get("socket"), turn.get("visit")
        if not isinstance(socket, str) or not isinstance(visit, int):
            raise _bad(where, f"turns[{number}] does not say which visit of which socket it answers")
        so_far = found.setdefault((socket, visit), [])
        so_far.append(_turn(turn, first=not so_far))
    return RecordedAgent(found, name=name)


def _turn(turn: Mapping[str, Any], *, first: bool) -> RecordedTurn:
    mode, usage, meta = turn.get("kind"), turn.get("usage"), turn.get("meta")
    kind: TurnKind | None = "work" if first and mode == "draft" else _KINDS.get(str(mode))
    told = {**(meta if isinstance(meta, dict) else {}), "recorded": True}
    calls = [call for one in _list(turn.get("calls")) if (call := call_from(one)) is not None]
    spent = [used for one in _list(turn.get("spent")) if (used := _usage(one)) is not None]
    return RecordedTurn(Reply(str(turn["text"]), _usage(usage), told), tuple(calls), kind, tuple(spent))


def _usage(given: object) -> Usage | None:
    if not isinstance(given, dict) or not given:
        return None
    return Usage(**{key: given[key] for key in ("input", "output", "cost") if key in given})


def _list(given: object) -> list[Any]:
    return given if isinstance(given, list) else []


def _bad(where: Path | str, why: str) -> MateriaError:
    return MateriaError(
        f"This is no recording: {why}.",
        where=str(where),
        hint="record FILE writes one of the current cast",
        kind="bad_recording",
    )
