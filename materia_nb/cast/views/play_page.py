"""An HTML page on which the user plays through a loadout: a single file with the graph, all states and all answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from materia_nb.cast.formatting import describe_failure
from materia_nb.display.blocks import blocks_as_html
from materia_nb.display.escape import Html, html_page, part
from materia_nb.display.graph_parts import Link, links
from materia_nb.display.svg import graph_block
from materia_nb.errors import counted
from materia_nb.file_io import read_package_text
from materia_nb.insight.odds import Chances, outlooks
from materia_nb.insight.reachable_states import COMPLETE, HELD, Move, StateNode, StateSpace
from materia_nb.insight.scripted_answers import EdgeRef, ScriptedResult
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import END, Graph
from materia_nb.loadout.vocabulary import VERDICTS, Result

SCRIPT: Final = Path(__file__).parents[2] / "widgets" / "bundle" / "play.js"
_POSITIONS: Final = {
    "only": "the only item",
    "first": "the first item",
    "middle": "an item in the middle",
    "last": "the last item",
}
_ANSWERS: Final = {
    Result.YES: "✓ satisfied",
    Result.NO: "✗ not satisfied",
    Result.FAILED: "⚠ fails",
    Result.REFUSED: "⚠ returns an unusable output",
}


def play_page(title: str, graph: Graph, data: Mapping[str, JSON], changed: Sequence[Graph] = ()) -> str:
    """Return an HTML page with the picture of a loadout, on which the user plays through its states.

    The page is a single file without external resources, so it works without a network.

    Args:
        title: the title of the page.
        graph: the loadout.
        data: the data from :func:`play_data`. A level has an additional field ``level``, which contains its task.
        changed: the changed loadouts, one for each change that a level offers; their pictures are hidden at first.
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    data_script = Html(f'<script type="application/json" id="play-data">{text}</script>')
    pictures = [f"<div>{blocks_as_html([graph_block(graph)])}</div>"]
    pictures += [f"<div hidden>{blocks_as_html([graph_block(other)])}</div>" for other in changed]
    body = Html(f'<div id="picture">{"".join(pictures)}</div><main id="play"></main>{data_script}')
    return html_page(title, body, read_package_text(SCRIPT))


def play_data(graph: Graph, space: StateSpace, satisfied: Chances) -> dict[str, JSON]:
    """Return the JSON data of the page.

    Returns:
        An object with ``texts``, a list of strings to which the other values refer by index; ``start``, the reason for
        the first socket; and ``states``. A state consists of its text, its socket, its end (None while the cast waits),
        the probability of completing, the mean number of remaining turns, and its moves. A move consists of the next
        state, the answer, the reason, the number of turns, and the keys of the edges that are followed in the picture.
    """
    texts: dict[str, int] = {}
    keys = {_edge_of(link): link.key for link in links(graph)}

    def index(text: str) -> int:
        return texts.setdefault(text, len(texts))

    def move_data(node: StateNode, move: Move, moves: Sequence[Move]) -> list[JSON]:
        reason = _reason(graph, move, node, space.nodes[move.to])
        lines = [keys[edge] for edge in move.edges if edge in keys]
        return [move.to, index(_answer_text(move.answer, moves)), index(reason), move.turns, *map(index, lines)]

    states: list[JSON] = [
        [
            index(_state_text(graph, node)),
            node.socket,
            node.end,
            round(outlook.complete, 4),
            round(outlook.turns, 2),
            [move_data(node, move, moves) for move in moves],
        ]
        for node, moves, outlook in zip(space.nodes, space.moves, outlooks(graph, space, satisfied), strict=True)
    ]
    start = index(" ".join(["A cast begins here.", *(_route_text(graph, edge, is_skip=True) for edge in space.first)]))
    return {"texts": list(texts), "start": start, "states": states}


def _edge_of(link: Link) -> EdgeRef:
    return link.key if link.edge_index is None else (link.source, link.edge_index + 1)


def _state_text(graph: Graph, node: StateNode) -> str:
    """Describe the position of a cast: a socket with its work item, or an end."""
    if node.end == COMPLETE:
        return "Complete"
    place = part(graph.names[node.socket or END])
    if node.end is None:
        return f"{place}, {_POSITIONS[node.position]}" if node.position else place
    return f"On hold for a person at {place}" if node.end == HELD else f"Failed: {place} {describe_failure(node.end)}"


def _answer_text(answer: ScriptedResult, moves: Sequence[Move]) -> str:
    """Return the label of the button for an answer of an agent or a process; ``moves`` contains all possible answers."""
    if answer.asks:
        return f"asks a person ({answer.asks})"
    has_verdicts = any(move.answer.result in VERDICTS for move in moves)
    without_verdict = "answers without a verdict" if has_verdicts else "answers"
    verdict = _ANSWERS.get(answer.result, "" if answer.list_length is not None else without_verdict)
    length = "" if answer.list_length is None else f"lists {counted(answer.list_length, 'item')}"
    return ", ".join(filter(None, (verdict, length)))


def _reason(graph: Graph, move: Move, source: StateNode, target: StateNode) -> str:
    """Explain in one or more sentences why a move leads to its next state."""
    if move.answer.asks:
        return "The agent asks for a person, so the cast is put on hold."
    scope = " for each item" if source.position else ""
    routes = [
        _route_text(graph, edge, move.answer.result, scope, is_skip=number > 0)
        for number, edge in enumerate(move.edges)
    ]
    if target.end is not None and target.end != COMPLETE:
        routes.append(f"The cast stops: {part(graph.names[target.socket or END])} {describe_failure(target.end)}.")
    elif not routes and target.end == COMPLETE:
        routes.append("No edge or exit matches, so the cast is complete.")
    if source.position and target.position and source.position != target.position:
        routes.append(f"The next work item is {_POSITIONS[target.position]}.")
    return " ".join(routes) or f"The cast continues at {_state_text(graph, target)}."


def _route_text(
    graph: Graph, edge: EdgeRef, result: Result | None = None, scope: str = "", *, is_skip: bool = False
) -> str:
    """Describe an edge or exit that was followed.

    Args:
        graph: the loadout.
        edge: the edge or exit.
        result: the result of the visit before the edge.
        scope: text to append to the description of the limit of an edge.
        is_skip: True if an exit is taken because its loop is entered without an item.
    """
    if isinstance(edge, tuple):
        taken_edge = graph.sockets[edge[0]].edges[edge[1] - 1]
        because = f": {result.sentence}" if result is not None and taken_edge.when != "always" else ""
        max_traversals = taken_edge.max_traversals
        limit = "" if max_traversals is None else f" It can be taken at most {counted(max_traversals, 'time')}{scope}."
        return f"Edge {edge[1]} ({taken_edge.when}) leads to {part(graph.names[taken_edge.to])}{because}.{limit}"
    route = next(route for loop in graph.loops.values() for route in loop.routes if route.edge_id == edge)
    reason = "The loop is skipped, because it has no item:" if is_skip else "No item is left, so"
    return f"{reason} the exit for {route.condition} leads to {part(graph.names[route.target])}."
