"""Test that loadouts can be cast, resumed and listed without threads, processes and file locks."""

from __future__ import annotations

import asyncio
import gc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb import platform
from materia_nb.agents.background import SHARED_LOOP
from materia_nb.agents.interface import AgentError
from materia_nb.utilities.process import NO_PROCESSES_REASON, Capture, run_process

CAST = """
import sys
{blocked}
from pathlib import Path
import cast_helpers as h
from materia_nb import Workbench
from materia_nb.errors import MateriaError
from materia_nb.store.files import lock_owner
from materia_nb.widgets.base import runs_of

wb = Workbench(sys.argv[1], bundled=False)
wb.load(h.chain_config(3))
wb.agent("M", lambda turn: "said")
cast = wb.cast("a request")
cast.step()
other = Workbench(sys.argv[1], bundled=False)
try:
    other.resume(cast.id)
except MateriaError as error:
    assert error.kind == "locked" and "this kernel" in error.what, error
else:
    raise AssertionError("two writers")
assert "this kernel" in lock_owner(cast.run_dir)
cast.close()
assert lock_owner(cast.run_dir) is None
other.load(h.chain_config(3))
other.agent("M", lambda turn: "said")
again = other.resume(cast.id)
runs_of(again).start(again.run)
assert runs_of(again).wait(60)
assert again.status == "complete", again.status
assert [entry.id for entry in other.casts()] == [cast.id]
"""
NO_FCNTL = 'sys.modules["fcntl"] = None'
LIKE_A_BROWSER = """
import subprocess, threading
sys.modules["fcntl"] = None
from materia_nb import platform
platform.CAN_START_THREADS = platform.CAN_START_PROCESSES = False
def refuse(*given, **named):
    raise RuntimeError("can't start it here")
threading.Thread.start = subprocess.Popen.__init__ = refuse
"""


@pytest.fixture
def bare(monkeypatch):
    """Simulate a platform without threads and processes."""
    monkeypatch.setattr(platform, "CAN_START_THREADS", False)
    monkeypatch.setattr(platform, "CAN_START_PROCESSES", False)


def run(code, cwd, *, stdin=b"", name="script.py", options=()):
    (cwd / name).write_text(code)
    return run_process(["python3", *options, name, "one"], stdin=stdin, cwd=cwd, timeout_s=1)


def test_only_the_platform_module_starts_threads_and_timers():
    """The tests above are valid only if the package starts all threads through this module."""
    package = Path(platform.__file__).parent
    starts = re.compile(r"threading\.(Thread|Timer)\(")
    found = {path.relative_to(package).as_posix() for path in package.rglob("*.py") if starts.search(path.read_text())}
    assert found == {"platform.py"}


@pytest.mark.parametrize("blocked", [NO_FCNTL, LIKE_A_BROWSER], ids=["no-fcntl", "like-a-browser"])
def test_cast_without_threads_runs_resumes_and_refuses_a_second_writer(tmp_path, blocked):
    code = CAST.format(blocked=blocked)
    search = f"{Path(h.__file__).parent}:{Path(platform.__file__).parents[1]}"
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={"PYTHONPATH": search, "HOME": str(tmp_path), "PATH": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_event_loop_runs_deferred_and_background_work(bare):
    done = []

    async def page():
        work = platform.start_thread(lambda: done.append("work"), "name")
        platform.call_later(0, lambda: done.append("later"))
        platform.call_later(0, lambda: done.append("never")).cancel()
        assert work.is_alive()
        assert done == []
        waited_for = platform.start_thread(lambda: done.append("joined"), "name")
        waited_for.join()
        all_done = asyncio.Event()
        platform.call_later(0, all_done.set)
        await all_done.wait()

    asyncio.run(page())
    assert sorted(done) == ["joined", "later", "work"]
    assert done[0] == "joined"


def test_agents_that_block_are_refused_without_threads(bare):
    async def quick():
        await asyncio.sleep(0)
        return "answer"

    async def slow():
        await asyncio.get_running_loop().create_future()

    async def page():
        assert SHARED_LOOP.run(quick()) == "answer"
        with pytest.raises(AgentError, match="this kernel has no threads"):
            SHARED_LOOP.run(slow())

    asyncio.run(page())


def test_script_in_the_same_process_has_its_own_stdin_stdout_and_directory(bare, tmp_path):
    (tmp_path / "beside_it.py").write_text("WORD = 'beside'")
    code = "import os, sys, beside_it; print(sys.argv[1], sys.stdin.read(), beside_it.WORD, os.getcwd())"
    before = sys.argv, sys.stdin, sys.stdout, sys.modules["__main__"]
    result = run(code, tmp_path, stdin="ä".encode(), options=("-I",))
    assert result.stdout.decode() == f"one ä beside {tmp_path}\n"
    assert result.ok
    assert result.ran_in_process
    assert (sys.argv, sys.stdin, sys.stdout, sys.modules["__main__"]) == before
    assert "beside_it" not in sys.modules


@pytest.mark.parametrize(
    "code, ends, expected",
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit('no text')", 1, "no text"),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("syntax error", 1, "SyntaxError"),
    ],
)
def test_failing_script_in_the_same_process_ends_like_a_separate_process(bare, tmp_path, code, ends, expected):
    result = run(code, tmp_path)
    assert result.code == ends
    assert expected in result.stderr.decode()


def test_code_on_a_command_line_runs_in_the_same_process(bare, tmp_path):
    code = "import sys; print(sys.argv, __name__)"
    result = run_process([sys.executable, "-c", code, "a"], stdin=b"", cwd=tmp_path, timeout_s=1)
    assert result.stdout == b"['-c', 'a'] __main__\n"


def test_output_of_a_script_in_the_same_process_is_limited(bare, tmp_path):
    (tmp_path / "long.py").write_text("print('a' * 10 + 'b' * 10, end='')")
    result = run_process(["python3", "long.py"], stdin=b"", cwd=tmp_path, timeout_s=1, capture=Capture(5, 3))
    assert (result.stdout, result.stdout_end, result.stdout_bytes) == (b"aaaaa", b"bbb", 20)
    assert result.stdout_truncated


@pytest.mark.parametrize("argv", [["git", "status"], ["python3"], ["python3", "-m", "pip"], ["sh", "x.py"]])
def test_commands_that_need_a_separate_process_are_refused_with_a_one_sentence_error(bare, tmp_path, argv):
    result = run_process(argv, stdin=b"", cwd=tmp_path, timeout_s=1)
    assert not result.started
    assert result.start_error == NO_PROCESSES_REASON


def test_error_names_a_missing_script(bare, tmp_path):
    result = run_process(["python3", "nowhere.py"], stdin=b"", cwd=tmp_path, timeout_s=1)
    assert result.code != 0
    assert b"nowhere.py" in result.stderr


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_collection_setting_is_restored(collects):
    looked = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        with platform.without_collecting():
            assert not gc.isenabled()
            with platform.without_collecting():
                pass
            assert not gc.isenabled()
        assert gc.isenabled() is collects
        with pytest.raises(ValueError, match="in the middle"), platform.without_collecting():
            raise ValueError("in the middle")
        assert gc.isenabled() is collects
    finally:
        (gc.enable if looked else gc.disable)()
