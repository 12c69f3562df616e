"""What the inspector shows that is only to be read, as plain data; and parts of a graph as a loadout writes them.

A block is a JSON object with ``is``: ``head``, ``line``, ``pre``, ``table``, ``facts``, ``fold``, ``json``. Foreign
text in them has been made harmless as text and bounded; none of it is markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import indent
from typing import Any, Final, TypeAlias

from materia_nb.display.bundle import Table
from materia_nb.display.escape import part, plain
from materia_nb.display.sections import JUDGED, call_outcome
from materia_nb.engine.conversation import ToolCall
from materia_nb.handoff import Issue
from materia_nb.jsonvalue import JSON, compact, pretty
from materia_nb.loadout.graph import Advance, Edge, ExitRoute, Iterator, Loop, Socket

Block: TypeAlias = dict[str, Any]

PRE_CHARS: Final = 6_000
CELL_CHARS: Final = 400
_MOST_ROWS: Final = 200
_JSON_CHARS: Final = 20_000


def head(text: str) -> Block:
    """A heading."""
    return {"is": "head", "text": part(text, 300)}


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
    if kind == "fold":
        return f"{block['title']}\n{indent(blocks_text(block['inside']), '  ')}"
    return str(block.get("text", ""))


def bounded(text: str, most: int) -> str:
    """Make a text harmless, and say how long it is where it is cut."""
    if len(text) <= most:
        return plain(text)
    return f"{plain(text[:most])}… ({len(text):,} characters in all)"


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
            inside += [{**head("what it was told"), "small": True}, pre(call.result)]
        found.append(fold(f"{_call_title(call)} ({call_outcome(call)})", inside, opened=judged))
    return found


def _call_title(call: ToolCall) -> str:
    about = next(
        (v for n in ("command", "path", "pattern", "glob") if isinstance(v := call.args.get(n), str)), ""
    )
    return f"{part(call.tool, 40)} {part(about, 80)}".rstrip()


def _argument(name: str, value: JSON, *, judged: bool) -> list[Block]:
    text = value if isinstance(value, str) else compact(value)
    size = f" ({text.count(chr(10)) + 1:,} lines, {len(text):,} characters)" if "\n" in text else ""
    return [{**head(f"{part(name, 40)}{size}"), "small": True}, pre(text, JUDGED if judged else PRE_CHARS)]


def edge_definition(edge: Edge) -> dict[str, JSON]:
    """An edge as a loadout writes it."""
    limit = {} if edge.max_traversals is None else {"maxTraversals": edge.max_traversals}
    return {"when": edge.when, "to": edge.to, **limit}


def route_definition(route: ExitRoute) -> dict[str, JSON]:
    """An exit route as a loadout writes it."""
    written = {
        "id": route.id,
        "from": route.source,
        "condition": route.condition,
        "targetSocketId": route.target,
    }
    return {**written, **({"derived": True} if route.derived else {})}


def socket_definition(socket: Socket) -> dict[str, JSON]:
    """A socket and its materia, with parse, assignments and advance as they take effect."""
    made: dict[str, Any] = {"materia": socket.materia.id, "parse": socket.parse}
    if socket.assign:
        made["assign"] = dict(socket.assign)
    made["edges"] = [edge_definition(edge) for edge in socket.edges]
    if socket.advance is not None:
        made["advance"] = _advance(socket.advance)
    if socket.iterator is not None and socket.iterator.loop is None:
        made["foreach"] = _iterator(socket.iterator)
    return {"socket": made, "materia": dict(socket.materia.raw)}


def loop_definition(loop: Loop) -> dict[str, JSON]:
    """A loop as it takes effect."""
    made: dict[str, Any] = {"sockets": list(loop.sockets)}
    if loop.generator is not None:
        made["consumes"] = {"from": loop.generator, "output": loop.output}
    if loop.iterator is not None:
        made["iterator"] = _iterator(loop.iterator)
    return {**made, "exits": [route_definition(route) for route in loop.routes]}


def _advance(advance: Advance) -> dict[str, JSON]:
    made: dict[str, JSON] = {"cursor": advance.cursor, "items": advance.items, "when": advance.when}
    return {**made, **({"derived": True} if advance.derived else {})}


def _iterator(iterator: Iterator) -> dict[str, JSON]:
    return {"items": iterator.items, "as": iterator.alias, "cursor": iterator.cursor}
