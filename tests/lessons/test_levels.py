"""Test the levels: their routes, misreadings, goals and changes, compared with the engine and the exploration."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from random import Random

import pytest

from materia_nb.insight.explore import Exploration
from materia_nb.lessons.__main__ import lessons_folder, main
from materia_nb.lessons.misreadings import MISREADINGS, ScriptedVerdicts, walk
from materia_nb.lessons.questions import changed_graphs, level_data, level_graph, levels
from materia_nb.loadout.graph import END

LEVELS = {level.name: level for level in levels()}
PREDICTED = [name for name, level in LEVELS.items() if level.misreadings]
VERDICTS = {"✓": True, "✗": False}


NAMES = [
    "Ada",
    "Ali",
    "Ben",
    "Chen",
    "Dora",
    "Emil",
    "Fatma",
    "Gus",
    "Hana",
    "Ivan",
    "Jo",
    "Kim",
    "Lena",
    "Max",
    "Nia",
    "Otto",
    "Pia",
    "Raj",
    "Sara",
    "Tom",
]


@cache
def data_of(name):
    level = LEVELS[name]
    return level_data(level, level_graph(level), changed_graphs(level))


def casts_of(data, drawn):
    """Yield the path and the beliefs of each cast in a drawn series of casts; an end has a move to the next cast."""
    state, begin = 0, 0
    for step, number in enumerate(drawn[0]):
        if data["states"][state][2] is not None:
            yield drawn[0][begin:step], drawn[1][begin:step]
            begin = step + 1
        state = data["states"][state][5][number][0]
    yield drawn[0][begin:], drawn[1][begin:]


def route_of(data, path):
    """Return the sockets and the end of a route on a page, and the verdicts that lead there, from the page alone."""
    state, sockets, verdicts, items = data["states"][0], [], {}, 0
    for number in path:
        move = state[5][number]
        answer = data["texts"][move[1]]
        sockets.append(state[1])
        verdicts.setdefault(state[1], []).append(VERDICTS.get(answer[0]))
        items = int(match[1]) if (match := re.search(r"lists (\d+) items", answer)) else items
        state = data["states"][move[0]]
    end = state[1] if state[2] is None else END if state[2] == "complete" else "stop"
    return [*sockets, end], ScriptedVerdicts([f"item {number}" for number in range(items)], verdicts)


def test_there_are_twelve_levels_and_each_belongs_to_a_lesson():
    assert len(LEVELS) == 12
    for level in LEVELS.values():
        assert (lessons_folder() / f"{level.lesson}.ipynb").is_file()


@pytest.mark.parametrize("name", PREDICTED)
def test_every_answer_that_follows_a_misreading_is_diagnosed_as_that_misreading(name):
    level, data, graph = LEVELS[name], data_of(name), level_graph(LEVELS[name])
    for path, beliefs in (cast for drawn in data["level"]["paths"] for cast in casts_of(data, drawn)):
        route, script = route_of(data, path)
        right = walk(graph, script)
        assert [*right.route, right.target][: len(route)] == route
        for misreading in level.misreadings:
            wrong = walk(graph, script, MISREADINGS[misreading])
            targets = [*wrong.route, wrong.target]
            step = next(number for number, target in enumerate(route) if targets[number] != target)
            assert data["level"]["beliefs"][beliefs[step - 1][targets[step]]] == MISREADINGS[misreading].belief
        assert sum(len(wrong) for wrong in beliefs if wrong) == len(level.misreadings)
        assert not any(wrong and route[step + 1] in wrong for step, wrong in enumerate(beliefs))


@pytest.mark.parametrize("name", PREDICTED)
def test_every_step_with_more_than_one_possible_target_is_asked(name):
    data = data_of(name)
    for path, beliefs in data["level"]["paths"]:
        state = data["states"][0]
        for number, wrong in zip(path, beliefs, strict=True):
            targets = {
                tuple(data["states"][move[0]][1:3]) for move in state[5] if "\u26a0" not in data["texts"][move[1]]
            }
            assert (wrong is None) == (len(targets) == 1)
            state = data["states"][state[5][number][0]]


def draw_of(name, count):
    """Return the number of the route that the page draws for a name."""
    draw = 0
    for letter in name:
        draw = (31 * draw + ord(letter)) % 2**31
    return draw % count


@pytest.mark.parametrize("name", PREDICTED)
def test_at_most_two_learners_of_a_class_of_twenty_have_the_same_answers(name):
    data, chance = data_of(name), Random(name)
    routes = {
        tuple(tuple(route_of(data, path)[0]) for path, _ in casts_of(data, drawn)) for drawn in data["level"]["paths"]
    }
    count = len(data["level"]["paths"])
    assert len(routes) == count

    def largest_group(names):
        return max(Counter(draw_of(learner, count) for learner in names).values())

    assert largest_group(NAMES) <= 2
    classes = [["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in NAMES] for _ in range(1_000)]
    assert sum(largest_group(names) <= 2 for names in classes) >= 950


@pytest.mark.parametrize(
    "name, event, without, solutions",
    [
        ("hasty-packer", "Socket-4", "loop-exit:parcels:exit:Socket-3:always", {"Edge 1 leads back to Pack"}),
        ("fix-it", "complete", "Socket-4", {"The exit is for always"}),
    ],
)
def test_changes_that_solve_a_level_leave_no_counterexample(name, event, without, solutions):
    level = LEVELS[name]
    assert (level.event, level.without) == (event, without)
    explored = {label: Exploration(graph, level.items) for label, graph in changed_graphs(level).items()}
    assert {label for label, result in explored.items() if result.witness(event, without=without) is None} == solutions
    assert Exploration(level_graph(level), level.items).witness(event, without=without)


def test_pages_are_small_and_load_no_external_resources(tmp_path, capsys):
    folder = tmp_path / "new" / "levels"
    assert main(["levels", str(folder)]) == 0
    assert capsys.readouterr().out == f"13 pages written. Open {folder / 'index.html'}\n"
    pages = {path.stem: path.read_text("utf-8") for path in folder.iterdir()}
    assert set(pages) == {"index", *LEVELS}
    for page in pages.values():
        assert len(page) < 100_000
        assert "default-src 'none'" in page
        assert not re.search(r"(?:src|href)=.?https?:", page)
    assert all(f'href="{name}.html"' in pages["index"] for name in LEVELS)


def test_unwritable_folder_is_reported(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["levels", str(tmp_path / "file" / "levels")]) == 1
    assert "write the page" in capsys.readouterr().err
