"""Handoff envelopes as files of their own, for tools that read them (envelope rules, section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from pathlib import Path

from materia_nb.engine.facts import turn_facts
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState, Visit
from materia_nb.handoff.envelope import names
from materia_nb.handoff.protocol import Reading
from materia_nb.store.files import disk, json_bytes, replace_file
from materia_nb.store.rundir import RunDir


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
    if here.filing is None or reading is None or not isinstance(reading.value, dict):
        return
    facts = turn_facts(rules, here, state, visit)
    timestamp = datetime.fromtimestamp(ts / 1000, UTC).isoformat(timespec="milliseconds")
    value = here.filing.filed(reading.value, {**facts.meta, "timestamp": timestamp})
    step = step_names(tuple(rules.sockets))[visit.socket]
    found = names(str(run_dir), _safe(facts.meta["flow_key"]), step, _safe(facts.meta["agent_key"]))
    draft, final = Path(found.draft), Path(found.final)
    RunDir(run_dir).check_inside(draft.parent.relative_to(run_dir).as_posix())
    with disk(draft, "write the envelope"):
        draft.parent.mkdir(parents=True, exist_ok=True)
        replace_file(draft, json_bytes(value, indent=2))
        if done:
            draft.replace(final)


@lru_cache(maxsize=8)
def step_names(sockets: tuple[str, ...]) -> Mapping[str, str]:
    """Return what each socket is called in a file name, where a hyphen would end it: no two the same.

    An id that can stand as it is stands so; in another one every such sign is written ``_``, and what
    would be another socket's name gets a number.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for socket in sorted(sockets, key=lambda one: _step(one) != one):
        wanted = _step(socket)
        more = (f"{wanted}_{number}" for number in count(2))
        name = wanted
        while name.casefold() in taken:
            name = next(more)
        found[socket] = name
        taken.add(name.casefold())  # some file systems do not tell A from a
    return found


def _step(socket: str) -> str:
    return _safe(socket).replace("-", "_")


def _safe(text: str) -> str:
    kept = "".join(
        char if char.isalnum() or char in "_-" else "_" for char in text.encode("ascii", "replace").decode()
    )
    return kept[:100] or "_"
