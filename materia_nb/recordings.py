"""Recordings: what was answered in a cast, in one file that another cast can be answered from.

A recording holds no paths, no keys and nothing of the machine it was made on, so that a
notebook can ship one beside it and run the same way without a model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from materia_nb.agents.base import Reply, Usage
from materia_nb.agents.recorded import RecordedAgent, RecordedTurn
from materia_nb.engine.said import call_from
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON

if TYPE_CHECKING:
    from materia_nb.looks import Looks

FORMAT: Final = "materia-nb recording 1"


def recording_of(cast: Looks) -> dict[str, JSON]:
    """Return what agents and people answered in a cast, in order, as JSON.

    Utilities are not part of it: they run again. Of a cast that was taken back, only the steps
    that led to the present count.
    """
    turns: list[JSON] = []
    for step in cast.steps:
        if cast.rules.sockets[step.socket].socket.is_utility:
            continue
        for turn in step.turns:
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
            if turn.calls:
                entry["calls"] = [call.as_json() for call in turn.calls]
            if turn.meta:
                entry["meta"] = dict(turn.meta)
            turns.append(entry)
    return {"format": FORMAT, "loadout": cast.graph.name, "request": cast.request, "turns": turns}


def recording_text(cast: Looks) -> str:
    """Return the recording of a cast as the text of its file."""
    return json.dumps(recording_of(cast), ensure_ascii=False, indent=1) + "\n"


def read_recording(path: Path) -> RecordedAgent:
    """Make an agent of a recording's file.

    Raises:
        MateriaError: it cannot be read (``no_recording``), or is none (``bad_recording``).
    """
    try:
        given = json.loads(path.read_bytes())
    except OSError as error:
        raise MateriaError(
            f"The recording cannot be read: {error.strerror}.",
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
        found.setdefault((socket, visit), []).append(_turn(turn))
    return RecordedAgent(found, name=name)


def _turn(turn: Mapping[str, Any]) -> RecordedTurn:
    usage, meta, calls = turn.get("usage"), turn.get("meta"), turn.get("calls")
    used = (
        Usage(**{key: usage[key] for key in ("input", "output", "cost") if key in usage}) if usage else None
    )
    told = {**(meta if isinstance(meta, dict) else {}), "recorded": True}
    made = [
        call for one in (calls if isinstance(calls, list) else []) if (call := call_from(one)) is not None
    ]
    return RecordedTurn(Reply(str(turn["text"]), used, told), tuple(made))


def _bad(where: Path | str, why: str) -> MateriaError:
    return MateriaError(
        f"This is no recording: {why}.",
        where=str(where),
        hint="record FILE writes one of the current cast",
        kind="bad_recording",
    )
