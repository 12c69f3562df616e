"""Handoff envelopes as files of their own, for tools that read them (envelope rules, section 6)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from materia_nb.engine.facts import turn_facts
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState, Visit
from materia_nb.handoff.envelope import Names, names, with_meta
from materia_nb.handoff.protocol import Reading
from materia_nb.store.files import disk, json_bytes, replace_file
from materia_nb.store.rundir import RunDir

PROTOCOL: Final = "envelope"


def keep_envelope(
    run_dir: Path,
    rules: Rules,
    state: CastState,
    visit: Visit,
    reading: Reading | None,
    ts: int,
    *,
    done: bool,
) -> None:
    """Write the envelope of a visit: as a draft until the socket is completed, then under its final name.

    Args:
        run_dir: the cast's directory.
        rules: what the cast runs by.
        state: the state in which the output was read.
        visit: which visit.
        reading: what was made of the output; without an object in it nothing is written.
        ts: when, in milliseconds.
        done: whether the socket is completed.
    """
    here = rules.sockets[visit.socket]
    if here.protocol.name != PROTOCOL or reading is None or not isinstance(reading.value, dict):
        return
    facts = turn_facts(rules, here, state, visit)
    timestamp = datetime.fromtimestamp(ts / 1000, UTC).isoformat(timespec="milliseconds")
    value = with_meta(reading.value, {**facts.meta, "timestamp": timestamp})
    found = _names(run_dir, facts.meta)
    draft, final = Path(found.draft), Path(found.final)
    RunDir(run_dir).check_inside(draft.parent.relative_to(run_dir).as_posix())
    with disk(draft, "write the envelope"):
        draft.parent.mkdir(parents=True, exist_ok=True)
        replace_file(draft, json_bytes(value, indent=2))
        if done:
            draft.replace(final)


def _names(run_dir: Path, meta: object) -> Names:
    """The paths of a step's envelope; what cannot be part of a file name is written with ``_``."""
    assert isinstance(meta, dict)  # noqa: S101 - turn_facts makes one
    flow, step, agent = (_safe(str(meta[name])) for name in ("flow_key", "step_id", "agent_key"))
    return names(str(run_dir), flow, step, agent)


def _safe(text: str) -> str:
    kept = "".join(
        char if char.isalnum() or char in "_-" else "_" for char in text.encode("ascii", "replace").decode()
    )
    return kept[:100] or "_"
