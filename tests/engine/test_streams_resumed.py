"""Test that a cast with lanes that is resumed from any prefix of its journal equals the live cast."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import cast_helpers as h
from materia_nb.agents.interface import NeedsApproval, Reply, ToolCall, Usage
from materia_nb.cast import resume_cast
from materia_nb.errors import MateriaError
from materia_nb.store.journal import read_journal
from materia_nb.store.reader import read_session
from stream_helpers import plan_of, streams_config

EXAMPLES = int(os.environ.get("MATERIA_EXAMPLES", "20"))
LANES = {"a": [2, 0], "b": [1]}


class Anybody:
    """An agent that answers, fails, calls a tool or waits for a person, as ``how`` specifies."""

    name = "anybody"
    how = "answer"

    def answer(self, turn):
        if turn.socket_id == "Socket-1":
            return Reply(plan_of(LANES), Usage(3, 1, 0.25))
        if self.how == "person":
            return None
        if self.how == "fail":
            raise RuntimeError("gone")
        if self.how == "tool" and "bash" not in turn.allowed and not any(call.decided for call in turn.calls):
            return NeedsApproval((ToolCall(id="1", tool="bash", args={"command": "make"}),))
        return Reply({"bad": "no json", "no": h.NO}.get(self.how, h.YES), Usage(1, 2, 0.5))


def lane(n):
    return "ab"[n % 2]


COMMANDS = {
    "step": lambda cast, n: cast.step(),
    "run": lambda cast, n: cast.run(steps=n % 3 + 1),
    "run on": lambda cast, n: cast.run(),
    "reply": lambda cast, n: cast.reply((h.YES, h.NO, "no json")[n % 3], lane=lane(n)),
    "approve": lambda cast, n: cast.approvals.in_lane(lane(n)).approve(always=bool(n % 3)),
    "deny": lambda cast, n: cast.approvals.in_lane(lane(n)).deny("no"),
    "abort": lambda cast, n: cast.abort("enough"),
    "retry": lambda cast, n: cast.retry(limit=bool(n % 2)),
    "back": lambda cast, n: cast.back(n % (len(cast.steps) + 1)),
    "budget": lambda cast, n: cast.edit.budget(n if n % 3 else None),
    "value": lambda cast, n: cast.edit.set("x", n),
    "pin": lambda cast, n: cast.pins.add("Build", "pinned") if n % 2 else cast.pins.remove("Build"),
    "allow": lambda cast, n: cast.approvals.allow("bash") if n % 2 else cast.approvals.disallow(),
}
COMMAND = st.tuples(
    st.sampled_from(["step", "run", "run on", "retry", *COMMANDS]),
    st.integers(0, 30),
    st.sampled_from(["answer"] * 4 + ["no", "person", "fail", "bad", "tool"]),
)


@given(limit=st.sampled_from([1, 2]), commands=st.lists(COMMAND, min_size=3, max_size=14))
@settings(max_examples=EXAMPLES, deadline=None)
def test_journal_of_any_sequence_of_commands_rebuilds_the_lanes(limit, commands):
    agent = Anybody()
    with tempfile.TemporaryDirectory() as folder:
        cast = h.watched(Path(folder), streams_config(limit), agent)
        for name, number, agent.how in commands:
            with contextlib.suppress(MateriaError):
                COMMANDS[name](cast, number)
        cast.close()
        lines = read_journal(cast.run_dir / "events.jsonl").lines
        texts = lambda name: (cast.run_dir / name).read_text()  # noqa: E731
        for count, session in dict(cast.seen).items():
            read = read_session(cast.runner.rules, lines[:count], texts, strict=True)
            assert read.session == session, (count, lines[count - 1].type)
        resumed = resume_cast(cast.run_dir, h.table(agent))
        assert resumed.runner.session == cast.runner.session
        agent.how = "answer"
        with contextlib.suppress(MateriaError):
            resumed.retry()
        resumed.close()
