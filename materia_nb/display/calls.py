"""What agents are told and do, in words, as lines and as escaped HTML: the layers of a prompt, tool calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from materia_nb.display.escape import ELLIPSIS, clip, part, plain
from materia_nb.display.html import Html, html_fold, html_json, html_lines, html_pre, html_text
from materia_nb.engine.conversation import ToolCall
from materia_nb.engine.prompt import Layer, Prompt
from materia_nb.jsonvalue import JSON, compact

LAYER_CHARS: Final = 4_000
BRIEF_CHARS: Final = 400
"""How much of the cast layer is shown as text where the prompt is only a part of what is told."""


def layers_text(prompt: Prompt, *, brief: bool = False) -> list[str]:
    """Return each layer as text under its heading; ``brief`` shows only the beginning of the cast layer."""
    shown = [
        (layer, BRIEF_CHARS if brief and layer.name == "cast" else LAYER_CHARS) for layer in prompt.layers
    ]
    return [f"{layer.heading} [{layer.name}]\n{clip(layer.text, most)}" for layer, most in shown]


def layers_html(prompt: Prompt, *, folded: bool = False) -> list[Html]:
    """Return each layer under its heading; ``folded`` shuts the cast layer, which is long."""
    return [_layer(layer, folded=folded and layer.name == "cast") for layer in prompt.layers]


def _layer(layer: Layer, *, folded: bool) -> Html:
    text = html_pre(layer.text, LAYER_CHARS)
    if folded:
        return html_fold(f"{layer.heading} [{layer.name}]", text)
    name = f'<span style="opacity:0.75">[{html_text(layer.name)}]</span>'
    return Html(f"<div><b>{html_text(layer.heading)}</b> {name}</div>{text}")


_MAIN: Final = ("command", "path", "pattern", "glob")
"""The arguments that say best what a call is about, the best first."""
_SHOWN: Final = 4_000
JUDGED: Final = 2**20
"""How much of a text is shown that a person is to allow: all that a call of a model can have, in characters."""
_JUDGED_IN_WORDS: Final = 2_000
_LINE_END: Final = " \u23ce "


def call_words(call: ToolCall) -> str:
    """Say what a call is about on one line: the tool and its main argument.

    Of one that has not run every argument is told whole, since a person may have to judge it: a sign
    stands for each line end, and of more than 2,000 characters the beginning and the end are told.
    """
    if call.result is not None:
        return _title(call)
    main = next((name for name in _MAIN if isinstance(call.args.get(name), str)), None)
    others = [judged_words(name, _as_text(value)) for name, value in call.args.items() if name != main]
    about = _in_words(call.args[main]) if main else ""
    return ", ".join([f"{part(call.tool, 40)} {about}".rstrip(), *others])


def call_outcome(call: ToolCall) -> str:
    """Say in a word or two what became of a call."""
    if call.decided == "denied":
        return "not allowed"
    if call.result is None:
        return "asks for approval" if call.decided is None else "allowed, not run yet"
    took = f", {call.seconds:.1f} s" if call.seconds >= 0.1 else ""
    leave = {"once": ", allowed once", "always": ", allowed always"}.get(call.decided or "", "")
    return ("done" if call.ok else "failed") + leave + took


def calls_text(calls: Iterable[ToolCall]) -> list[str]:
    """Return one line for each call."""
    return [f"{call_words(call)} ({call_outcome(call)})" for call in calls]


def calls_html(calls: Iterable[ToolCall], *, opened: bool = False) -> Html:
    """Return each call folded under its line: what it was given, and what the agent was told."""
    return Html("".join(_call(call, opened=opened) for call in calls))


def _about(call: ToolCall) -> str:
    return next((value for name in _MAIN if isinstance(value := call.args.get(name), str)), "")


def _title(call: ToolCall) -> str:
    return f"{part(call.tool, 40)} {part(_about(call), 80)}".rstrip()


def _call(call: ToolCall, *, opened: bool) -> Html:
    said = html_lines([call.said]) if call.said.strip() else Html()
    if call.result is None:
        body = Html(said + "".join(_whole(name, value) for name, value in call.args.items()))
    else:
        body = Html(f"{said}{_args(call.args)}{html_pre(call.result, _SHOWN)}")
    return html_fold(f"{_title(call)} ({call_outcome(call)})", body, opened=opened)


def _args(args: Mapping[str, JSON]) -> Html:
    """Show long texts as they are, at least their beginning, and the rest as a tree."""
    long = [name for name, value in args.items() if isinstance(value, str) and _is_long(value)]
    rest = {name: value for name, value in args.items() if name not in long}
    tree = html_json(rest, 2) if rest else Html()
    return Html(tree + "".join(_text(name, str(args[name]), _SHOWN) for name in long))


def _whole(name: str, value: JSON) -> Html:
    """Show all of an argument that a person may have to judge."""
    return judged_html(name, _as_text(value))


def judged_html(name: str, text: str) -> Html:
    """Show all of a text that a person is to judge, under its name and how long it is."""
    shown = _both_ends(text, JUDGED)
    return Html(html_lines([f"{part(name, 40)}{_size(text)}:"]) + html_pre(shown, len(shown)))


def judged_words(name: str, text: str) -> str:
    """Tell a text that a person is to judge on one line; of more than 2,000 characters the beginning and the end."""
    return f"{part(name, 40)}{_size(text)}: {_in_words(text)}"


def _as_text(value: JSON) -> str:
    return value if isinstance(value, str) else compact(value)


def _in_words(text: str) -> str:
    return plain(_both_ends(text.strip("\n"), _JUDGED_IN_WORDS)).replace("\n", _LINE_END)


def _size(text: str) -> str:
    """Say how many lines a text has, so that none can hide behind empty ones; nothing of a short one."""
    lines = f"{text.count(chr(10)) + 1:,} lines, " if "\n" in text else ""
    return f" ({lines}{len(text):,} characters)" if _is_long(text) else ""


def _text(name: str, text: str, limit: int) -> Html:
    return Html(html_lines([f"{part(name, 40)}:"]) + html_pre(text, limit))


def _both_ends(text: str, limit: int) -> str:
    """Keep ``limit`` characters, half of them from the end, with what is left out between marked and counted."""
    gap = len(text) - limit
    if gap <= 0:
        return text
    half = limit // 2
    return f"{text[:half]}\n{ELLIPSIS} [{gap:,} characters are not shown] {ELLIPSIS}\n{text[half + gap :]}"


def _is_long(value: str) -> bool:
    return len(value) > 60 or "\n" in value
