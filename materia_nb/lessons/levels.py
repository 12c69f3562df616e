"""Levels: pages on which a learner predicts a route, makes a cast reach a goal, or changes a loadout until it is right.

The levels are defined in ``levels.json``. A page needs neither Python nor a network. See
:mod:`materia_nb.cast.views.play_page` for the states and answers in a page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from materia_nb.cast.cases import write_export
from materia_nb.cast.gallery import gallery
from materia_nb.cast.views.play_page import SCRIPT, play_data, play_page
from materia_nb.display.escape import Html, esc, html_join, html_page
from materia_nb.display.graph_parts import socket_name
from materia_nb.file_io import read_package_text
from materia_nb.insight.reachable_states import COMPLETE, Move, StateSpace, explore_states
from materia_nb.insight.why import STOP
from materia_nb.jsonvalue import JSON, as_object, with_patch
from materia_nb.lessons.misreadings import MISREADINGS, RuleSet, ScriptedVerdicts, walk
from materia_nb.loadout import Graph, build_graph
from materia_nb.loadout.graph import END
from materia_nb.loadout.layers import BUNDLED
from materia_nb.loadout.vocabulary import Result

_PATHS: Final = 8
"""Number of routes from which a level draws one for each learner."""
_MAX_DRAWS, _MAX_MOVES = 2_000, 14


class Level(NamedTuple):
    """The definition of a level. An event is a socket, an end, the key of an edge or exit, or a verdict.

    Ends are ``complete`` and ``failed``. Edges have keys such as ``edge:0:Socket-3``, and exits have their id. A verdict is
    written as ``Socket-3 ✗``.

    Attributes:
        name: the name of the level and of its page.
        lesson: the name of the lesson to which the level belongs.
        title: the title of the page.
        goal: the task, in one or two sentences.
        loadout: the name of a bundled loadout, or of a card in the gallery.
        items: the list lengths that the learner can choose.
        patch: the JSON Patch that adapts the loadout.
        misreadings: the misreadings that a predicted route must reveal; empty for other kinds of levels.
        event: the event that the learner must reach, or that the changed loadout must make impossible.
        without: an event that must not happen before ``event``.
        since: an event that must happen first; ``without`` then applies after it.
        changes: the JSON Patch of each change from which the learner can choose, by label; empty for other levels.
    """

    name: str
    lesson: str
    title: str
    goal: str
    loadout: str
    items: Sequence[int] = (2,)
    patch: Sequence[Mapping[str, JSON]] = ()
    misreadings: Sequence[str] = ()
    event: str = COMPLETE
    without: str | None = None
    since: str | None = None
    changes: Mapping[str, Sequence[Mapping[str, JSON]]] = {}


def levels() -> list[Level]:
    """Return the levels in their order."""
    return [Level(**fields) for fields in json.loads(read_package_text(Path(__file__).with_name("levels.json")))]


def write_levels(folder: Path) -> list[Path]:
    """Write a page for each level and the overview ``index.html`` to a folder, and return the paths of the pages.

    Raises:
        MateriaError: a file cannot be written.
    """
    defined = levels()
    entries = [
        Html(f'<li><a href="{level.name}.html" data-level="{level.name}">{esc(level.title)}</a></li>')
        for level in defined
    ]
    overview = Html(f'<ol>{html_join(entries)}</ol><main id="levels"></main>')
    pages = {"index": html_page("Levels", overview, read_package_text(SCRIPT))}
    for level in defined:
        changed = list(changed_graphs(level).values())
        pages[level.name] = play_page(level.title, level_graph(level), level_data(level), changed)
    return [write_export(folder / f"{name}.html", "page", page) for name, page in pages.items()]


def level_graph(level: Level, change: Sequence[Mapping[str, JSON]] = ()) -> Graph:
    """Return the loadout of a level, to which a change can be applied."""
    card = dict(gallery()).get(level.loadout)
    document = json.loads(read_package_text(BUNDLED)) if card is None else card.document
    name = level.loadout if card is None else card.loadout
    return build_graph(as_object(with_patch(document, [*level.patch, *change])), name)


def level_data(level: Level) -> dict[str, JSON]:
    """Return the states and answers of a level, and its task, in the form that the page reads."""
    graph = level_graph(level)
    space = explore_states(graph, level.items)
    ends = [(END, "The cast completes"), (STOP, "The cast fails")]
    task: dict[str, JSON] = {
        "name": level.name,
        "goal": level.goal,
        "event": level.event,
        "without": level.without,
        "since": level.since,
        "targets": [
            [id_, label] for id_, label in [*((id_, socket_name(s)) for id_, s in graph.sockets.items()), *ends]
        ],
        "paths": [[list(path), beliefs] for path, beliefs in draw_paths(level, graph, space)]
        if level.misreadings
        else [],
        "changes": [
            {"label": label, "play": play_data(changed, explore_states(changed, level.items), 0.5)}
            for label, changed in changed_graphs(level).items()
        ],
    }
    return {**play_data(graph, space, 0.5), "level": task}


def changed_graphs(level: Level) -> dict[str, Graph]:
    """Return the loadout after each change that a level offers, by the label of the change."""
    return {label: level_graph(level, change) for label, change in level.changes.items()}


# -- routes to predict -----------------------------------------------------------------------


def draw_paths(level: Level, graph: Graph, space: StateSpace) -> Iterator[tuple[list[int], JSON]]:
    """Yield routes on which each misreading of a level leads to a wrong prediction.

    A route is a list of the numbers of the moves. It is yielded with the belief behind each wrong target, by target, for
    each of its steps.
    """
    rng, drawn = Random(level.name), []  # noqa: S311 - the routes are not secret
    for _ in range(_MAX_DRAWS):
        path = _random_path(space, rng)
        beliefs = _beliefs(graph, space, path, {name: MISREADINGS[name] for name in level.misreadings})
        if beliefs is not None and path not in drawn:
            drawn.append(path)
            yield path, beliefs
        if len(drawn) == _PATHS:
            return


def _random_path(space: StateSpace, rng: Random) -> list[int]:
    path: list[int] = []
    state = 0
    while len(path) < _MAX_MOVES:
        choices = [number for number, move in enumerate(space.moves[state]) if _is_plain(move)]
        if not choices:
            break
        path.append(rng.choice(choices))
        state = space.moves[state][path[-1]].to
    return path


def _is_plain(move: Move) -> bool:
    return not move.answer.asks and move.answer.result not in (Result.FAILED, Result.REFUSED)


def _beliefs(
    graph: Graph, space: StateSpace, path: Sequence[int], misreadings: Mapping[str, RuleSet]
) -> list[JSON] | None:
    """Return the beliefs behind wrong targets for each step of a route, or None if a misreading leads to no wrong target."""
    route, script = _route_and_script(space, path)
    right = walk(graph, script)
    if [*right.route, right.target][: len(route)] != route:
        return None  # the engine has limits that :func:`walk` does not know
    beliefs: list[JSON] = [{} for _ in path]
    for rules in misreadings.values():
        steps = walk(graph, script, rules)
        wrong = [*steps.route, steps.target]
        differs = next((step for step, pair in enumerate(zip(route, wrong, strict=False)) if pair[0] != pair[1]), 0)
        if not differs:
            return None
        as_beliefs: Any = beliefs[differs - 1]
        as_beliefs.setdefault(wrong[differs], rules.belief)
    return beliefs


def _route_and_script(space: StateSpace, path: Sequence[int]) -> tuple[list[str], ScriptedVerdicts]:
    """Return the sockets of a route with its end, and the work items and verdicts that lead to the route."""
    state, route, items = 0, [str(space.nodes[0].socket)], 0
    verdicts: dict[str, list[bool | None]] = {}
    for number in path:
        move = space.moves[state][number]
        verdicts.setdefault(route[-1], []).append({Result.YES: True, Result.NO: False}.get(move.answer.result))
        items = items if move.answer.items is None else move.answer.items
        state = move.to
        node = space.nodes[state]
        route.append(str(node.socket) if node.end is None else END if node.end == COMPLETE else STOP)
    return route, ScriptedVerdicts([f"item {number + 1}" for number in range(items)], verdicts)
