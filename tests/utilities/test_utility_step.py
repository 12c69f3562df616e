"""Test utility steps: the input document, and a result that is either an output or a failure (R23)."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cast_helpers as h
from builders import resolved_materia
from materia_nb.errors import MateriaError
from materia_nb.loadout.graph import Materia
from materia_nb.utilities.utility_step import command_record, run_utility

ARTIFACTS = ("sockets/S/1.command.stdout.txt", "sockets/S/1.command.stderr.txt")
PLAIN = resolved_materia(label="My utility", timeout_ms=20_000)


def python(code: str, **changes: Any) -> Materia:
    return replace(PLAIN, command=(sys.executable, "-S", "-c", code), **changes)


def document(materia: Materia, project: Path, **changes: Any) -> dict[str, Any]:
    return {
        "cwd": str(project),
        "request": "ship",
        "socketId": "S",
        "materiaId": materia.id,
        "params": dict(materia.params),
        "state": {},
        **changes,
    }


def run(materia: Materia, project: Path, stop: threading.Event | None = None, **changes: Any):
    return run_utility(materia, document(materia, project, **changes), cwd=project, artifacts=ARTIFACTS, stop=stop)


@pytest.fixture
def real_python(tmp_path, monkeypatch):
    """Add the current interpreter to PATH as ``python3``, because configs use this name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_utility_runs_its_configured_command_unchanged(tmp_path, real_python):
    code = (
        "import json,sys; ctx=json.load(sys.stdin); "
        "print(json.dumps({'state': {'hello': {'ok': True, 'message': ctx['params']['message']}}}))"
    )
    hello = replace(PLAIN, command=("python3", "-c", code), params={"message": "HELLO WORLD"})
    result = run(hello, tmp_path)
    assert result.failure is None
    assert json.loads(result.stdout) == {"state": {"hello": {"ok": True, "message": "HELLO WORLD"}}}
    assert result.process.argv == ("python3", "-c", code)


def test_ensure_ignored_runs_from_its_config_directory(tmp_path, real_python):
    config, project = tmp_path / "config", tmp_path / "project"
    (config / "scripts").mkdir(parents=True)
    project.mkdir()
    shutil.copy(Path(__file__).parents[1] / "data" / "ensure_ignored.py", config / "scripts")
    (project / ".gitignore").write_text("*.pyc")
    materia = replace(
        PLAIN,
        command=("python3", "scripts/ensure_ignored.py"),
        params={"file": ".gitignore", "patterns": [".pi/pi-materia/"]},
        folder=config,
    )
    first, second = (json.loads(run(materia, project).stdout)["state"]["artifactIgnore"] for _ in range(2))
    target = str(project / ".gitignore")
    assert first == {"ok": True, "file": target, "changed": True, "added": [".pi/pi-materia/"]}
    assert second == {"ok": True, "file": target, "changed": False, "added": []}
    assert (project / ".gitignore").read_text() == "*.pyc\n.pi/pi-materia/\n"


def test_shipped_script_is_found_in_the_configured_directories(tmp_path):
    (tmp_path / "one.py").write_text("print('shipped')")
    materia = replace(PLAIN, script={"kind": "shippedUtility", "name": "one.mjs"})
    result = run_utility(materia, document(materia, tmp_path), cwd=tmp_path, utilities=[tmp_path])
    assert result.stdout == "shipped\n"


def test_input_has_the_documented_keys_in_order(tmp_path):
    config = h.loop_config()
    config["materia"]["Build"] = h.python("print('built')", label="My utility", params={"a": 1})
    cast = h.start(tmp_path, config, h.loop_agents(1))
    cast.run(steps=2)
    made = json.loads((cast.run_dir / "sockets" / "Socket-2" / "1.input.json").read_text())
    scope = {"id": "base", "cwd": str(tmp_path), "state": None, "exports": {}}
    item = {"title": "Part 1", "context": "about Part 1"}
    state = {"workItems": [item], "item": item, "currentWorkItem": item, "workItem": item}
    assert list(made.items()) == [
        ("cwd", str(tmp_path)),
        ("runDir", str(cast.run_dir)),
        ("request", "the widget"),
        ("castId", cast.id),
        ("socketId", "Socket-2"),
        ("materiaId", "Build"),
        ("materiaLabel", "My utility"),
        ("params", {"a": 1}),
        ("state", state),
        ("item", item),
        ("itemKey", "WI-1"),
        ("itemLabel", "Part 1"),
        ("cursor", {"name": "workItemIndex", "index": 0}),
        ("cursors", {"workItemIndex": 0}),
        ("executionScope", scope),
        ("baseScope", scope),
    ]


def test_input_outside_an_iterator_has_no_item(tmp_path):
    cast = h.start(tmp_path, h.one_config(h.python("print('built')")))
    cast.run()
    made = json.loads((cast.run_dir / "sockets" / "Socket-1" / "1.input.json").read_text())
    assert [made[key] for key in ("item", "itemKey", "itemLabel", "cursor", "cursors")] == [None] * 4 + [{}]


@pytest.mark.parametrize("text", ["naïve 漢字 \U0001f600", "\ud800 alone", 'quotes " and \n'])
def test_document_is_sent_as_one_json_line(tmp_path, text):
    code = "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d)"
    result = run(python(code), tmp_path, request=text)
    assert result.stdout.count("\n") == 1
    assert result.stdout.endswith("}\n")
    assert json.loads(result.stdout)["request"] == text


@pytest.mark.parametrize("value", [float("nan"), {1, 2}])
def test_state_that_is_not_json_is_refused(tmp_path, value):
    with pytest.raises(MateriaError) as caught:
        run(python("print()"), tmp_path, state={"x": value})
    assert caught.value.kind == "invalid_document"


def test_unread_large_document_does_not_block(tmp_path):
    result = run(python("print('done')"), tmp_path, state={"big": "x" * 5_000_000})
    assert (result.failure, result.stdout) == (None, "done\n")


def test_undecodable_bytes_are_replaced(tmp_path):
    """Each undecodable byte becomes U+FFFD (R23)."""
    result = run(python(r"import os; os.write(1, b'a\xffb\xc3')"), tmp_path)
    assert result.stdout == "a\ufffdb\ufffd"
    failed = run(python(r"import os; os.write(2, b'\xfe'); os._exit(1)"), tmp_path)
    assert "stderr: \ufffd" in failed.summary


def test_truncation_of_stdout_at_1_mib_does_not_count_as_a_failure(tmp_path):
    result = run(python("import sys; sys.stdout.write('a' * 1572864)"), tmp_path)
    assert (result.failure, len(result.stdout), result.process.stdout_truncated) == (None, 1_048_576, True)


def test_error_for_a_nonzero_exit_code_names_command_stderr_and_output_files(tmp_path):
    code = r"import sys; print('partial'); sys.stderr.write('boom\n  two   lines\n'); sys.exit(3)"
    result = run(python(code), tmp_path)
    assert result.stdout == "partial\n"
    assert result.failure == "utility_exit"
    for part in ("of S exited with code 3", sys.executable, "stderr: boom two lines", *ARTIFACTS):
        assert part in result.summary


def test_huge_stderr_is_summarized(tmp_path):
    """The message contains at most 800 characters of stderr (R23)."""
    code = "import sys; sys.stderr.write('b' * 3_000_000); sys.exit(1)"
    result = run(python(code), tmp_path)
    summary = result.summary.split("stderr: ")[1].split("; ")[0]
    assert len(summary) == 800
    assert result.process.stderr_truncated


def test_empty_stderr_is_reported(tmp_path):
    result = run(python("import sys; sys.exit(1)"), tmp_path)
    assert "stderr: (empty)" in result.summary


def test_error_names_the_signal_that_ended_the_utility(tmp_path):
    result = run(python("import os; os.kill(os.getpid(), 9)"), tmp_path)
    assert result.failure == "utility_exit"
    assert "signal SIGKILL" in result.summary


def test_timeout_of_a_utility_counts_as_a_failure(tmp_path):
    result = run(python("import time; time.sleep(60)", timeout_ms=300), tmp_path)
    assert result.failure == "utility_timeout"
    assert "300 ms" in result.summary
    assert "SIGTERM" in result.summary


@pytest.mark.parametrize(
    "materia, part",
    [
        (
            replace(PLAIN, command=("definitely-not-a-command-xyz", "arg")),
            "definitely-not-a-command-xyz was not found",
        ),
        (
            replace(PLAIN, script={"kind": "shippedUtility", "name": "gone.py"}),
            "'gone.py', which does not exist",
        ),
        (PLAIN, "neither a command nor a script"),
    ],
)
def test_command_that_cannot_be_started_counts_as_a_failure(tmp_path, materia, part):
    result = run(materia, tmp_path)
    assert result.failure == "utility_not_started"
    assert part in result.summary
    assert ARTIFACTS[0] not in result.summary
    assert command_record(materia, result, ARTIFACTS)["startError"] == result.process.start_error


def test_stop_request_does_not_count_as_a_failure_of_the_utility(tmp_path):
    stop = threading.Event()
    stop.set()
    result = run(python("import time; time.sleep(60)"), tmp_path, stop=stop)
    assert result.failure == "interrupted"


def test_long_commands_are_truncated_in_messages(tmp_path):
    result = run(python("import sys\n" + "x = 1\n" * 1000 + "sys.exit(1)"), tmp_path)
    assert len(result.summary) < 700
    assert "\n" not in result.summary


def test_utility_record_has_the_fields_of_the_reference_engine(tmp_path):
    materia = python("print(1)")
    record = command_record(materia, run(materia, tmp_path), ARTIFACTS)
    seconds = record.pop("seconds")
    assert 0 < seconds < 20
    assert record == {
        "materia": "U",
        "materiaLabel": "My utility",
        "command": list(materia.command),
        "code": 0,
        "signal": None,
        "timedOut": False,
        "timeoutMs": 20_000,
        "stdoutArtifact": ARTIFACTS[0],
        "stderrArtifact": ARTIFACTS[1],
        "stdoutTruncated": False,
        "stderrTruncated": False,
        "maxBytes": 1_048_576,
    }
