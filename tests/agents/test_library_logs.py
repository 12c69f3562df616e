"""Test that library logs and warnings are shown as single lines from which keys are redacted."""

from __future__ import annotations

import asyncio
import io
import logging
import re
import sys
import warnings

import pytest

from materia_nb.agents.background import BackgroundLoop
from materia_nb.agents.tools import MoreTools
from materia_nb.agents.tools.more_tools import ToolFinder, close_servers
from materia_nb.errors import LIBRARIES, redact_library_logs
from model_helpers import agent, failed, turn
from model_server import refuses, serving

KEY = "sk-canary-ABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("CANARY_API_KEY", KEY)


@pytest.fixture(autouse=True)
def nothing_is_installed(monkeypatch):
    """Remove the log redaction, so that each test starts as a new process does."""
    before = logging.getLogRecordFactory()
    logging.setLogRecordFactory(logging.LogRecord)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    yield
    logging.setLogRecordFactory(before)


@pytest.fixture
def stream():
    """Capture the output of log handlers at every level."""
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(logging.Formatter("%(name)s %(message)s"))
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler.stream
    root.removeHandler(handler)
    root.setLevel(level)


def pieces_of_key(text: str) -> list[str]:
    return [piece for at in range(len(KEY) - 7) if (piece := KEY[at : at + 8]) in text]


@pytest.mark.parametrize("library", sorted(LIBRARIES))
def test_library_log_records_are_one_line_and_contain_no_keys(library, stream):
    redact_library_logs()
    logger = logging.getLogger(f"{library}.some.module")
    logger.info("HTTP Request: POST https://host/v1?key=%s\n  and more", KEY)
    error = ValueError(f"input_value='Logging in with {KEY[:20]}...{KEY[-20:]}'\nFor help see")
    logger.error("Failed to parse %r", KEY.encode(), exc_info=error, stack_info=True)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert "POST https://host/v1?key=*** and more" in lines[0]
    assert lines[1].endswith("ValueError: input_value='Logging in with ***...***' For help see")
    assert pieces_of_key(stream.getvalue()) == []


def test_log_records_from_other_loggers_are_unchanged(stream):
    redact_library_logs()
    logging.getLogger("mine").error("failed", exc_info=ValueError("two\nlines"))
    assert stream.getvalue() == "mine failed\nValueError: two\nlines\n"


def test_log_record_that_cannot_be_formatted_is_still_one_line(stream):
    redact_library_logs()
    logging.getLogger("httpx").warning("%d items", "many")
    assert stream.getvalue() == "httpx %d items\n"


def test_library_warnings_become_log_records(stream):
    from pydantic_ai.exceptions import UsageLimitExceeded

    odd = type("OddWarning", (UserWarning,), {"__module__": UsageLimitExceeded.__module__})
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        redact_library_logs()
        warnings.warn(odd(f"usage of {KEY}\ncannot be read"), stacklevel=1)
    assert stream.getvalue() == "pydantic_ai OddWarning: usage of *** cannot be read\n"


def test_warnings_from_other_modules_are_shown_as_usual(stream):
    redact_library_logs()
    with pytest.warns(UserWarning, match="mine"):
        warnings.warn("mine", stacklevel=1)
    assert stream.getvalue() == ""


def test_installing_log_redaction_twice_has_no_further_effect():
    redact_library_logs()
    before = logging.getLogRecordFactory()
    redact_library_logs()
    assert logging.getLogRecordFactory() is before


LEAKY = """
import json, os, sys
print("Logging in with token", os.environ["CANARY_API_KEY"], flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    else:
        result = {"tools": [{"name": "now", "inputSchema": {"type": "object"}}]}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_server_that_prints_invalid_messages_is_reported_in_one_line(tmp_path, stream):
    variable = {"CANARY_API_KEY": "${CANARY_API_KEY}"}
    spec = {"command": sys.executable, "args": ["-S", "-c", LEAKY], "env": variable}
    try:
        tools = list(ToolFinder(MoreTools(servers={"own": spec}), tmp_path, "cast", None)("own.*"))
    finally:
        close_servers()
    assert [tool.name for tool in tools] == ["own.now"]
    (line,) = [line for line in stream.getvalue().splitlines() if "JSONRPC" in line]
    assert re.search(r"in with token .*\*\*\*'", line)
    assert pieces_of_key(stream.getvalue()) == []
    assert "Traceback" not in stream.getvalue()


def test_log_records_of_a_request_do_not_contain_the_key(stream, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(refuses(400, "No", x_echo=KEY)) as server:
        failed(agent(server), turn())
    assert "b'x-echo', b'***'" in stream.getvalue()
    assert pieces_of_key(stream.getvalue()) == []


def test_leftover_task_errors_are_reported_in_one_line(stream):
    loop = BackgroundLoop()

    async def leave_a_failed_task() -> None:
        async def fail() -> None:
            raise ValueError(f"no: {KEY}\nmore")

        task = asyncio.get_running_loop().create_task(fail())
        await asyncio.wait([task])

    loop.run(leave_a_failed_task())
    loop.close()
    (line,) = stream.getvalue().splitlines()[-1:]
    assert line.endswith("Task exception was never retrieved: ValueError: no: *** more")
