"""Test the levels: their routes, misreadings, goals and changes, compared with the engine and the exploration."""

from __future__ import annotations

import re

import pytest

from materia_nb.insight.explore import Exploration
from materia_nb.lessons.__main__ import lessons_folder, main
from materia_nb.lessons.misreadings import MISREADINGS, ScriptedVerdicts, walk
from materia_nb.lessons.questions import changed_graphs, level_data, level_graph, levels
from materia_nb.loadout.graph import END

LEVELS = {level.name: level for level in levels()}
PREDICTED = [name for name, level in LEVELS.items() if level.misreadings]
VERDICTS = {"✓": True, "✗": False}


def data_of(level):
    return level_data(level, level_graph(level), changed_graphs(level))


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
def test_every_drawn_route_is_correct_and_reveals_all_misreadings_of_its_level(name):
    level, data = LEVELS[name], data_of(LEVELS[name])
    paths = data["level"]["paths"]
    assert len(paths) >= 3
    assert len({tuple(path) for path, _ in paths}) == len(paths)
    for path, beliefs in paths:
        route, script = route_of(data, path)
        right = walk(level_graph(level), script)
        assert [*right.route, right.target][: len(route)] == route
        for misreading in level.misreadings:
            wrong = walk(level_graph(level), script, MISREADINGS[misreading])
            targets = [*wrong.route, wrong.target]
            step = next(number for number, target in enumerate(route) if targets[number] != target)
            assert beliefs[step - 1][targets[step]] in {MISREADINGS[other].belief for other in level.misreadings}


@pytest.mark.parametrize("name", PREDICTED)
def test_no_misreading_predicts_the_right_target(name):
    data = data_of(LEVELS[name])
    for path, beliefs in data["level"]["paths"]:
        route, _ = route_of(data, path)
        assert not any(route[step + 1] in wrong for step, wrong in enumerate(beliefs))


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
