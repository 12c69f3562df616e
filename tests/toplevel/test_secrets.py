"""Test that keys are redacted in the output of tools, providers and programs, and that other text is unchanged."""

from __future__ import annotations

import html
import json
import logging
import re
import sys
from urllib.parse import quote, quote_plus

import pytest

import cast_helpers as h
from materia_nb.agents import AgentError, CommandAgent, ModelAgent, Reply
from materia_nb.agents.interface import CallEvent, NoteEvent, ToolCall
from materia_nb.agents.tools import file_tools
from materia_nb.agents.tools.file_tools import Toolbox
from materia_nb.cast.views.status import status_view
from materia_nb.cast.views.step_views import cast_page_html
from materia_nb.errors import redact, redact_excerpt, redact_json, secret_arguments
from model_helpers import turn
from model_server import refuses, serving

KEY = "sk-canary-ABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def pieces(text):
    """Return the parts of the key in a text that are longer than the permitted length."""
    parts = (KEY[at : at + 8] for at in range(len(KEY) - 7))
    return [part for part in parts if part in text]


def test_key_read_through_key_env_is_redacted_under_any_variable_name(tmp_path, monkeypatch):
    monkeypatch.setenv("GATEWAY_AUTH", "gateway-word")
    with serving(refuses(401, "No such user: gateway-word.")) as server:
        agent = ModelAgent("openai:tiny", base_url=server.url, key_env="GATEWAY_AUTH")
        cast = h.start(tmp_path, h.one_config(), agent)
        assert cast.run() == "failed"
    assert "No such user: ***" in cast.failure.message
    assert "gateway-word" not in (cast.run_dir / "events.jsonl").read_text()


def test_cast_log_warns_of_failures_without_showing_keys(tmp_path, caplog):
    caplog.set_level(logging.INFO, "materia_nb")

    def fail():
        raise ValueError(f"no access with {KEY}")

    cast = h.start(tmp_path, h.one_config(), fail)
    assert cast.run() == "failed"
    records = [record for record in caplog.records if record.name == "materia_nb.cast"]
    assert all(record.getMessage().startswith(f"cast {cast.id}: ") for record in records)
    warnings = [record.getMessage() for record in records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "no access with ***" in warnings[0]
    assert any("socket_start Socket-1" in record.getMessage() for record in records)


@pytest.mark.parametrize(
    "name, value, is_key",
    [
        ("DB_PASSWORD", "postgres", False),
        ("DB_PASSWORD", "123456789012", False),
        ("DB_PASSWORD", "Administration", False),
        ("DB_PASSWORD", "hunter2-hunter2", True),
        ("SESSION_SECRET", "0123456789012345", True),
        ("GH_TOKEN", "aBcDeFgHiJkLmNoP", True),
        ("MISTRAL_API_KEY", "letmein", True),
        ("HF_TOKEN", "hugging", True),
        ("EDITOR", "sk-0123456789abcdef", False),
    ],
)
def test_key_like_values_are_recognized(monkeypatch, name, value, is_key):
    monkeypatch.setenv(name, value)
    assert redact(f"image: {value}:16") == ("image: ***:16" if is_key else f"image: {value}:16")


def test_partial_keys_are_redacted_only_where_text_was_truncated():
    text = f"{KEY[-9:]} {KEY[:9]} {KEY} {KEY[:-1]}"
    assert redact_excerpt(text) == f"{KEY[-9:]} {KEY[:9]} *** {KEY[:-1]}"
    assert redact_excerpt(text, start=True, end=True) == f"*** {KEY[:9]} *** ***"
    assert redact_excerpt(f"x {KEY[:7]}", start=True, end=True) == f"x {KEY[:7]}"


# -- tools ----------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["beginning", "end"])
@pytest.mark.parametrize("shown", [9, len(KEY) // 2, len(KEY) - 1])
def test_key_at_the_truncation_point_of_a_command_output_is_redacted(project, shown, end):
    before = file_tools.MAX_SHELL_OUTPUT_BYTES - shown if end == "beginning" else 3 * file_tools.MAX_SHELL_OUTPUT_BYTES
    after = 3 * file_tools.MAX_SHELL_OUTPUT_BYTES if end == "beginning" else file_tools.MAX_SHELL_OUTPUT_BYTES - shown
    code = f"import os; print('x' * {before} + os.environ['OPENAI_API_KEY'] + 'y' * {after}, end='')"
    text = Toolbox(project).call("bash", {"command": f'{sys.executable} -S -c "{code}"'}).text
    assert "bytes left out" in text
    assert "***" in text
    assert pieces(text) == []


def test_key_at_the_truncation_point_of_a_long_line_is_redacted(project):
    (project / "a.txt").write_text("x" * 1980 + KEY + "y" * 100)
    text = Toolbox(project).call("read", {"path": "a.txt"}).text
    assert text.startswith("x" * 1980 + "***")
    assert pieces(text) == []


@pytest.mark.parametrize("before, after", [(0, 170), (70, 0)])
def test_partial_key_in_a_search_match_is_redacted(project, before, after):
    """The excerpt begins 100 characters before the match and is 300 characters long."""
    line = "x" * 50 + KEY + "." * before + "needle" + "." * after + KEY + "y" * 400
    (project / "a.txt").write_text(line)
    text = Toolbox(project).call("grep", {"pattern": "needle"}).text
    assert text.startswith("a.txt:1: ")
    assert "needle" in text
    assert pieces(text) == []


def test_long_result_is_redacted_before_it_is_truncated(project):
    (project / "a.txt").write_text(f"{KEY} " * 2_000)
    text = Toolbox(project).call("read", {"path": "a.txt"}).text
    assert len(text) < len(KEY) * 2_000, "cut"
    assert pieces(text) == []


# -- programs -------------------------------------------------------------------------


def test_arguments_of_a_program_are_not_stored(tmp_path):
    argv = [sys.executable, "-S", "-c", "print('hi')", "--api-key", KEY]
    reply = CommandAgent(argv).answer(turn(project=tmp_path))
    assert reply.meta["arguments"] == 5
    assert KEY not in json.dumps(dict(reply.meta)) + repr(CommandAgent(argv))


@pytest.mark.parametrize("fill", [0, 750])
def test_stderr_of_a_program_is_redacted(tmp_path, fill):
    code = f"import os, sys; sys.exit('x' * {fill} + ' refused: ' + os.environ['OPENAI_API_KEY'] + ' ' + sys.argv[2])"
    argv = [sys.executable, "-S", "-c", code, "--token", "typed-in-by-hand"]
    with pytest.raises(AgentError) as caught:
        CommandAgent(argv).answer(turn(project=tmp_path))
    assert "refused: *** ***" in caught.value.what
    assert pieces(caught.value.what) == []


def test_arguments_of_key_options_are_redacted():
    argv = ["pi", "--api-key", "one", "--token=two", "--model", "three", "--secret"]
    assert secret_arguments(argv) == ("one", "two", "")


# -- utilities, functions, models -----------------------------------------------------


def left_by(cast):
    """Return all text that a cast displays and writes."""
    files = [path.read_text(errors="replace") for path in cast.run_dir.rglob("*") if path.is_file()]
    return "\n".join([*files, repr(cast), repr(status_view(cast.now)), cast_page_html(cast.now)])


LEAK = "import os, sys; key = os.environ['OPENAI_API_KEY']; print(key); sys.stderr.write('no: ' + key)"


@pytest.mark.parametrize("end", ["", "; sys.exit(3)"], ids=["done", "failed"])
def test_no_output_of_a_utility_contains_a_key(tmp_path, end):
    command = [sys.executable, "-I", "-S", "-c", LEAK + end, KEY, "--token", "typed-in-by-hand"]
    cast = h.start(tmp_path, h.one_config({"type": "utility", "command": command}))
    cast.run()
    (cast.run_dir / "config.resolved.json").unlink()  # as a person wrote it
    assert "***" in left_by(cast)
    assert pieces(left_by(cast)) == []
    assert "typed-in-by-hand" not in left_by(cast)


def test_binary_output_of_a_utility_is_unchanged(tmp_path):
    code = "import os, sys; sys.stdout.buffer.write(bytes(range(256)) + os.environb[b'OPENAI_API_KEY'])"
    cast = h.start(tmp_path, h.one_config(h.python(code)))
    cast.run()
    kept = cast.run_dir / "sockets" / "Socket-1" / "1.command.stdout.txt"
    assert kept.read_bytes() == bytes(range(256)) + b"***"


def test_no_output_of_a_function_contains_a_key(tmp_path):
    def fails():
        raise ConnectionError(f"401 for https://host/?key={KEY}")

    def tells(turn):
        turn.report(NoteEvent(f"with {KEY}"))
        turn.report(CallEvent(ToolCall(id="1", tool="bash", args={"command": f"curl {KEY}"}, said=KEY, result=KEY)))
        return Reply(f"used {KEY}", meta={"key": KEY})

    for agent, status in ((fails, "failed"), (tells, "complete")):
        cast = h.start(tmp_path, h.one_config(), agent)
        assert cast.run() == status
        assert "***" in left_by(cast)
        assert pieces(left_by(cast)) == []


@pytest.mark.parametrize("written", ['"quo\\"ted-abcdefgh"', "quo%22ted-abcdefgh"])
def test_escaped_key_is_redacted(monkeypatch, written):
    monkeypatch.setenv("GH_TOKEN", 'quo"ted-abcdefgh')
    assert "ted-abcdefgh" not in redact(f"at {written}")


def test_partially_read_multiline_key_is_redacted(monkeypatch):
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----"
    monkeypatch.setenv("DEPLOY_KEY", key)
    assert redact("2: AQEFAASCBKcwggSjAgEAAoIB\n3: -----END KEY-----") == "2: ***\n3: -----END KEY-----"


MIXED_KEY = "Grüße/a+b \"c'\\d&😀-0123456789"


@pytest.mark.parametrize(
    "written",
    [
        MIXED_KEY,
        repr(MIXED_KEY),
        json.dumps(MIXED_KEY),
        json.dumps(MIXED_KEY)
        .replace("00fc", "00FC")
        .replace("00df", "00DF")
        .replace("ud83d", "uD83D")
        .replace("ude00", "uDE00"),
        json.dumps(MIXED_KEY).replace("/", r"\/"),
        json.dumps(MIXED_KEY, ensure_ascii=False),
        quote(MIXED_KEY),
        quote(MIXED_KEY, safe=""),
        quote_plus(MIXED_KEY),
        re.sub("%..", lambda match: match[0].lower(), quote(MIXED_KEY)),
        html.escape(MIXED_KEY),
        html.escape(MIXED_KEY, quote=False),
        html.escape(MIXED_KEY).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
        html.escape(MIXED_KEY).encode("ascii", "xmlcharrefreplace").decode(),
    ],
)
def test_key_is_removed_in_every_escaped_form_that_the_standard_library_produces(written, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", MIXED_KEY)
    assert "0123456789" not in redact(f"<{written}>")
    assert "0123456789" not in json.dumps(redact_json({"text": written}))
