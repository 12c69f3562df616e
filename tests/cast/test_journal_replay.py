"""Test that the journal of a cast always reproduces its state (R29)."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cast_helpers as h
from materia_nb.agents.interface import Reply, Usage
from materia_nb.cast import Cast, open_cast, resume_cast
from materia_nb.errors import MateriaError
from materia_nb.loadout import LoadoutError
from materia_nb.utilities.process import ProcessResult
from materia_nb.utilities.utility_step import UtilityResult


def check_everywhere(cast: h.WatchedCast, folder: Path) -> None:
    """Open the cast, resume it, and open it as it was after each of its changes."""
    h.assert_same(open_cast(cast.run_dir), cast)
    lines = h.lines_of(cast)
    sessions = dict(cast.seen)
    for count in range(1, len(lines) + 1):
        copy = h.prefix(cast.run_dir, count, folder / "prefix")
        opened = open_cast(copy)
        if count in sessions:  # else in the middle of one write, which a crash may cut there
            assert opened.runner.session == sessions[count], (count, lines[count - 1]["type"])
        assert opened.now.messages == []
        shutil.rmtree(copy)
    cast.close()
    resumed = resume_cast(cast.run_dir)
    h.assert_same(resumed, cast)
    assert resumed.now.messages == []
    assert resumed.now.differences == ()
    resumed.close()


def watched(folder: Path, document, agents=None) -> h.WatchedCast:
    return h.watched(folder, document, agents)


def test_loop_with_retries_is_rebuilt_from_its_journal(tmp_path):
    cast = watched(tmp_path, h.loop_config(), h.loop_agents(2, refuse=[1]))
    cast.run()
    assert cast.now.engine.rework_reasons == ()
    check_everywhere(cast, tmp_path)


def test_cast_with_real_processes_is_rebuilt(tmp_path):
    code = "import json, sys; d = json.load(sys.stdin); print(json.dumps({'state': {'n': d['state'].get('n', 0) + 1}}))"
    document = h.config(
        {
            "Socket-1": h.at("U", ("always", "Socket-2")),
            "Socket-2": h.at("U", ("always", "Socket-3")),
            "Socket-3": h.at("Bad"),
        },
        {"U": h.python(code, parse="json"), "Bad": h.python("print('[')", parse="json")},
    )
    cast = watched(tmp_path, document)
    assert cast.run() == "failed"
    assert cast.state["n"] == 2
    cast.retry()
    assert cast.failure.kind == "invalid_output"
    check_everywhere(cast, tmp_path)


def test_cast_with_drafts_refinements_and_repairs_is_rebuilt(tmp_path):
    answers = iter(["first", "second", "not json", '{"context": "final"}'])
    cast = watched(tmp_path, h.one_config(h.agent("D", multiTurn=True), parse="json"), lambda: next(answers))
    cast.run()
    cast.refine("more \ud800 of it")
    cast.accept()
    assert cast.run() == "complete"
    assert [turn.mode for turn in cast.steps[0].turns] == ["draft", "draft", "final", "repair"]
    check_everywhere(cast, tmp_path)


@pytest.mark.parametrize("go_on", [{}, {"limit": True}])
@pytest.mark.parametrize(
    "limits, kind",
    [
        ({"maxNoAdvanceCycles": 1}, "no_advance_cycles_exhausted"),
        ({"repairAttempts": 0}, "repair_exhausted"),
        ({}, "edge_traversals_exhausted"),
    ],
)
def test_cast_continued_after_a_limit_is_rebuilt(tmp_path, limits, kind, go_on):
    document = h.loop_config(limits=limits)
    edge = document["loadouts"]["T"]["sockets"]["Socket-3"]["edges"][1]
    edge.pop("maxTraversals") if "maxNoAdvanceCycles" in limits else edge.update(maxTraversals=1)
    bad = ["oops"] if "repairAttempts" in limits else []
    verdicts = iter([*bad, h.NO, h.NO, h.NO, h.YES, h.YES, *[h.YES] * 9])
    cast = watched(tmp_path, document, h.loop_agents(2) | {"Check": lambda: next(verdicts)})
    assert cast.run() == "failed"
    assert cast.failure.kind == kind
    for _ in range(4):
        if cast.status == "failed":
            cast.retry(**({"limit": True} if cast.failure.blocked else go_on))
        if cast.status == "ready":
            cast.run()
    check_everywhere(cast, tmp_path)


def test_cast_with_a_budget_stop_and_a_retry_is_rebuilt(tmp_path):
    cast = watched(
        tmp_path,
        h.chain_config(3) | {"budget": {"maxTokens": 20}},
        lambda: Reply("x", Usage(8, 7, 0.125)),
    )
    assert cast.run() == "failed"
    assert cast.failure.kind == "budget"
    with pytest.raises(MateriaError, match="still used up"):
        cast.retry(limit=True)
    cast.edit.budget(100)
    cast.retry(limit=True)
    cast.edit.budget(None)
    assert cast.run() == "complete"
    assert cast.now.engine.usage[:3] == (24, 21, 0.375)
    assert "budget_limit" in h.types_of(cast)
    check_everywhere(cast, tmp_path)


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("go_on", [{}, {"limit": True}])
def test_cast_continued_after_an_abort_is_rebuilt(tmp_path, between, go_on):
    cast = watched(tmp_path, h.chain_config(3), {"Socket-1": lambda: "1", "Socket-3": lambda: "3"})
    cast.run(steps=1)
    if not between:
        cast.step()
    cast.abort("no more")
    h.assert_same(open_cast(cast.run_dir), cast)
    cast.retry(**go_on)
    cast.reply("2")
    assert cast.run() == "complete"
    check_everywhere(cast, tmp_path)


def test_cast_with_failed_agents_and_interrupts_is_rebuilt(tmp_path):
    answers = iter([RuntimeError("a"), KeyboardInterrupt(), "x", RuntimeError("b"), "y"])

    def agent():
        answer = next(answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    cast = watched(tmp_path, h.chain_config(2), agent)
    while cast.status != "complete":
        with contextlib.suppress(KeyboardInterrupt):
            cast.retry() if cast.status == "failed" else cast.step()
    check_everywhere(cast, tmp_path)


def test_retried_utility_does_not_overwrite_refused_output(tmp_path):
    code = "import pathlib; p = pathlib.Path('n'); n = p.read_text() if p.exists() else ''; p.write_text(n + 'x'); print(n)"
    cast = watched(tmp_path, h.one_config(h.python(code, parse="json")))
    cast.run()
    cast.retry(limit=True)
    cast.retry(limit=True)
    assert [turn.text for turn in cast.steps[0].turns] == ["\n", "x\n", "xx\n"]
    check_everywhere(cast, tmp_path)


# -- anything that a person may do with any loadout ---------------------------------------

MATERIA = {
    "Talk": h.agent("{{request}} {{item.title}} {{lastOutput}}"),
    "Gen": h.agent("Plan", generator=True),
    "Draft": h.agent("Draft {{state.context}}", multiTurn=True),
    "Run": h.python("pass", parse="json", assign={"got": "$.context"}),
}
WHEN = st.sampled_from(["always", "satisfied", "not_satisfied"])


@st.composite
def configs(draw):
    names = [f"Socket-{n}" for n in range(1, draw(st.integers(1, 5)) + 1)]
    targets = st.sampled_from([*names, "end"])
    sockets = {}
    for name in names:
        materia = draw(st.sampled_from(["Talk", "Talk", "Gen", "Draft", "Run"]))
        edges = [
            (draw(WHEN), draw(targets), *([draw(st.integers(1, 2))] if draw(st.booleans()) else []))
            for _ in range(draw(st.integers(0, 3)))
        ]
        sockets[name] = h.at(materia, *edges)
        if materia != "Run" and (materia == "Gen" or draw(st.booleans())):
            sockets[name]["parse"] = "json"
        if draw(st.integers(0, 2)) == 0:
            sockets[name]["finalize"] = True
        if draw(st.integers(0, 3)) == 0:
            sockets[name]["foreach"] = {
                "items": "state.workItems",
                "as": draw(st.sampled_from(["it", "workItem"])),
            }
            sockets[name]["advance"] = {"when": draw(WHEN)}
    loops = None
    if len(names) >= 4 and draw(st.booleans()):
        sockets["Socket-1"] = h.at("Gen", ("always", "Socket-2"), parse="json")
        sockets["Socket-2"] = h.at("Talk", ("always", "Socket-3"))
        sockets["Socket-3"] = h.at("Talk", ("always", "Socket-2"), ("not_satisfied", "Socket-2"), parse="json")
        route = {"id": "e", "from": "Socket-3", "condition": draw(WHEN), "targetSocketId": draw(targets)}
        loops = {"L": {"sockets": ["Socket-2", "Socket-3"], "consumes": {"from": "Socket-1"}, "exits": [route]}}
    limits = {"maxEdgeTraversals": draw(st.integers(1, 4)), "maxNoAdvanceCycles": draw(st.integers(1, 2))}
    budget = {"maxTokens": draw(st.integers(0, 200))} if draw(st.booleans()) else {}
    return h.config(sockets, MATERIA, loops, limits=limits, budget=budget)


OUTPUTS = st.one_of(
    st.sampled_from([
        h.YES,
        h.NO,
        json.dumps({"workItems": h.items("a", "b")}),
        json.dumps({"workItems": h.items("c"), "satisfied": True, "context": "c"}),
        '{"workItems": []}',
        '{"context": "gesagt: ü 🜁", "state": {"k": [1, null]}}',
        '```json\n{"satisfied": false}\n```',
        "{}",
        "not json",
        '{"satisfied": "yes"}',
    ]),
    st.text(max_size=30),
)  # fmt: skip
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["run", "step", "step", "reply", "refine", "finalize", "retry", "raise_limit", "abort", "budget"]),
        OUTPUTS,
        st.sampled_from(["answer", "answer", "answer", "person", "raise", "interrupt"]),
    ),
    min_size=3,
    max_size=25,
)  # fmt: skip


def _process(stdout: str, *, fails: bool) -> UtilityResult:
    done = ProcessResult(
        argv=("x",), code=int(fails), signal=None, timed_out=False, stopped=False, started=True, start_error=None,
        stdout=stdout.encode(errors="replace"), stderr=b"", stdout_truncated=False, stderr_truncated=False, seconds=0.5,
    )  # fmt: skip
    return UtilityResult(done, done.stdout.decode(), "utility_exit" if fails else None, summary="It ended.")


def _play(cast: Cast, actions, current: dict) -> None:
    verbs = {
        "run": lambda text: cast.run(steps=6),
        "step": lambda text: cast.step(),
        "reply": cast.reply,
        "refine": cast.refine,
        "finalize": lambda text: cast.accept(),
        "retry": lambda text: cast.retry(),
        "raise_limit": lambda text: cast.retry(limit=True),
        "abort": cast.abort,
        "budget": lambda text: cast.edit.budget(len(text) * 20),
    }
    for verb, text, how in actions:
        current.update(text=text, how=how)
        with contextlib.suppress(MateriaError, KeyboardInterrupt):
            verbs[verb](text)


@given(document=configs(), actions=ACTIONS)
@settings(max_examples=60)
def test_any_random_cast_is_rebuilt_from_its_journal(document, actions):
    current = {"text": "", "how": "answer"}

    def agent(turn):
        if current["how"] == "raise":
            raise RuntimeError(current["text"])
        if current["how"] == "interrupt":
            raise KeyboardInterrupt
        return Reply(current["text"], Usage(len(turn.prompt) % 7, len(current["text"]), 0.5))

    def utility(*_args, **_kwargs):
        if current["how"] == "interrupt":
            raise KeyboardInterrupt
        return _process(current["text"], fails=current["how"] == "raise")

    class Sometimes:
        name = "sometimes"

        def answer(self, turn):
            return None if current["how"] == "person" else agent(turn)

    with tempfile.TemporaryDirectory() as folder, mock.patch("materia_nb.cast.work.run_utility", utility):
        try:
            cast = watched(Path(folder), document, Sometimes())
        except LoadoutError:
            return
        _play(cast, actions, current)
        check_everywhere(cast, Path(folder))


def test_randomly_generated_loadouts_can_be_cast():
    """The property above would be vacuous if every generated loadout were refused."""
    valid = []

    @given(document=configs())
    @settings(max_examples=50, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    def collect(document):
        with contextlib.suppress(LoadoutError):
            valid.append(h.plan(Path(), document))

    collect()
    assert len(valid) > 8


def test_r23_failure_for_non_json_output_names_command_code_stderr_and_artifacts(tmp_path):
    code = "import sys; print('not json'); sys.stderr.write('I meant well')"
    cast = h.start(tmp_path, h.one_config(h.python(code, parse="json")))
    assert cast.run() == "failed"
    assert "$: " in cast.failure.message
    for told in ("code 0", "-I -S -c", "stderr: I meant well", "sockets/Socket-1/1.command.stdout.txt"):
        assert told in cast.failure.message
    assert h.lines_of(cast)[-1]["data"]["error"] == cast.failure.message
    h.assert_same(open_cast(cast.run_dir), cast)
