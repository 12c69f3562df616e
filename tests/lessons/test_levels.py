"""Test the levels: their routes, misreadings, goals and changes, compared with the engine and the exploration."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from random import Random

import pytest

from materia_nb.cast.views.play_page import play_page
from materia_nb.insight.explore import Exploration
from materia_nb.lessons.__main__ import lessons_folder, main
from materia_nb.lessons.misreadings import MISREADINGS, ScriptedVerdicts, walk
from materia_nb.lessons.questions import changed_graphs, level_data, level_graph, levels
from materia_nb.loadout.graph import END
from page_taps import TAPS, EnginePlayer, needs_node, random_taps, shown_after_taps

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
def test_every_wrong_answer_in_a_level_is_traced_to_the_misreading_behind_it(name):
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


def write_page(name, folder):
    """Write the page of a level, and return its path."""
    level = LEVELS[name]
    path = folder / f"{name}.html"
    path.write_text(play_page(level.title, level_graph(level), data_of(name)), "utf-8")
    return path


@needs_node
def test_10000_random_taps_on_a_level_follow_the_engine_and_solve_it_only_at_its_goal(tmp_path):
    level = LEVELS["break-it"]
    taps = random_taps(level_graph(level), level.items, level.name)
    results = shown_after_taps(write_page(level.name, tmp_path), [number for number, _ in taps])
    for (_, engine), shown in zip(taps, results, strict=True):
        assert shown["heading"] == engine.heading
        assert shown["solved"] == (engine.end == level.event and level.without not in engine.visited)
    assert len({shown["solved"] for shown in results}) == 2


def questions_of(name, learner):
    """Return the heading and the right answer of each question that a level asks a learner, and the last heading."""
    data, player = data_of(name), EnginePlayer(level_graph(LEVELS[name]), LEVELS[name].items)
    paths, questions = data["level"]["paths"], []
    for number, wrong in zip(*paths[draw_of(learner, len(paths))], strict=True):
        before = player.view
        if before.end is not None:  # the next cast of the level begins
            player.restart()
            continue
        player.answer(number)
        if wrong is not None:
            view = player.view
            right = {None: view.socket, "complete": "end"}.get(view.end, "stop")
            questions.append((before.heading, right))
    return questions, player.view.heading


@needs_node
@pytest.mark.parametrize("name", ["first-match", "per-item"])
def test_10000_random_predictions_are_correct_exactly_if_the_engine_agrees(tmp_path, name):
    targets = [target for target, _ in data_of(name)["level"]["targets"]]
    questions, last_heading = questions_of(name, "Ada")
    headings = [*(heading for heading, _ in questions), last_heading]
    chance, taps, expected, number = Random(name), [None], [(headings[0], True, False)], 0
    while len(taps) < TAPS:
        tap = chance.randrange(len(targets)) if number < len(questions) else None
        is_right = tap is None or targets[tap] == questions[number][1]
        number = 0 if tap is None else number + is_right
        taps.append(tap)
        expected.append((headings[number], is_right, number == len(questions)))
    results = shown_after_taps(write_page(name, tmp_path), taps, "Ada")
    assert [(shown["heading"], not shown["alert"], shown["solved"]) for shown in results] == expected


@pytest.mark.parametrize("name", PREDICTED)
def test_every_step_with_several_possible_targets_has_a_question(name):
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
def test_at_most_two_learners_in_a_class_of_twenty_get_the_same_route(name):
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
        (
            "hasty-packer",
            "Socket-4",
            "loop-exit:parcels:exit:Socket-3:always",
            {"The edge for satisfied leads back to Pack"},
        ),
        ("fix-it", "complete", "Socket-4", {"The exit is for always"}),
    ],
)
def test_only_the_listed_solutions_of_a_level_leave_no_counterexample(name, event, without, solutions):
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
