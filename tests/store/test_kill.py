"""A process that casts, resumes or forks, killed with SIGKILL at any moment: nothing recorded is lost (R29).

Each child process is forked from this one, which has everything loaded already; it runs a generator,
a loop of function agents and a utility that is a real process. The moment of each kill is drawn from
a seeded generator: when the journal has so many bytes, or a random while after that, so that kills
also fall between an artifact and its journal line.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb.cast import open_cast, resume_cast
from materia_nb.store.journal import read_journal
from materia_nb.store.opening import verify
from stream_helpers import stream_agents, streams_config

KILLS = int(os.environ.get("MATERIA_KILLS", "10"))
"""How many processes are killed in each test; 500 by hand."""
ITEMS = 3
LANES = {"a": [4, 0], "b": [1], "c": [2, 3]}
UTILITY = (
    "import json, os, sys; d = json.load(sys.stdin); n = d['state']['count'] + 1 if 'count' in d['state'] else 1; "
    "f = os.open('ran.txt', os.O_WRONLY | os.O_APPEND | os.O_CREAT); os.write(f, f'Socket-4 {n}\\n'.encode()); "
    "print(json.dumps({'state': {'count': n}, 'satisfied': True}))"
)


def document() -> h.Json:
    """Plan, then for each item: build, check (twice for the second item), count with a real process."""
    return h.config(
        {
            "Socket-1": h.at("Plan", ("always", "Socket-2"), parse="json"),
            "Socket-2": h.at("Build", ("always", "Socket-3")),
            "Socket-3": h.at(
                "Check", ("satisfied", "Socket-4"), ("not_satisfied", "Socket-2", 2), parse="json"
            ),
            "Socket-4": h.at("Count", ("always", "Socket-2")),
            "Socket-5": h.at("Tell"),
        },
        {
            "Plan": h.agent("Plan", generator=True),
            "Build": h.agent("Build {{item.title}} {{lastOutput}}"),
            "Check": h.agent("Check"),
            "Count": h.python(UTILITY, parse="json"),
            "Tell": h.agent("Tell {{state.count}} {{state.context}}"),
        },
        {
            "L": {
                "sockets": ["Socket-2", "Socket-3", "Socket-4"],
                "consumes": {"from": "Socket-1", "output": "workItems"},
                "exits": [
                    {"id": "e", "from": "Socket-4", "condition": "always", "targetSocketId": "Socket-5"}
                ],
            }
        },
    )


def agents(project: Path) -> dict[str, object]:
    """Agents that say the same when asked again, and note each time that they are asked."""

    def noted(turn):
        handle = os.open(project / "ran.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{turn.socket_id} {turn.visit}\n".encode())
        os.close(handle)
        if turn.socket_id == "Socket-1":
            return {"workItems": h.items(*[f"Part {n}" for n in range(1, ITEMS + 1)])}
        if turn.socket_id == "Socket-3":
            return h.NO if turn.visit == 2 else h.YES
        return f"{turn.prompt.splitlines()[0]} done at visit {turn.visit} " + "." * 2000

    return dict.fromkeys(("Plan", "Build", "Check", "Tell"), noted)


def cast_it(project: str, _: object = None) -> None:
    """What the child process does."""
    root = Path(project)
    runs = sorted((root / "casts").glob("2*Z"))
    if runs:
        cast = resume_cast(runs[0], h.table(agents(root)))
        if cast.status != "complete":
            cast.run()
    else:
        h.start(root, document(), agents(root)).run()


def journal_bytes(project: Path) -> int:
    """How long the journal is; 0 while there is none."""
    try:
        return sum(path.stat().st_size for path in (project / "casts").glob("*/events.jsonl"))
    except FileNotFoundError:
        return 0


def cast_lanes(project: str) -> None:
    """What the child process does that works in lanes."""
    h.start(Path(project), streams_config(3), stream_agents(LANES)).run()


def kill_at(project: Path, size: int, spins: int, act: Callable[[str], None] = cast_it) -> bool:
    """Run a child until its journal has ``size`` bytes, then kill it; says whether it was still running."""
    child = multiprocessing.get_context("fork").Process(target=act, args=(str(project),))
    child.start()
    try:
        deadline = time.monotonic() + 60
        while journal_bytes(project) < size and child.is_alive():
            assert time.monotonic() < deadline
        for _ in range(spins):  # a little real work: the child is somewhere behind that byte now
            journal_bytes(project)
        child.kill()
    finally:
        child.join(60)
    return child.exitcode == -signal.SIGKILL


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    project = tmp_path_factory.mktemp("whole")
    cast = h.start(project, document(), agents(project))
    assert cast.run() == "complete"
    return cast, Counter((project / "ran.txt").read_text().splitlines())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kills_end_where_no_kill_ends(undisturbed, tmp_path):
    whole, ran = undisturbed
    chance = random.Random(20)
    length = (whole.run_dir / "events.jsonl").stat().st_size
    landed = Counter()
    for number in range(KILLS):
        project = tmp_path / str(number)
        project.mkdir()
        killed = kill_at(project, chance.randrange(1, length), chance.choice([0, 0, 1, 3, 10, 30, 100]))
        runs = list((project / "casts").glob("2*Z"))
        assert len(runs) == 1, "the size was chosen so that the cast had begun"
        recorded = read_journal(runs[0] / "events.jsonl")
        before = open_cast(runs[0])
        cast = resume_cast(runs[0], h.table(agents(project)))
        landed[before.status if killed else "too late"] += 1
        if cast.status != "complete":
            assert cast.run() == "complete"
        again = Counter((project / "ran.txt").read_text().splitlines()) - ran
        # nothing recorded is lost
        after = read_journal(runs[0] / "events.jsonl")
        assert after.lines[: len(recorded.lines)] == recorded.lines
        # the same end, by the same way
        assert cast.route == whole.route
        assert h.timeless(cast.now.engine) == h.timeless(whole.now.engine)
        assert [step.decision for step in cast.steps] == [step.decision for step in whole.steps]
        # at most the interrupted socket ran again
        assert sum(again.values()) <= 1
        if again:
            assert before.status == "waiting"
            visit = before.now.waiting_at
            assert list(again) == [f"{visit.socket} {visit.visit}"]
        assert cast.now.messages in ([], [m for m in cast.now.messages if "set aside" in m])
        cast.close()
    assert sum(landed.values()) == KILLS
    assert landed["too late"] < KILLS / 2, landed
    assert landed["waiting"] > KILLS / 5, landed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_cast_killed_again_and_again_comes_to_its_end(undisturbed, tmp_path):
    whole, ran = undisturbed
    chance = random.Random(5)
    kills = 0
    for _ in range(100):
        grown = journal_bytes(tmp_path) + chance.randrange(1, 1_500)
        if not kill_at(tmp_path, grown, chance.randrange(5)):
            break
        kills += 1
    (run,) = (tmp_path / "casts").glob("2*Z")
    cast = open_cast(run)
    assert (cast.status, cast.route) == ("complete", whole.route)
    assert h.timeless(cast.now.engine) == h.timeless(whole.now.engine)
    again = Counter((tmp_path / "ran.txt").read_text().splitlines()) - ran
    assert 0 < kills < 100  # few on a busy machine, where the child runs on before it is killed
    assert sum(again.values()) <= kills


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_lanes_that_are_killed_come_to_the_same_result(tmp_path):
    """The journal is killed at any moment; each lane goes on where its lines end, and those that are over stay."""
    whole = h.start(tmp_path, streams_config(3), stream_agents(LANES))
    assert whole.run() == "complete"
    chance, landed = random.Random(23), Counter()
    length = (whole.run_dir / "events.jsonl").stat().st_size
    for number in range(KILLS):
        project = tmp_path / str(number)
        project.mkdir()
        kill_at(project, chance.randrange(1, length), chance.choice([0, 0, 1, 3, 10, 30]), cast_lanes)
        (run,) = (project / "casts").glob("2*Z")
        before = open_cast(run)
        landed[before.runner.lanes_at_work] += 1
        over = [name for name, lane in before.now.lanes.items() if lane.status == "accepted"]
        cast = resume_cast(run, h.table(stream_agents(LANES)))
        if cast.status != "complete":
            assert cast.run() == "complete"
        assert cast.route == whole.route
        assert h.timeless(cast.now.engine) == h.timeless(whole.now.engine)
        for name, lane in whole.now.lanes.items():
            made = cast.now.lanes[name].now
            assert made.route == lane.now.route
            assert h.timeless(made.engine) == h.timeless(lane.now.engine)
            if name in over:
                assert made.steps == before.now.lanes[name].now.steps
        cast.close()
    assert landed[True] > KILLS / 5, landed


def answer(turn):
    return f"{turn.socket_id} " + "x" * 70_000


AGENTS = h.table(answer)


def resume_and_fork(run: Path, said: int) -> None:
    """What the child process does until it is killed; it says what it is about to do, and what is done."""
    number = 0
    while True:
        os.write(said, b"resume\n")
        cast = resume_cast(run, AGENTS)
        os.write(said, b"edit\n")
        number += 1
        cast.edit.set("number", number)
        os.write(said, b"edited\nfork\n")
        fork = cast.fork()
        os.write(said, b"step\n")
        fork.step()
        os.write(said, f"forked {fork.run_dir.name}\nclose\n".encode())
        fork.close()
        cast.close()


def killed_soon(run: Path, count: int, seconds: float) -> list[str]:
    """Let a child resume and fork a cast until so long behind so many lines that it says; returns all of them."""
    heard, said = os.pipe()
    with open(heard) as lines:  # noqa: PTH123 - a handle is opened, no path
        child = multiprocessing.get_context("fork").Process(target=resume_and_fork, args=(run, said))
        child.start()
        os.close(said)
        first = [lines.readline().strip() for _ in range(count)]
        time.sleep(seconds)  # nothing is waited for: it is killed wherever it is
        child.kill()
        child.join(60)
        assert child.exitcode == -signal.SIGKILL
        return [*first, *lines.read().splitlines()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_nothing_is_lost_by_kills_during_resume_and_fork(tmp_path):
    cast = h.start(tmp_path / "begun", h.chain_config(4), answer)
    cast.run(steps=2)
    cast.close()
    begun, chance, landed, forks = cast.run_dir, random.Random(500), Counter(), 0
    lines = read_journal(begun / "events.jsonl").lines
    outputs = [step.output for step in cast.steps]
    for number in range(KILLS):
        run = tmp_path / "casts" / begun.name
        shutil.copytree(begun, run)
        said = killed_soon(run, chance.randrange(1, 18), chance.uniform(0, 0.01))
        landed[next(one for one in reversed(said) if one in {"resume", "edit", "fork", "step", "close"})] += 1
        # What it said it had done is there, and at most what it was at besides.
        assert read_journal(run / "events.jsonl").lines[: len(lines)] == lines
        found = open_cast(run)
        assert verify(found.runner.files).good, f"kill {number}: {verify(found.runner.files)}"
        assert found.state.get("number", 0) - said.count("edited") in {0, 1}, number
        done = {one.split()[1] for one in said if one.startswith("forked")}
        # A directory without a journal is what was left of a fork that was not made.
        made = [path.parent for path in run.parent.glob("*/events.jsonl") if path.parent != run]
        assert done <= {path.name for path in made}
        assert len(made) - len(done) in {0, 1}
        for path in [run, *made]:
            again = resume_cast(path, AGENTS)  # nothing is locked
            assert verify(again.runner.files).good, f"kill {number}: {verify(again.runner.files)}"
            assert [step.output for step in again.steps][:2] == outputs
            assert len(again.steps) >= 2 + (path.name in done)
            if path in {run, *made[-1:]}:
                assert again.run() == "complete"
                assert len(again.steps) == 4
            again.close()
        forks += len(made)
        shutil.rmtree(run.parent)
    assert forks >= KILLS // 5, landed
    assert len(landed) > 1, landed
