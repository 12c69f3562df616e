"""A key and hostile text in everything that comes in; then every byte that was written or shown is searched for them."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from traceback import format_exception

import pytest
from ipywidgets.widgets.widget import _instances as live

import cast_helpers as h
from magics_helpers import line, new_shell
from materia_nb import Workbench
from materia_nb.agents import AgentError, CommandAgent, Reply
from materia_nb.agents.interface import Called, Noted, ToolCall
from materia_nb.cast.exports import recording_of
from materia_nb.cast.views.step_views import cast_page_html
from materia_nb.errors import MateriaError
from materia_nb.spans import _event, spans_of
from materia_nb.store.journal import read_journal
from materia_nb.widgets.cast_panel import CastPanel
from materia_nb.widgets.inspector_tabs import TABS
from model_helpers import agent as model
from model_server import refuses, says, serving

INPUTS = (
    *("output", "thinking", "meta", "note", "call", "exception", "kind", "hint", "name", "cut"),
    *("stdout", "stderr", "server", "streamed"),
)
"""Where something comes in that nobody here wrote; each has a key of its own, so that a leak says whence it is."""

WRITTEN = ("request", "prompt", "label")
"""What a person wrote: it stays as it is (docs/models.md, Keys), with a key in it too."""

HOSTILE = "\x1b[31m\u202e</script><script>owned()</script>\nFAKE LINE"


def key(place: str) -> str:
    return f"sk-canary-{place}-0123456789abcdefghij"


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for place in (*INPUTS, *WRITTEN):
        monkeypatch.setenv(f"CANARY_{place.upper()}_API_KEY", key(place))


def bad(place: str) -> str:
    return f"{key(place)} {HOSTILE}"


class Named:
    """An agent whose name tries to be more than a name."""

    def __init__(self, answer):
        self.name, self.answer = bad("name"), answer


def tells(turn):
    turn.tell(Noted(bad("note")))
    said = bad("call")
    turn.tell(Called(ToolCall(id="1", tool="bash", args={"command": said}, said=said, result=said)))
    return Reply(
        bad("output"), meta={"model": bad("meta"), "x": bad("meta")}, thinking=bad("thinking"), cut=bad("cut")
    )


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


JSON = {"parse": "json"}
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
    """Nothing that came in leaves with a key; nothing that is shown acts on a terminal or a page."""
    found = [place for place in INPUTS if key(place) in text or key(place)[10:30] in text]
    assert not found, f"{where} has the key of {found}"
    if shown:
        assert not set(text) & set("\x1b\u202e"), f"{where} has a control character"


def shown_as(value: object) -> list[str]:
    bundle = getattr(value, "_repr_mimebundle_", dict)()
    bundle = bundle[0] if isinstance(bundle, tuple) else bundle
    return [repr(value), str(value), *(one for one in (bundle or {}).values() if isinstance(one, str))]


def all_errors(cast):
    """The errors that a person meets who goes on with what cannot go on."""
    for act in (cast.step, cast.run, lambda: cast.at(99), lambda: cast.why(99), cast.edit.undo):
        try:
            act()
        except MateriaError as error:
            yield error


@pytest.mark.parametrize("way", WAYS)
def test_no_key_and_no_hostile_text_leaves(way, tmp_path):
    document, answers = WAYS[way]
    if way.startswith("model"):
        with serving(*[answers] * 3) as server:
            search(way, document, model(server, attempts=1), tmp_path)
    else:
        search(way, document, answers, tmp_path)


def search(way, document, answers, tmp_path):
    bench = Workbench(tmp_path)
    bench.load(document)
    agents = None if answers is None else {"*": answers}
    cast = bench.cast(f"do it with {key('request')}", agents=agents)
    panel = CastPanel(cast)
    try:
        cast.run()
        cast.labels.add(1, note=f"label {key('label')}")
        for tab in TABS:
            panel.guarded(panel.heard)({"kind": "tab", "tab": tab})
            panel.refresh()
            states = [
                json.dumps(one.get_state(), default=str, ensure_ascii=False) for one in list(live.values())
            ]
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
    lines = read_journal(cast.runner.files.journal).lines
    events = [one for one in (_event(each, cast.runner.files) for each in lines) if one is not None]
    spans = spans_of(events, cast.now.rules, cast.id, content=True)
    searched("the spans", json.dumps([asdict(one) for one in spans], default=str), shown=False)
    cast.close()
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(kept) > 3
    for path, data in kept.items():
        searched(path.name, data.decode(errors="replace"), shown=False)
    written = b"".join(kept.values()).decode(errors="replace")
    assert key("request") in written, "what a person wrote stays"
    assert "***" in written or way == "no reply", "something was cut out"
