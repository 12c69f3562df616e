"""Tool calls of agents, in words, as lines and as escaped HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from materia_nb.display.escape import part
from materia_nb.display.html import Html, html_fold, html_json, html_lines, html_pre
from materia_nb.engine.said import ToolCall
from materia_nb.jsonvalue import JSON

_MAIN: Final = ("command", "path", "pattern", "glob")
"""The arguments that say best what a call is about, the best first."""
_SHOWN: Final = 4_000


def call_words(call: ToolCall, limit: int = 80) -> str:
    """Say what a call is about on one line: the tool and its main argument."""
    about = next((value for name in _MAIN if isinstance(value := call.args.get(name), str)), "")
    return f"{part(call.tool, 40)} {part(about, limit)}".rstrip()


def call_outcome(call: ToolCall) -> str:
    """Say in a word or two what became of a call."""
    if call.decided == "denied":
        return "not allowed"
    if call.result is None:
        return "asks for leave" if call.decided is None else "allowed, not run yet"
    took = f", {call.seconds:.1f} s" if call.seconds >= 0.1 else ""
    leave = {"once": ", allowed once", "always": ", allowed always"}.get(call.decided or "", "")
    return ("done" if call.ok else "failed") + leave + took


def calls_text(calls: Iterable[ToolCall]) -> list[str]:
    """Return one line for each call."""
    return [f"{call_words(call)} ({call_outcome(call)})" for call in calls]


def calls_html(calls: Iterable[ToolCall], *, opened: bool = False) -> Html:
    """Return each call folded under its line: what it was given, and what the agent was told."""
    return Html("".join(_call(call, opened=opened) for call in calls))


def _call(call: ToolCall, *, opened: bool) -> Html:
    said = html_lines([call.said]) if call.said.strip() else Html()
    result = html_pre(call.result, _SHOWN) if call.result is not None else Html()
    body = Html(f"{said}{_args(call.args)}{result}")
    return html_fold(f"{call_words(call)} ({call_outcome(call)})", body, opened=opened)


def _args(args: Mapping[str, JSON]) -> Html:
    """Show long texts as they are, since a person may have to judge them, and the rest as a tree."""
    long = [name for name, value in args.items() if isinstance(value, str) and _is_long(value)]
    rest = {name: value for name, value in args.items() if name not in long}
    tree = html_json(rest, 2) if rest else Html()
    return Html(tree + "".join(_text(name, args[name]) for name in long))


def _text(name: str, value: JSON) -> Html:
    return Html(html_lines([f"{part(name, 40)}:"]) + html_pre(str(value), _SHOWN))


def _is_long(value: str) -> bool:
    return len(value) > 60 or "\n" in value
