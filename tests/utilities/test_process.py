"""Test misbehaving commands as real processes (R23)."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from materia_nb.utilities.process import MAX_CAPTURED_BYTES, Capture, run_process, summarize
from process_helpers import SLEEPER, STUBBORN_PAIR, assert_gone, pids_in, wait_for

PYTHON = [sys.executable, "-S", "-E"]
HUNDRED_MB = 100 * 1024 * 1024


def python(code: str) -> list[str]:
    return [*PYTHON, "-c", textwrap.dedent(code)]


def run(argv, tmp_path, stdin=b"", timeout_s: float | None = 20, **more):
    return run_process(argv, stdin=stdin, cwd=tmp_path, timeout_s=timeout_s, **more)


def with_grandchild(before_ready: str) -> list[str]:
    """Return a command that starts a sleeping child process, waits until it is ready, prints text and exits."""
    return python(f"""
        import os, time
        ready, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            {before_ready}
            os.write(tell, b".")
            time.sleep(60)
        with open("pids", "w") as file: file.write(str(pid))
        os.read(ready, 1)
        os.write(1, b"mine")
        os._exit(0)
    """)


def test_process_returns_output_code_and_time(tmp_path):
    result = run(python("import sys; print(sys.stdin.read().upper()); sys.stderr.write('e')"), tmp_path, b"abc")
    assert (result.stdout, result.stderr, result.code, result.signal) == (b"ABC\n", b"e", 0, None)
    assert result.started
    assert result.ok
    assert 0 < result.seconds < 20


def test_process_runs_in_its_directory_without_a_shell(tmp_path):
    result = run([*python("import os, sys; print(os.getcwd(), sys.argv[1:])"), "$HOME; echo *"], tmp_path)
    assert result.stdout.decode() == f"{tmp_path.resolve()} ['$HOME; echo *']\n"


def test_process_inherits_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MATERIA_TEST", "inherited")
    code = python("import os; print(os.environ.get('MATERIA_TEST'))")
    assert run(code, tmp_path).stdout == b"inherited\n"


@pytest.mark.parametrize(
    "size, start, end",
    [(6, b"012345", b""), (10, b"012345", b"6789"), (27, b"012345", b"3456")],
)
def test_end_of_a_long_output_can_be_captured(tmp_path, size, start, end):
    code = f"import os; [os.write(2, (b'0123456789' * 3)[n:n + 1]) for n in range({size})]"
    result = run(python(code), tmp_path, capture=Capture(6, 4))
    assert (result.stderr, result.stderr_tail, result.stderr_bytes) == (start, end, size)
    assert (result.stdout_end, result.stdout_bytes) == (b"", 0)
    assert result.stderr_truncated == (size > 6)


def test_end_of_a_long_output_is_not_captured_by_default(tmp_path):
    result = run(python("print('0123456789')"), tmp_path, capture=Capture(6))
    assert (result.stdout, result.stdout_end, result.stdout_bytes) == (b"012345", b"", 11)


def test_skipped_output_lines_are_neither_captured_nor_counted(tmp_path):
    code = "print('a'); print('skip this', 'x' * 300_000); print('b'); print('end', end='')"
    result = run(python(code), tmp_path, capture=Capture(100, skip_lines=b"skip"))
    assert (result.stdout, result.stdout_bytes) == (b"a\nb\nend", 7)
    too_long = run(python("print('skip' * 1000)"), tmp_path, capture=Capture(100, skip_lines=b"s!"))
    assert too_long.stdout_truncated


def test_program_environment_contains_the_directory_and_the_added_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("PWD", "/elsewhere")
    code = "import os; print(os.environ['PWD'], os.environ['EXTRA'], 'PATH' in os.environ)"
    assert run(python(code), tmp_path, env={"EXTRA": "more"}).stdout.decode() == f"{tmp_path} more True\n"


def test_full_pipes_in_both_directions_do_not_block(tmp_path):
    """Output beyond the limit is read and discarded, so neither process waits for the other (R23)."""
    code = f"""
        import sys, threading
        def flood(stream):
            for _ in range({HUNDRED_MB // 65536}):
                stream.write(b"x" * 65536)
            stream.flush()
        other = threading.Thread(target=flood, args=(sys.stderr.buffer,))
        other.start()
        flood(sys.stdout.buffer)
        other.join()
    """
    result = run(python(code), tmp_path, b"y" * 5_000_000)
    assert result.ok
    assert result.stdout == result.stderr == b"x" * MAX_CAPTURED_BYTES
    assert result.stdout_truncated
    assert result.stderr_truncated


def test_output_of_exactly_the_limit_is_not_truncated(tmp_path):
    for size, truncated in ((1000, False), (1001, True)):
        result = run(python(f"import sys; sys.stdout.write('x' * {size})"), tmp_path, capture=Capture(1000))
        assert (len(result.stdout), result.stdout_truncated) == (1000, truncated)


def test_large_stdin_reaches_a_reader(tmp_path):
    code = "import sys; n = 0\nwhile d := sys.stdin.buffer.read(65536): n += len(d); sys.stderr.write('.')\nprint(n)"
    result = run(python(code), tmp_path, bytes(HUNDRED_MB))
    assert result.stdout == b"%d\n" % HUNDRED_MB


@pytest.mark.parametrize("close", ["1", "2", "0", "0, 1, 2"])
def test_pipes_closed_early_do_not_end_the_command(tmp_path, close):
    code = f"""
        import os, time
        for fd in ({close},): os.close(fd)
        time.sleep(0.15)
        open("done", "w").close()
        os._exit(7)
    """
    result = run(python(code), tmp_path, b"z" * 300_000)
    assert result.code == 7
    assert (tmp_path / "done").exists()


def test_command_may_close_its_outputs_while_it_reads_stdin(tmp_path):
    code = """
        import os, sys
        os.close(1); os.close(2)
        open("size", "w").write(str(len(sys.stdin.buffer.read())))
        os._exit(0)
    """
    assert run(python(code), tmp_path, b"z" * 3_000_000).ok
    assert (tmp_path / "size").read_text() == "3000000"


def test_grandchild_that_holds_the_pipes_open_is_ended(tmp_path):
    result = run(with_grandchild("pass"), tmp_path)
    assert result.ok
    assert result.stdout == b"mine"
    assert result.seconds < 3
    assert_gone(*pids_in(tmp_path / "pids"))


def test_grandchild_that_does_not_hold_the_pipes_is_ended(tmp_path):
    """No process of the group may survive, even if the command ends normally (R23)."""
    assert run(with_grandchild("for fd in (0, 1, 2): os.close(fd)"), tmp_path).stdout == b"mine"
    assert_gone(*pids_in(tmp_path / "pids"))


def test_process_that_left_its_group_does_not_block_the_caller(tmp_path):
    result = run(with_grandchild("os.setsid()"), tmp_path)
    (pid,) = pids_in(tmp_path / "pids")
    os.kill(pid, signal.SIGKILL)
    assert result.stdout == b"mine"
    assert result.seconds < 3


def test_timeout_sends_sigterm_to_the_whole_group(tmp_path):
    code = """
        import os, time
        os.fork()
        with open("pids", "a") as file: file.write(f"{os.getpid()}\\n")
        print("before", flush=True)
        time.sleep(60)
    """
    result = run(python(code), tmp_path, timeout_s=0.4)
    assert result.timed_out
    assert (result.code, result.signal) == (None, "SIGTERM")
    assert result.stdout.startswith(b"before\n")
    assert result.seconds < 3
    assert_gone(*pids_in(tmp_path / "pids", 2))


def test_timeout_sends_sigkill_one_second_later(tmp_path):
    result = run(python(STUBBORN_PAIR), tmp_path, timeout_s=0.4)
    assert result.timed_out
    assert result.signal == "SIGKILL"
    assert 1.4 <= result.seconds < 3
    assert_gone(*pids_in(tmp_path / "pids", 2))


def test_process_group_gets_one_second_after_sigterm_even_if_the_command_has_ended(tmp_path):
    code = """
        import os, signal, time
        if os.fork() == 0:
            for fd in (0, 1, 2): os.close(fd)
            signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.1), open("clean", "w").close(), os._exit(0)))
            open("ready", "w").close()
            time.sleep(60)
        time.sleep(60)
    """
    result = run(python(code), tmp_path, timeout_s=0.4)
    assert (tmp_path / "ready").exists()
    assert (tmp_path / "clean").exists()
    assert result.timed_out


def test_command_that_writes_endlessly_ends_at_its_time_limit(tmp_path):
    code = "import signal, os; signal.signal(15, signal.SIG_IGN)\nwhile True: os.write(1, b'x' * 65536)"
    result = run(python(code), tmp_path, timeout_s=0.3, capture=Capture(10))
    assert result.timed_out
    assert result.stdout == b"x" * 10
    assert result.seconds < 3


def test_command_that_exits_with_code_0_after_sigterm_counts_as_timed_out(tmp_path):
    code = "import signal, os, time; signal.signal(15, lambda *_: os._exit(0)); time.sleep(60)"
    result = run(python(code), tmp_path, timeout_s=0.3)
    assert (result.code, result.timed_out, result.ok) == (0, True, False)


def test_signal_that_ended_the_command_is_named(tmp_path):
    result = run(python("import os; os.kill(os.getpid(), 11)"), tmp_path)
    assert (result.code, result.signal, result.ending) == (None, "SIGSEGV", "signal SIGSEGV")


def test_missing_command_is_reported(tmp_path):
    result = run(["no-such-command-xyz", "a"], tmp_path)
    assert not result.started
    assert not result.ok
    assert result.start_error == "no-such-command-xyz was not found"


def test_non_executable_file_is_reported(tmp_path):
    (tmp_path / "script").write_text("#!/bin/sh\n")
    assert "executable" in str(run(["./script"], tmp_path).start_error)


def test_script_with_a_missing_interpreter_is_reported(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/program\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    assert "first line" in str(run(["./script"], tmp_path).start_error)


@pytest.mark.parametrize("argv", [[], ["a\0b"], ["\ud800"], ["x" * 5000], [str(Path("/"))]])
def test_invalid_commands_are_refused(tmp_path, argv):
    result = run(argv, tmp_path)
    assert not result.started
    assert result.start_error


def test_missing_directory_is_reported(tmp_path):
    result = run(PYTHON, tmp_path / "gone")
    assert "gone" in str(result.start_error)


def test_stop_event_from_another_thread_ends_the_process(tmp_path):
    stop = threading.Event()
    found = []
    worker = threading.Thread(target=lambda: found.append(run(python(SLEEPER), tmp_path, stop=stop)))
    worker.start()
    pids = pids_in(tmp_path / "pids")
    stop.set()
    worker.join(10)
    assert found[0].stopped
    assert not found[0].ok
    assert found[0].signal == "SIGTERM"
    assert_gone(*pids)


def test_stop_event_set_in_advance_ends_the_process(tmp_path):
    stop = threading.Event()
    stop.set()
    assert run(python("import time; time.sleep(60)"), tmp_path, stop=stop).stopped


def test_many_threads_can_run_processes(tmp_path):
    found = []
    code = python("import sys; sys.stdout.write(sys.stdin.read())")
    threads = [
        threading.Thread(target=lambda n=n: found.append((n, run(code, tmp_path, b"%d" % n).stdout))) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(n, b"%d" % n) for n in range(8)]


def test_process_leaves_no_open_files(tmp_path):
    run(python("pass"), tmp_path)  # whatever a first run opens for good
    before = len(list(Path("/dev/fd").iterdir()))
    run(python("pass"), tmp_path)
    run(["no-such-command-xyz"], tmp_path)
    run(python("import time; time.sleep(60)"), tmp_path, timeout_s=0.1)
    assert len(list(Path("/dev/fd").iterdir())) == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


RUNNER = """
    import sys, time
    from pathlib import Path
    from materia_nb.utilities.process import run_process
    try:
        run_process([{python!r}, "-c", {code!r}], stdin=b"", cwd=Path({cwd!r}), timeout_s=60)
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.fixture
def runner(tmp_path):
    """Start a Python process that runs code with run_process; it is killed after the test."""
    started = []

    def start(code: str) -> subprocess.Popen[str]:
        program = RUNNER.format(python=sys.executable, code=textwrap.dedent(code), cwd=str(tmp_path))
        started.append(
            subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
        )
        return started[0]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_interrupt_ends_the_group_and_is_raised(tmp_path, runner):
    process = runner(STUBBORN_PAIR)
    pids = pids_in(tmp_path / "pids", 2)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10)[0] == "interrupted\n"
    assert_gone(*pids)


def test_second_interrupt_kills_the_group_immediately(tmp_path, runner):
    code = """
        import signal, time
        signal.signal(signal.SIGTERM, lambda *_: open("asked", "w").close())
        with open("pids", "w") as file: file.write(f"{__import__('os').getpid()} ")
        while True: time.sleep(0.01)
    """
    process = runner(code)
    (pid,) = pids_in(tmp_path / "pids")
    process.send_signal(signal.SIGINT)
    wait_for((tmp_path / "asked").exists)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10)[0] == "interrupted\n"
    assert time.monotonic() - began < 0.9
    assert_gone(pid)


def test_interrupt_at_any_moment_leaves_no_process_running(tmp_path):
    """This includes interrupts between starting a command and waiting for it."""
    code = python("import os, time; open(f'pid-{os.getpid()}', 'w').close(); time.sleep(60)")
    for n in range(20):
        timer = threading.Timer(n * 0.0004, lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the timer may fire before the run begins
            timer.start()
            run(code, tmp_path)
            pytest.fail("was not interrupted")
        timer.join()
    assert_gone(*(int(path.name[4:]) for path in tmp_path.glob("pid-*")))


def test_call_returns_if_the_interrupt_handler_does_not_raise(tmp_path):
    seen = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        result = run(python("import time; time.sleep(60)"), tmp_path)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, previous)
    assert seen == [signal.SIGINT]
    assert result.stopped
    assert result.signal == "SIGTERM"


def test_process_group_ends_after_any_exception(tmp_path):
    def late(number, frame):
        raise TimeoutError

    previous = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.4)
        with pytest.raises(TimeoutError):
            run(python(SLEEPER), tmp_path)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert_gone(*pids_in(tmp_path / "pids"))


def test_output_summary_is_one_plain_line():
    assert summarize("boom\n  two \t lines\n", 800) == "boom two lines"
    assert summarize("\x1b[31mred\x1b[0m\x07 \x1b]0;title\x07bell\x00", 800) == "red bell"


def test_long_output_summary_is_truncated_in_the_middle():
    text = "first " + "x" * 5000 + " last"
    short = summarize(text, 800)
    assert len(short) == 800
    assert short.startswith("first x")
    assert short.endswith("x last")
