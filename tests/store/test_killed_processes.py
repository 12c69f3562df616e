"""Test that no recorded data is lost when processes that run, resume or fork a cast are killed (R29).

Each child process is forked from the test process, which has already imported everything. It runs a generator, a loop
of function agents, and a utility that is a real process. The possible moments for a kill are counted in a run that is
not killed.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

import cast_helpers as h
from kill_points import lines_written, moment, needs_fork, run_until, spread
from materia_nb.cast import Cast, open_cast, resume_cast
from materia_nb.cast.runner_factory import start_runner
from materia_nb.engine.session import files_after
from materia_nb.file_io import replace_file
from materia_nb.store.file_snapshots import git
from materia_nb.store.journal import read_journal
from materia_nb.store.opening import verify
from shipped_helpers import repository
from stream_helpers import stream_agents, streams_config

KILLS = int(os.environ.get("MATERIA_KILLS", "8"))
"""Number of moments at which each test kills a process; 500 (``make kills``) covers all of them."""
pytestmark = pytest.mark.timeout(120 + 5 * KILLS)
ITEMS = 3
LANES = {"a": [4, 0], "b": [1], "c": [2, 3]}
UTILITY = (
    "import json, os, sys; d = json.load(sys.stdin); n = d['state']['count'] + 1 if 'count' in d['state'] else 1; "
    "f = os.open('ran.txt', os.O_WRONLY | os.O_APPEND | os.O_CREAT); os.write(f, f'Socket-4 {n}\\n'.encode()); "
    "print(json.dumps({'state': {'count': n}, 'satisfied': True}))"
)


def document() -> h.Json:
    """Return a loadout that makes a plan and then builds, checks and counts each item.

    The second item is checked twice, and counting is done by a real process.
    """
    return h.config(
        {
            "Socket-1": h.at("Plan", ("always", "Socket-2"), parse="json"),
            "Socket-2": h.at("Build", ("always", "Socket-3")),
            "Socket-3": h.at("Check", ("satisfied", "Socket-4"), ("not_satisfied", "Socket-2", 2), parse="json"),
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
                "exits": [{"id": "e", "from": "Socket-4", "condition": "always", "targetSocketId": "Socket-5"}],
            }
        },
    )


def agents(project: Path) -> dict[str, object]:
    """Return agents that always give the same answers and record each request."""

    def noted(turn):
        handle = os.open(project / "ran.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{turn.socket_id} {turn.visit}\n".encode())
        os.close(handle)
        moment(f"asked {turn.socket_id}")
        if turn.socket_id == "Socket-1":
            return {"workItems": h.items(*[f"Part {n}" for n in range(1, ITEMS + 1)])}
        if turn.socket_id == "Socket-3":
            return h.NO if turn.visit == 2 else h.YES
        return f"{turn.prompt.splitlines()[0]} done at visit {turn.visit} " + "." * 2000

    return dict.fromkeys(("Plan", "Build", "Check", "Tell"), noted)


def run_cast(project: str, _: object = None) -> None:
    """Run a cast in the child process."""
    root = Path(project)
    runs = sorted((root / "casts").glob("2*Z"))
    if runs:
        cast = resume_cast(runs[0], h.table(agents(root)))
        if cast.status != "complete":
            cast.run()
    else:
        h.start(root, document(), agents(root)).run()


def run_lanes(project: str) -> None:
    """Run a cast with lanes in the child process."""
    h.start(Path(project), streams_config(3), stream_agents(LANES)).run()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return a cast that was not killed, the number of requests per visit, and the moments of its process."""
    project = tmp_path_factory.mktemp("whole")
    names = run_until(run_cast, str(project))
    (run,) = (project / "casts").glob("2*Z")
    return open_cast(run), Counter((project / "ran.txt").read_text().splitlines()), names


def first_moment(names: list[str]) -> int:
    """Return the number of the first moment at which the journal contains a line."""
    return names.index("wrote 1 lines")


@needs_fork
def test_killed_casts_have_the_same_result_as_uninterrupted_casts(undisturbed, tmp_path):
    whole, ran, names = undisturbed
    for number in spread(names, KILLS, first=first_moment(names)):
        project = tmp_path / str(number)
        project.mkdir()
        reached = run_until(run_cast, str(project), at=number)
        assert reached == names[: number + 1], "a cast passes the same moments each time"
        (run,) = (project / "casts").glob("2*Z")
        recorded = read_journal(run / "events.jsonl")
        assert len(recorded.lines) == lines_written(reached)
        before = open_cast(run).now
        cast = resume_cast(run, h.table(agents(project)))
        if cast.status != "complete":
            assert cast.run() == "complete"
        again = Counter((project / "ran.txt").read_text().splitlines()) - ran
        # nothing recorded is lost
        after = read_journal(run / "events.jsonl")
        assert after.lines[: len(recorded.lines)] == recorded.lines
        # the same end, by the same way
        assert cast.route == whole.route
        assert h.timeless(cast.now.engine) == h.timeless(whole.now.engine)
        assert [step.decision for step in cast.steps] == [step.decision for step in whole.steps]
        # at most the interrupted socket ran again
        assert sum(again.values()) <= 1
        if again:
            assert before.status == "waiting"
            visit = before.waiting_at
            assert list(again) == [f"{visit.socket} {visit.visit}"]
        assert cast.now.messages in ([], [m for m in cast.now.messages if "was moved to" in m])
        cast.close()


@needs_fork
@pytest.mark.parametrize("at", [6, 9])
def test_repeatedly_killed_cast_completes(undisturbed, tmp_path, at):
    whole, ran, _ = undisturbed
    kills = 0
    while sum(name.startswith("wrote") for name in run_until(run_cast, str(tmp_path), at=at, prefix="wrote")) > at:
        kills += 1
    (run,) = (tmp_path / "casts").glob("2*Z")
    cast = open_cast(run)
    assert (cast.status, cast.route) == ("complete", whole.route)
    assert h.timeless(cast.now.engine) == h.timeless(whole.now.engine)
    again = Counter((tmp_path / "ran.txt").read_text().splitlines()) - ran
    assert kills >= 3
    assert sum(again.values()) <= kills


@needs_fork
def test_killed_lanes_have_the_same_result_as_uninterrupted_lanes(tmp_path):
    """Each lane continues after its last journal line, and finished lanes are not run again."""
    names = run_until(run_lanes, str(tmp_path))
    (run,) = (tmp_path / "casts").glob("2*Z")
    whole = open_cast(run)
    at_work = 0
    for number in spread(names, KILLS, first=first_moment(names)):
        project = tmp_path / str(number)
        project.mkdir()
        run_until(run_lanes, str(project), at=number)
        (run,) = (project / "casts").glob("2*Z")
        opened = open_cast(run)
        before, at_work = opened.now, at_work + bool(opened.runner.lanes_at_work)
        over = [name for name, lane in before.lanes.items() if lane.status == "accepted"]
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
                assert made.steps == before.lanes[name].now.steps
        cast.close()
    assert at_work, "lanes were at work at one of the moments"


def write_files(turn):
    """Write the same files in each visit of a socket; one of two sockets first removes its file."""
    number = int(turn.socket_id.removeprefix("Socket-"))
    for path in (turn.project / "latest", turn.project / "deep" / str(number)):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n" * 200)
        moment(f"{path.name} is written")
    (turn.project / "deep" / str(number - 2)).unlink(missing_ok=True)
    return "x"


def cast_with_files(project: Path) -> None:
    """Run a cast with file snapshots in the child process; a person writes files, and going back restores them."""
    plan = h.plan(project, h.chain_config(6), files="not ignored")
    cast = Cast(start_runner(plan, "x", h.table(write_files)))
    cast.run(steps=3)
    cast.run()
    for number in (4, 1, 6):
        replace_file(project / "mine", f"{number}\n".encode() * 50)
        moment(f"noted {number}")
        cast.back(number, files=True)
        cast.run()


def trees(cast: Cast) -> list[str]:
    """Return the Git tree of the files after each step, beginning with the start as step 0."""
    git_dir = cast.runner.file_snapshots().git_dir
    commits = [files_after(cast.runner.session, number) for number in range(len(cast.steps) + 1)]
    return [git(git_dir, "rev-parse", f"{commit}^{{tree}}").decode().strip() for commit in commits]


@needs_fork
def test_each_step_keeps_its_files_after_its_process_is_killed(tmp_path):
    project = repository(tmp_path / "whole")
    whole = Cast(start_runner(h.plan(project, h.chain_config(6), files="not ignored"), "x", h.table(write_files)))
    whole.run()
    expected = trees(whole)
    assert len(set(expected)) == 7
    names = run_until(cast_with_files, repository(tmp_path / "dry"))
    wrong = []
    for number in spread(names, KILLS, first=first_moment(names)):
        project = repository(tmp_path / str(number))
        of_person = contents(project / ".git")
        reached = run_until(cast_with_files, project, at=number)
        (run,) = (project / "casts").glob("2*Z")
        cast = resume_cast(run, h.table(write_files))
        if cast.status in ("ready", "waiting"):
            cast.run()
        without_mine = [tree_without(cast, tree, "mine") for tree in trees(cast)]
        if without_mine != expected:
            wrong.append((number, reached[-1]))
        # every content of the file of a person is there, or in a snapshot
        noted = {name.split()[1] for name in reached if name.startswith("noted")}
        assert noted <= snapshot_contents(cast, project / "mine")
        cast.back(1, files=True)
        assert (project / "latest").read_text() == "1\n" * 200
        assert contents(project / ".git") == of_person
        cast.close()
        shutil.rmtree(project)
    assert wrong == []


def contents(folder: Path) -> dict[Path, bytes]:
    """Return the contents of the files in a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tree_without(cast: Cast, tree: str, name: str) -> str:
    """Return the id of a Git tree without one of its files."""
    git_dir = cast.runner.file_snapshots().git_dir
    lines = git(git_dir, "ls-tree", tree).splitlines(keepends=True)
    kept = [line for line in lines if not line.endswith(f"\t{name}\n".encode())]
    return git(git_dir, "mktree", stdin=b"".join(kept)).decode().strip()


def snapshot_contents(cast: Cast, path: Path) -> set[str]:
    """Return the current content of a file of repeated lines, and its content in each snapshot of a cast."""
    lines = read_journal(cast.run_dir / "events.jsonl").lines
    commits = {line.data["commit"] for line in lines if line.data.get("commit")}
    git_dir = cast.runner.file_snapshots().git_dir
    holding = [commit for commit in commits if git(git_dir, "ls-tree", commit, path.name)]
    held = {git(git_dir, "cat-file", "blob", f"{commit}:{path.name}") for commit in holding}
    held.add(path.read_bytes() if path.exists() else b"")
    return {text.decode().partition("\n")[0] for text in held if text}


def answer(turn):
    return f"{turn.socket_id} " + "x" * 70_000


AGENTS = h.table(answer)


def resume_and_fork(run: Path) -> None:
    """Resume and fork a cast in the child process until it is killed, and report each finished action."""
    for number in (1, 2):
        cast = resume_cast(run, AGENTS)
        cast.edit.set("number", number)
        moment("edited")
        fork = cast.fork()
        fork.step()
        moment(f"forked {fork.run_dir.name}")
        fork.close()
        cast.close()


@needs_fork
def test_no_data_is_lost_by_kills_during_resume_and_fork(tmp_path):
    cast = h.start(tmp_path / "begun", h.chain_config(4), answer)
    cast.run(steps=2)
    cast.close()
    first_moment = cast.run_dir
    lines = read_journal(first_moment / "events.jsonl").lines
    outputs = [step.output for step in cast.steps]
    shutil.copytree(first_moment, tmp_path / "undisturbed" / first_moment.name)
    names = run_until(resume_and_fork, tmp_path / "undisturbed" / first_moment.name)
    for number in spread(names, KILLS):
        run = tmp_path / "casts" / first_moment.name
        shutil.copytree(first_moment, run)
        reached = run_until(resume_and_fork, run, at=number)
        # What it said it had done is there, and at most what it was at besides.
        assert read_journal(run / "events.jsonl").lines[: len(lines)] == lines
        found = open_cast(run)
        assert verify(found.runner.run_dir).is_intact, f"kill at {reached[-1]}: {verify(found.runner.run_dir)}"
        assert found.state.get("number", 0) - reached.count("edited") in {0, 1}, number
        done = {name.split()[1] for name in reached if name.startswith("forked")}
        # A directory without a journal is what was left of a fork that was not made.
        made = [path.parent for path in run.parent.glob("*/events.jsonl") if path.parent != run]
        assert done <= {path.name for path in made}
        assert len(made) - len(done) in {0, 1}
        for path in [run, *made]:
            resumed = resume_cast(path, AGENTS)  # nothing is locked
            assert verify(resumed.runner.run_dir).is_intact, f"kill {number}: {verify(resumed.runner.run_dir)}"
            assert [step.output for step in resumed.steps][:2] == outputs
            assert len(resumed.steps) >= 2 + (path.name in done)
            if path in {run, *made[-1:]}:
                assert resumed.run() == "complete"
                assert len(resumed.steps) == 4
            resumed.close()
        shutil.rmtree(run.parent)
