"""Insert a key and hostile text into every input, and search all written and displayed output for them."""

from __future__ import annotations

import html
import io
import json
import logging
import re
import sys
import warnings
from contextlib import suppress
from traceback import format_exception
from urllib.parse import quote, quote_plus

import nbformat
import pytest
from ipywidgets.widgets.widget import _instances as live
from nbclient import NotebookClient

import cast_helpers as h
from file_kernels import AsyncFileKernelManager
from magics_helpers import line, new_shell
from materia_nb import Workbench
from materia_nb.agents import AgentError, CommandAgent, Reply
from materia_nb.agents.interface import CallEvent, NoteEvent, ToolCall
from materia_nb.cast.exports import recording_of
from materia_nb.cast.views.step_views import cast_page_html
from materia_nb.errors import MateriaError, redact_library_logs
from materia_nb.widgets.cast_panel import CastPanel
from materia_nb.widgets.inspector_tabs import TABS
from model_helpers import agent as model
from model_server import calls, refuses, says, serving

INPUTS = (
    *("output", "thinking", "meta", "note", "call", "exception", "kind", "hint", "name", "cut"),
    *("stdout", "stderr", "server", "streamed", "settings", "log", "shell", "function", "mcp"),
)
"""Inputs from untrusted sources; each contains its own key, so that a leaked key identifies its source."""

WRITTEN = ("request", "prompt", "label")
"""Inputs written by a person, which are stored unchanged even if they contain a key (docs/agents-and-models.md, Keys).
"""

HOSTILE = "\x1b[31m\u202e</script><script>owned()</script>\nFAKE LINE"


def key(place: str) -> str:
    """Return a key with characters that every escape function of the standard library changes differently."""
    return f"sk-Grü/ß+a b&<'\"\\-{place}-{TAIL}"


TAIL = "0123456789abcdefghij"
"""The end of each key, which no escape function changes."""

ESCAPES = {
    "json": json.dumps,
    "json_utf8": lambda text: json.dumps(text, ensure_ascii=False),
    "json_slash": lambda text: json.dumps(text).replace("/", "\\/"),
    "url": lambda text: quote(text, safe=""),
    "url_path": quote,
    "url_lower": lambda text: re.sub("%..", lambda match: match[0].lower(), quote(text, safe="")),
    "url_form": quote_plus,
    "html": html.escape,
    "repr": repr,
}


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for place in (*INPUTS, *WRITTEN):
        monkeypatch.setenv(f"CANARY_{place.upper()}_API_KEY", key(place))


@pytest.fixture
def log():
    """Capture all log records from level INFO upwards."""
    handler, root = logging.StreamHandler(io.StringIO()), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield handler.stream
    root.removeHandler(handler)
    root.setLevel(level)


def bad(place: str) -> str:
    escaped = " ".join(escape(key(place)) for escape in ESCAPES.values())
    return f"{key(place)} {escaped} {HOSTILE}"


class Named:
    """An agent with a hostile name."""

    def __init__(self, answer):
        self.name, self.answer = bad("name"), answer


def tells(turn):
    turn.report(NoteEvent(bad("note")))
    said = bad("call")
    turn.report(CallEvent(ToolCall(id="1", tool="bash", args={"command": said}, said=said, result=said)))
    return Reply(bad("output"), meta={"model": bad("meta"), "x": bad("meta")}, thinking=bad("thinking"), cut=bad("cut"))


def logs(turn):
    """Answer, and write log records and warnings as the libraries for models and servers do."""
    redact_library_logs()
    error = ValueError(bad("log"))
    logging.getLogger("httpx.client").warning("POST %s", bad("log"), exc_info=error)
    category = type("OddWarning", (UserWarning,), {"__module__": "pydantic_ai.usage"})
    warnings.warn(category(bad("log")), stacklevel=1)
    return bad("output")


def raises(turn):
    raise ConnectionError(bad("exception"))


def fails(turn):
    raise AgentError(bad("exception"), hint=bad("hint"), kind=bad("kind"))


def program(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", f"import sys; {code}"]


def util(code: str):
    return h.one_config(h.python(f"import sys; {code}"))


def on(stream: str) -> str:
    return f"sys.{stream}.write(__import__('os').environ['CANARY_{stream.upper()}_API_KEY'] + {HOSTILE!r})"


LEAKY_SERVER = """
import json, os, sys
key = os.environ["CANARY_MCP_API_KEY"]
sys.stderr.write(key + "\\n")
print("Logging in with token", key, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif message.get("method") == "tools/list":
        result = {"tools": [{"name": "now", "description": key, "inputSchema": {"type": "object"}}]}
    else:
        result = {"content": [{"type": "text", "text": key}]}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
SERVER = {
    "command": sys.executable,
    "args": ["-S", "-c", LEAKY_SERVER],
    "env": {"CANARY_MCP_API_KEY": "${CANARY_MCP_API_KEY}"},
    "allow": ["now"],
}


def leak() -> str:
    """Raise an error whose message contains a key."""
    raise LookupError(bad("function"))


JSON = {"parse": "json"}
TOOLS = h.agent(f"Do it with {key('prompt')}", tools=["bash", "leak", "own.*"])
TOOL_CALLS = calls(("bash", {"command": "printenv CANARY_SHELL_API_KEY"}), ("leak", {}), ("own_now", {}))
PROMPT = h.agent(f"Do it with {key('prompt')}")
WAYS = {
    "told": (h.one_config(PROMPT), Named(tells)),
    "raised": (h.one_config(PROMPT), Named(raises)),
    "failed": (h.one_config(PROMPT), Named(fails)),
    "refused": (h.one_config(PROMPT, **JSON), Named(tells)),
    "over budget": (h.one_config(PROMPT) | {"budget": {"maxTokens": 0}}, Named(tells)),
    "no reply": (h.one_config(PROMPT), lambda turn: {"x": {key("output")}}),
    "program": (h.one_config(PROMPT), CommandAgent(program(on("stdout")), name=bad("name"))),
    "program failed": (h.one_config(PROMPT), CommandAgent(program(f"{on('stderr')}; sys.exit(3)"))),
    "utility": (util(f"{on('stdout')}; {on('stderr')}"), None),
    "utility failed": (util(f"{on('stdout')}; {on('stderr')}; sys.exit(3)"), None),
    "utility refused": (h.one_config(h.python(f"import sys; {on('stdout')}", **JSON)), None),
    "model": (h.one_config(PROMPT), says("<think>", bad("thinking"), "</think>", bad("streamed"))),
    "model failed": (h.one_config(PROMPT), refuses(400, bad("server"))),
    "model denied": (h.one_config(PROMPT), refuses(403, bad("server"))),
    "model tools": (h.one_config(TOOLS) | {"mcpServers": {"own": SERVER}}, TOOL_CALLS),
    "logged": (h.one_config(PROMPT), logs),
}

VERBS = (
    *(
        "status",
        "steps",
        "why",
        "handoff",
        "prompt",
        "usage",
        "usage item",
        "edit budget",
        "steps events",
        "state",
    ),
    *("why --traceback", "list casts", "grid", "agent", "edit items", "show", "label 1 --note note"),
)


def searched(where: str, text: str, *, shown: bool = True) -> None:
    """Assert that the text contains no key from an input, and that displayed text cannot affect a terminal or a page."""
    found = [place for place in INPUTS if f"{place}-{TAIL}" in text]
    assert not found, f"{where} has the key of {found}"
    if shown:
        assert not set(text) & set("\x1b\u202e"), f"{where} has a control character"


def shown_as(value: object) -> list[str]:
    bundle = getattr(value, "_repr_mimebundle_", dict)()
    bundle = bundle[0] if isinstance(bundle, tuple) else bundle
    return [repr(value), str(value), *(one for one in (bundle or {}).values() if isinstance(one, str))]


def all_errors(cast):
    """Return the errors that a user gets when trying to continue a cast that cannot continue."""
    for act in (cast.step, cast.run, lambda: cast.at(99), lambda: cast.why(99), cast.edit.undo):
        try:
            act()
        except MateriaError as error:
            yield error


@pytest.mark.parametrize("way", WAYS)
def test_no_output_channel_leaks_keys_or_hostile_text(way, tmp_path, log, capfd):
    document, answers = WAYS[way]
    if way.startswith("model"):
        settings = {"extra_headers": {"x-word": key("settings").encode("ascii", "replace").decode()}}
        script = [answers, says("done")] if way == "model tools" else [answers] * 3
        with serving(*script) as server:
            agent = model(server, attempts=1, settings=settings)
            searched("the agent", f"{agent!r} {agent}")
            search(way, document, agent, tmp_path)
    else:
        search(way, document, answers, tmp_path)
    searched("what is logged", log.getvalue())
    logged = [line for line in log.getvalue().splitlines() if not line.startswith("cast ")]
    assert way != "logged" or len(logged) == 2, "a line each"
    printed = "".join(capfd.readouterr())
    searched("stdout and stderr", printed, shown=False)


def search(way, document, answers, tmp_path):
    bench = Workbench(tmp_path)
    bench.load(document)
    bench.tool(leak)
    agents = None if answers is None else {"*": answers}
    cast = bench.cast(f"do it with {key('request')}", agents=agents)
    if way == "model tools":
        cast.approvals.allow("bash")
    panel = CastPanel(cast)
    try:
        cast.run()
        cast.labels.add(1, note=f"label {key('label')}")
        for tab in TABS:
            panel.guarded(panel.on_message)({"kind": "tab", "tab": tab})
            panel.refresh()
            states = [json.dumps(one.get_state(), default=str, ensure_ascii=False) for one in list(live.values())]
            searched(f"the widgets with the tab {tab}", "\n".join(states), shown=False)
    finally:
        panel.close()
    shell = new_shell(bench)
    for verb in VERBS:
        try:
            for text in shown_as(line(shell, verb)):
                searched(f"%materia {verb}", text)
        except MateriaError as error:
            searched(f"the error of %materia {verb}", f"{error} {''.join(format_exception(error))}")
    for error in all_errors(cast):
        searched("an error", f"{error}\n{error!r}\n{''.join(format_exception(error))}")
        assert not [one for one in str(error).splitlines() if one.startswith("FAKE")]
    page = cast_page_html(cast.now)
    searched("the page", page)
    assert "<script" not in page
    searched("the failure", str(cast.failure), shown=False)
    searched("the recording", json.dumps(recording_of(cast.now), ensure_ascii=False), shown=False)
    for export in (cast.export.page, cast.export.recording, cast.export.test):
        with suppress(MateriaError):  # a cast that failed is no test
            export(tmp_path / f"exported.{export.__name__}")
    cast.export.contexts()
    cast.close()
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(kept) > 3
    for path, data in kept.items():
        searched(path.name, data.decode(errors="replace"), shown=False)
    written = b"".join(kept.values()).decode(errors="replace")
    assert f"request-{TAIL}" in written, "what a person wrote stays"
    assert "***" in written or way == "no reply", "something was cut out"


CELLS = (
    "%load_ext materia_nb",
    """
import json, logging, os
import materia_nb
from materia_nb.agents.interface import NoteEvent
from materia_nb.errors import redact_library_logs

key = os.environ["CANARY_LOG_API_KEY"]

def leaks(turn):
    redact_library_logs()
    logging.getLogger("mcp.client.stdio").error("Failed to parse %s", key, exc_info=ValueError(key))
    turn.report(NoteEvent(json.dumps(key)))
    if turn.materia_index:
        raise ConnectionError(key)
    return json.dumps({"context": key})
""",
    f"wb = materia_nb.Workbench(); wb.load({h.chain_config(2)!r}); wb.agent('*', leaks)",
    "%materia cast do it",
    "%materia run",
    "%materia why --traceback",
    "%materia steps",
    "wb.current.export.page('page.html')",
    "wb.current",
    "wb.current.step()",
)


def test_no_key_is_stored_in_a_notebook(tmp_path, monkeypatch):
    monkeypatch.setenv("MATERIA_PROFILE_DIR", str(tmp_path / "profile"))
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in CELLS])
    client = NotebookClient(
        book,
        timeout=60,
        allow_errors=True,
        resources={"metadata": {"path": str(tmp_path)}},
        kernel_manager_class=AsyncFileKernelManager,
    )
    client.execute()
    text = nbformat.writes(book)
    searched("the notebook", text, shown=False)
    assert "***" in text
    printed = "".join(output.get("text", "") for output in book.cells[4].outputs)
    assert printed == "Failed to parse ***: ValueError: ***\n" * 2
