"""Test casts that continue along a ``failed`` edge: the journal records it, and a resumed cast is equal (R60)."""

from __future__ import annotations

import cast_helpers as h
from materia_nb.cast import resume_cast


def document(**fields):
    return h.config(
        {
            "Socket-1": h.at("Try", ("always", "Socket-3"), ("failed", "Socket-2")),
            "Socket-2": h.at("Mend", ("always", "Socket-3")),
            "Socket-3": h.at("Tell"),
        },
        {"Try": fields, "Mend": h.agent(), "Tell": h.agent()},
    )


def sockets(cast):
    return [socket for socket, *_ in cast.route]


def test_cast_continues_after_a_failed_process_and_the_journal_records_the_reason(tmp_path):
    cast = h.start(tmp_path, document(**h.python("raise SystemExit(3)", parse="json")), lambda: "done")
    assert cast.run() == "complete"
    assert sockets(cast) == ["Socket-1", "Socket-2", "Socket-3"]
    (failed,) = [line["data"] for line in h.lines_of(cast) if line["type"] == "socket_failed"]
    assert (failed["socket"], failed["kind"]) == ("Socket-1", "utility_exit")
    assert "exited with code 3" in failed["error"]
    assert failed["worked"] >= 0
    cast.close()
    resumed = resume_cast(cast.run_dir)
    assert resumed.runner.session == cast.runner.session
    resumed.close()


def test_cast_continues_after_a_failed_agent_and_the_next_agent_sees_the_reason(tmp_path):
    prompts = []

    def agent(turn):
        if turn.socket_id == "Socket-1":
            raise ValueError("the network is gone")
        prompts.append(turn.prompt)
        return "done"

    cast = h.start(tmp_path, document(**h.agent()), agent)
    assert cast.run() == "complete"
    assert "the network is gone" in prompts[0]
    assert "It failed: " in str(cast.why(1))
    cast.close()


def test_stderr_of_a_process_with_a_refused_output_is_shown_for_past_steps(tmp_path):
    code = "import sys; sys.stderr.write('the disk is full'); print('no json')"
    cast = h.start(tmp_path, document(**h.python(code, parse="json")), lambda: "done")
    cast.step()
    reached = cast.at(1).engine
    assert "the disk is full" in reached.handoffs.entries[-1].text
    cast.run()
    assert cast.at(1).engine == reached
    cast.close()
