"""What the inspector shows that is only to be read, as plain data, and how it is written as text and as HTML.

A block is a JSON object with ``is``: ``head``, ``line``, ``pre``, ``table``, ``facts``, ``fold``, ``json``, ``diff``. Foreign
text in them has been made harmless as text and bounded; none of it is markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import indent
from typing import Any, Final, TypeAlias

from materia_nb.display.bundle import Table
from materia_nb.display.escape import (
    Html,
    clip,
    html_facts,
    html_fold,
    html_heading,
    html_join,
    html_lines,
    html_pre,
    html_table,
    part,
)
from materia_nb.display.sections import JUDGED, call_outcome, call_title
from materia_nb.engine.conversation import ToolCall
from materia_nb.handoff import Issue
from materia_nb.handoff.protocol import as_text
from materia_nb.jsonvalue import JSON, pretty
from materia_nb.outgoing import plain

Block: TypeAlias = dict[str, Any]

PRE_CHARS: Final = 6_000
CELL_CHARS: Final = 400
_MOST_ROWS: Final = 200
_JSON_CHARS: Final = 20_000


def head(text: str, *, small: bool = False, tone: str = "") -> Block:
    """A heading; ``tone`` as for a line."""
    more = {**({"small": True} if small else {}), **({"tone": tone} if tone else {})}
    return {"is": "head", "text": part(text, 300), **more}


def diff(lines: Iterable[tuple[str, str]]) -> Block:
    """What was changed of a text: each line behind ``+``, ``-`` or a blank."""
    return {"is": "diff", "rows": [[sign, bounded(text, CELL_CHARS)] for sign, text in lines][:_MOST_ROWS]}


def line(text: str, tone: str = "") -> Block:
    """One line; ``tone`` is bad, warn, good or quiet."""
    return {"is": "line", "text": bounded(text, 2_000), "tone": tone}


def lines(texts: Iterable[str], tone: str = "") -> list[Block]:
    """Several lines."""
    return [line(text, tone) for text in texts]


def pre(text: str, most: int = PRE_CHARS) -> Block:
    """A text as it was written."""
    return {"is": "pre", "text": bounded(text, most)}


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> Block:
    """A small table."""
    found = [[bounded(cell, CELL_CHARS) for cell in row] for row in rows]
    if len(found) > _MOST_ROWS:
        found = [*found[:_MOST_ROWS], [f"… {len(found) - _MOST_ROWS} more", *[""] * (len(headers) - 1)]]
    return {"is": "table", "headers": list(headers), "rows": found}


def facts(rows: Iterable[tuple[str, str]]) -> Block:
    """Names and values in two columns."""
    return {"is": "facts", "rows": [[name, bounded(value, CELL_CHARS)] for name, value in rows]}


def fold(title: str, inside: Sequence[Block], *, opened: bool = False) -> Block:
    """Blocks under a line that opens and closes."""
    return {"is": "fold", "title": bounded(title, 300), "inside": list(inside), "open": opened}


def json_block(value: JSON) -> Block:
    """A JSON value, as a tree while it is of a size for one."""
    text = pretty(value)
    return pre(text, _JSON_CHARS) if len(text) > _JSON_CHARS else {"is": "json", "text": plain(text)}


def blocks_text(blocks: Iterable[Block]) -> str:
    """Return blocks as text, for readers without widgets."""
    return "\n".join(_block_text(one) for one in blocks)


def _block_text(block: Block) -> str:
    kind = block["is"]
    if kind == "table":
        return repr(Table(block["headers"], block["rows"]))
    if kind == "facts":
        return "\n".join(f"{name}: {value}" for name, value in block["rows"])
    if kind == "diff":
        return _diff_text(block)
    if kind == "fold":
        return f"{block['title']}\n{indent(blocks_text(block['inside']), '  ')}"
    return str(block.get("text", ""))


def _diff_text(block: Block) -> str:
    return "\n".join(f"{sign} {text}" for sign, text in block["rows"])


def blocks_html(blocks: Iterable[Block]) -> Html:
    """Return blocks as HTML, for where no front-end of ours draws them."""
    return html_join(_block_html(one) for one in blocks)


def _block_html(block: Block) -> Html:
    kind = block["is"]
    if kind == "table":
        return html_table(block["headers"], block["rows"])
    if kind == "facts":
        return html_facts(block["rows"])
    if kind == "diff":
        return html_pre(_diff_text(block))
    if kind == "fold":
        return html_fold(block["title"], blocks_html(block["inside"]), opened=block["open"])
    draw = {"head": html_heading, "pre": html_pre, "json": html_pre}.get(kind)
    return draw(block["text"]) if draw is not None else html_lines([block["text"]])


def bounded(text: str, most: int) -> str:
    """Make a text harmless, and say how long it is where it is cut."""
    return plain(clip(text, most))


def issue_rows(issues: Iterable[Issue]) -> list[list[str]]:
    """What is wrong with an output: where, what, what to do."""
    return [[plain(one.path), plain(one.message), plain(one.fix)] for one in list(issues)[:20]]


def call_blocks(calls: Sequence[ToolCall], *, judged: bool = False) -> list[Block]:
    """Return each tool call folded: what the model said beside it, what it was given, what it was told.

    Args:
        calls: which.
        judged: whether a person is to allow them: then all of what each would do is shown, opened, and what was
            said beside it is left to whoever shows it above them.
    """
    found: list[Block] = []
    for call in calls:
        inside = lines([call.said], "said") if call.said.strip() and not judged else []
        inside += [one for name, value in call.args.items() for one in _argument(name, value, judged=judged)]
        if call.result is not None:
            inside += [head("what it was told", small=True), pre(call.result)]
        found.append(fold(f"{call_title(call)} ({call_outcome(call)})", inside, opened=judged))
    return found


def _argument(name: str, value: JSON, *, judged: bool) -> list[Block]:
    text = as_text(value)
    size = f" ({text.count(chr(10)) + 1:,} lines, {len(text):,} characters)" if "\n" in text else ""
    return [head(f"{part(name, 40)}{size}", small=True), pre(text, JUDGED if judged else PRE_CHARS)]
