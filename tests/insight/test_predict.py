"""Test predictions of the next target: judged guesses, explanations, the verb and the panel."""

from __future__ import annotations

import threading

import ipywidgets as ui
import pytest

import cast_helpers as h
from builders import NO, YES, Play, asks, at, config, edge, exit_route, items, loop, retry_loop, say
from magics_helpers import new_shell
from materia_nb.errors import MateriaError
from materia_nb.insight.why import STOP, judge_guess, next_target, parse_guess, possible_guesses
from materia_nb.lessons import Question, predict, progress
from materia_nb.lessons.checks import guesses_file, read_guesses
from materia_nb.widgets.base import runs_of, widgets_in
from materia_nb.widgets.predict import PredictPanel


def judged(play, guess):
    step = play.last
    return judge_guess(play.rules, guess, "the step", step.decision, step.state)


def explanation_of(play, guess):
    return str(judged(play, guess))


def branching(*conditions):
    edges = [edge(f"To{n}", when) for n, when in enumerate(conditions)]
    return config({"Ask": asks(*edges), **{e["to"]: at("P") for e in edges}})


def only_right(play, place):
    """Return all possible guesses that are judged as correct."""
    return [guess for guess in possible_guesses(play.rules) if judged(play, guess).right] == [place]


# -- every way on ---------------------------------------------------------------------------


def test_prediction_explains_both_the_taken_and_the_guessed_edge():
    play = Play(branching("satisfied", "not_satisfied", "always"), NO)
    assert only_right(play, "To1")
    assert "Right: the cast goes to To1 P" in explanation_of(play, "To1")
    text = explanation_of(play, "To0")
    assert "Your guess: the cast goes to To0 P. What happened: the cast goes to To1 P." in text
    assert "So edge 2 (✗) leads to To1 P." in text
    assert "The edge to To0 P was checked, but the output sets satisfied: false" in text
    assert "There is an edge to To2 P, but an earlier edge matched." in explanation_of(play, "To2")
    assert "No edge or exit leads from Ask P to Ask P." in explanation_of(play, "Ask")
    assert "Nothing failed" in explanation_of(play, STOP)


def test_r16_prediction_explains_an_exit_before_edges():
    play = Play(retry_loop(), items("one", "two"), "built", YES)
    assert only_right(play, "Build")
    assert "exits are checked only in a step that exhausts the list" in explanation_of(play, "Tell")
    play.go("built", YES)
    assert only_right(play, "Tell")
    text = explanation_of(play, "Build")
    assert "There is an edge to Build P, but the list is exhausted, so only exits are checked." in text
    assert "So the exit (✓) leads to Tell P." in text


def test_prediction_explains_an_exit():
    routes = [exit_route("Do", "not_satisfied", "Bad"), exit_route("Do", "satisfied", "Good")]
    sockets = {
        "Plan": asks(edge("Do"), materia="G"),
        "Do": asks(edge("Do")),
        "Bad": at("P"),
        "Good": at("P"),
    }
    play = Play(config(sockets, {"L": loop("Do", exits=routes)}), items("one"), YES)
    assert only_right(play, "Good")
    assert "The exit to Bad P was checked, but the output sets satisfied: true" in explanation_of(play, "Bad")


def test_prediction_explains_the_three_kinds_of_end():
    for document in (config({"A": at("P", edge("end"))}), branching("satisfied"), config({"A": asks()})):
        play = Play(document, NO)
        assert only_right(play, "end")
        assert "Right: the cast ends." in explanation_of(play, "end")
    assert "The edge to To0 P was checked" in explanation_of(Play(branching("satisfied"), NO), "To0")


def test_r16_prediction_skips_empty_loops():
    sockets = {"Plan": asks(edge("Do"), materia="G"), "Do": at("P", edge("Do")), "Tell": at("P")}
    play = Play(config(sockets, {"L": loop("Do", exits=[exit_route("Do", "always", "Tell")])}), items())
    assert only_right(play, "Tell")
    text = explanation_of(play, "Do")
    assert "Do P of loop L was skipped: its list is empty; the always exit of the loop led to Tell P." in text
    assert "No edge" not in text


def test_r19_stop_is_the_correct_guess_after_the_last_refused_output():
    play = Play(branching("always"), say(odd=1))
    assert only_right(play, "Ask")
    assert "asked again" in explanation_of(play, "To0")
    play.go(say(odd=1))
    assert only_right(play, STOP)
    assert "The cast stopped: " in explanation_of(play, "To0")


def test_prediction_after_a_draft_expects_the_same_socket():
    assert only_right(Play(config({"Talk": at("M", edge("B")), "B": at("P")}), "x"), "Talk")


def test_r18_prediction_explains_limits():
    play = Play(retry_loop(1), items("one"), "built", NO)
    assert only_right(play, "Build")
    play.go("built", NO)
    assert only_right(play, STOP)
    assert "and was chosen again" in explanation_of(play, "Build")
    play = Play(retry_loop(limits={"maxNoAdvanceCycles": 1}), items("one"), *["built", NO] * 2)
    assert only_right(play, STOP)
    assert "completed 2 cycles without advancing" in explanation_of(play, "Build")


def test_r20_prediction_explains_the_budget():
    play = Play(retry_loop(budget={"maxTokens": 1}), items("one"), "built")
    play.answer(YES, 5)
    assert only_right(play, STOP)


def test_guess_equal_to_the_name_of_a_socket_means_that_socket():
    play = Play(config({"A": at("P", edge("stop")), "stop": at("P")}), "x")
    assert possible_guesses(play.rules) == ("A", "stop", "end")
    assert judged(play, "stop").right


def test_guess_ignores_case_and_a_typo_gets_a_suggestion():
    rules = Play(branching("always")).rules
    assert parse_guess(rules, " to0 ") == "To0"
    assert parse_guess(rules, "END") == "end"
    with pytest.raises(MateriaError) as raised:
        parse_guess(rules, "Too0")
    assert raised.value.kind == "unknown_socket"
    assert "'To0'" in str(raised.value)


def test_next_target_skips_empty_loops():
    sockets = {"Plan": asks(edge("Do"), materia="G"), "Do": at("P", edge("Do"))}
    play = Play(config(sockets, {"L": loop("Do", exits=[exit_route("Do", "satisfied", "end")])}), items())
    assert next_target(play.rules, play.last.state) == "end"


# -- a cast ---------------------------------------------------------------------------------


def test_guess_does_not_change_the_cast(cast):
    question = Question(cast)
    assert str(question) == "Socket-1 runs next. Where does the cast go after it?"
    with pytest.raises(MateriaError):
        question.guess("Socket-77")
    assert [question.guess(place).right for place in ("Socket-3", "socket-2", "Socket-3")] == [
        False,
        True,
        False,
    ]
    assert (cast.steps, cast.status) == ([], "ready")
    bundle = question.guess("Plan")._repr_mimebundle_()
    assert "✗ Not this time" in bundle["text/plain"]
    assert "✗ Not this time" in bundle["text/html"]


def test_first_wrong_guess_is_explained_without_revealing_the_answer(bench):
    cast = bench.cast("x", agents={"Plan": lambda: {"workItems": []}, "Narrate": lambda: "nothing"})
    question = Question(cast, tries=2)
    first = question.guess("end", sure=True)
    assert (first.right, first.is_revealed) == (False, False)
    assert "No edge or exit leads from Plan to the end." in repr(first)
    assert "half a point" in repr(first)
    assert "Socket-5" not in str(first._repr_mimebundle_())
    assert question.guess("end").is_revealed is False, "the same guess again is not a second one"
    second = question.guess("Socket-2", sure=True)
    assert (second.right, second.is_revealed) == (False, True)
    assert "What happened: the cast goes to Narrate" in repr(second)
    assert "You were sure of a wrong answer" in repr(second)
    assert "You were sure" not in repr(question.guess("Socket-3", sure=True))
    assert "Right" in repr(question.guess("Socket-5"))
    assert question.points == [0], "what comes after the answer is not a guess"


def test_correct_second_guess_earns_half_a_point(cast):
    question = Question(cast, tries=2)
    question.guess("end")
    assert "You were not sure" in repr(question.guess("Socket-2", sure=False))
    question.next_step()
    assert "You were not sure" not in repr(question.guess("Socket-3", sure=True))
    assert question.points == [0.5, 1]


def test_route_is_predicted_one_step_at_a_time(cast):
    question = Question(cast)
    with pytest.raises(MateriaError, match="not revealed yet"):
        question.next_step()
    for socket, guess in (("Socket-1", "Socket-2"), ("Socket-2", "Socket-3"), ("Socket-3", "end")):
        assert question.socket == socket
        question.guess(guess)
        assert question.has_next
        question.next_step()
    assert question.points == [1, 1, 0]
    assert question.state_lines[0].startswith(f"{question.socket}, visit")
    assert cast.steps == []


def test_route_is_judged_up_to_the_first_wrong_guess(bench):
    def route(*guesses):
        return Question(bench.cast("x", loadout="Plan-Build-Eval", agents=agents)).walk(guesses)

    agents = {"Plan": lambda: {"workItems": h.items("a")}, "Build": lambda: "built"}
    agents |= {"Eval": lambda: YES, "Maintain": lambda: YES, "Narrate": lambda: "told"}
    whole = route("Socket-2", "Socket-3", "Socket-4", "Socket-5", "end")
    assert whole.right
    assert "5 steps right" in repr(whole)
    assert "That is the whole route." in repr(whole)
    assert "Right so far. Socket-2 runs next." in repr(route("Socket-2"))
    wrong = route("Socket-2", "Socket-4", "Socket-5")
    assert (wrong.right, len(wrong.steps)) == (False, 2)
    assert "No edge or exit leads from Build to Maintain." in repr(wrong)
    over = route("Socket-2", "Socket-3", "Socket-4", "Socket-5", "end", "end")
    assert not over.right
    assert "1 guess too many" in over._repr_mimebundle_()["text/html"]
    with pytest.raises(MateriaError, match="predicted route is empty"):
        route()


def test_later_steps_of_the_cast_do_not_change_a_question(cast):
    question = Question(cast)
    cast.run()
    assert question.guess("Socket-2").right
    cast.back(1)
    cast.agents.set("Build", lambda: "other")
    assert question.guess("Socket-3").outcome == "Socket-2"


def test_agents_set_later_do_not_change_a_question(bench):
    bench.agent("Plan", lambda: {"workItems": h.items("a")})
    question = Question(bench.cast("x"))
    bench.agent("Plan", lambda: {"workItems": []})
    assert question.guess("Socket-2").right


def test_guess_calls_the_agent_once_and_leaves_no_files(bench):
    asked_for = []
    cast = bench.cast("x", agents={"Plan": lambda turn: asked_for.append(turn) or {"workItems": h.items("a")}})
    question = Question(cast)
    folder = question.fork.run_dir
    assert folder.parent != cast.run_dir.parent
    assert [question.guess(place).right for place in ("end", "Socket-2")] == [False, True]
    assert len(asked_for) == 1
    question.close()
    assert not folder.parent.exists()
    assert question.guess("end").outcome == "Socket-2", "what was judged can still be asked for"


def test_question_shows_the_state_of_the_cast(cast):
    """The question shows the item, the cursor and the edge counts, because they determine the route."""
    cast.run("Socket-3")
    question = Question(cast)
    assert question.state_lines[:3] == ("Socket-3, visit 1", "item WI-1 (a)", "cursor workItemIndex at 0 of 3")
    assert "edge 2 to Socket-2 taken 0 of 3 times" in question.state_lines
    assert question.marks_before.current == "Socket-3"
    question.guess("end")
    assert question.marks_after.last_route[0] == "Socket-3"


def test_wrong_guess_about_a_repair_is_explained(bench):
    answers = iter(["no json", {"workItems": h.items("a")}])
    cast = bench.cast("x", agents={"Plan": lambda: next(answers)})
    question = Question(cast)
    assert question.guess("Socket-2").right
    assert [turn.mode for turn in question.fork.steps[0].turns] == ["work", "repair"]


def test_waiting_and_ended_casts_have_no_prediction_question(bench):
    cast = bench.cast("x", agents={"Plan": "person", "Narrate": lambda: "nothing was to be done"})
    for _ in range(2):
        with pytest.raises(MateriaError) as raised:
            predict(cast, "Socket-2")
        assert raised.value.kind == "not_decided"
    cast.reply({"workItems": []})
    cast.step()
    with pytest.raises(MateriaError, match="reached its end") as raised:
        predict(cast, "end")
    assert raised.value.kind == "nothing_to_predict"


def test_stop_is_the_correct_guess_for_a_failing_agent(bench):
    def broken():
        raise ValueError("no idea")

    cast = bench.cast("x", agents={"Plan": broken})
    seen = predict(cast, "stop")
    assert seen.right
    assert "no idea" in repr(seen)
    assert seen.outcome == "stop"
    assert cast.status == "ready"


def test_question_at_the_end_explains_how_to_complete_the_cast(bench):
    cast = bench.cast("hi", loadout="Hello-Utility")
    assert predict(cast, "end").right
    cast.step()
    with pytest.raises(MateriaError, match="reached its end"):
        predict(cast, "end")
    assert cast.run() == "complete"
    with pytest.raises(MateriaError, match="The cast is complete"):
        Question(cast)


def test_running_step_has_no_prediction_question(bench):
    begun, go_on = threading.Event(), threading.Event()

    def slow():
        begun.set()
        go_on.wait(30)
        return {"workItems": []}

    cast = bench.cast("x", agents={"Plan": slow})
    runs_of(cast).start(cast.step)
    assert begun.wait(30)
    with pytest.raises(MateriaError, match="A step is running") as raised:
        Question(cast)
    assert raised.value.kind == "busy"
    go_on.set()
    assert runs_of(cast).wait(30)


# -- the verb -------------------------------------------------------------------------------


@pytest.fixture
def shell(bench, monkeypatch):
    monkeypatch.chdir(bench.project)
    return new_shell(bench)


def test_predict_verb_accepts_a_socket_or_variable_and_otherwise_shows_buttons(shell, bench):
    bench.cast("x")
    assert shell.run_line_magic("materia", "predict Socket-2").right
    bench.current.step()
    shell.user_ns["my_guess"] = "Socket-3"
    assert shell.run_line_magic("materia", "predict $my_guess").right
    bench.current.step()
    assert "1 step right" in repr(shell.run_line_magic("materia", "predict --sure Socket-2 end"))
    panel = shell.run_line_magic("materia", "predict")
    assert isinstance(panel, PredictPanel)
    bundle = panel._repr_mimebundle_()
    assert "Socket-3 runs next." in bundle["text/plain"]
    assert "Socket-5 | end | stop" in bundle["text/plain"]
    assert "<svg" in bundle["image/svg+xml"]
    panel.close()


def test_guess_is_recorded_for_its_question_unless_it_is_marked_as_an_example(shell, bench):
    bench.cast("x")
    shell.run_line_magic("materia", "predict --example end")
    predict(bench.current, "end")
    assert repr(progress()) == "No answers yet. Answer a question in a lesson first."
    shell.run_line_magic("materia", "predict --as 01-x/first Socket-3")
    shell.run_line_magic("materia", "predict --as 01-x/other Socket-3")
    shell.run_line_magic("materia", "predict --as 01-x/first Socket-2 Socket-3")
    shell.run_line_magic("materia", "predict end")
    assert progress().rows == [
        ("01-x", "first", "2", "✓", "0.5"),
        ("01-x", "other", "1", "✗", "0"),
        ("01-x", "first, step 2", "1", "✓", "1"),
        ("Plan-Build-Eval", f"predict {bench.current.id}", "1", "✗", "0"),
    ]


# -- the panel ------------------------------------------------------------------------------


@pytest.fixture
def make():
    panels = []

    def one(cast):
        panels.append(PredictPanel(cast, "lesson/question"))
        return panels[-1]

    yield one
    for panel in panels:
        panel.close()


def click(panel, place):
    panel.buttons[place].click()
    assert runs_of(panel.question.fork).wait(30)
    panel.refresh()


def shown(panel):
    """Return the complete content of the panel as HTML."""
    words = (one.value for one in widgets_in(panel.view) if isinstance(one, ui.HTML))
    return "".join([panel.picture.svg, *words])


def icons(panel):
    return {place: one.icon for place, one in panel.buttons.items() if one.icon}


def test_corrected_guess_is_judged_by_the_same_question(cast, make):
    panel = make(cast)
    assert list(panel.buttons) == [*cast.graph.sockets, "end", "stop"]
    for place, verdict in (("end", "Not this time"), ("Socket-2", "Right"), ("Socket-3", "Not this time")):
        click(panel, place)
        assert verdict in shown(panel)
        assert "Socket-1 runs next" in shown(panel)
    assert cast.steps == []


def test_click_on_a_socket_in_the_picture_counts_as_a_guess(cast, make):
    panel = make(cast)
    assert panel.picture.targets == list(cast.graph.sockets)
    before = panel.picture.svg
    for message in (
        *({"kind": "guess", "target": place, "number": 1} for place in ("Socket-77", ["end"], "end")),
        {"kind": "guess", "target": "Socket-2"},
        {"guess": "Socket-2"},
        "Socket-2",
        None,
    ):
        panel.picture._handle_custom_msg(message, [])
    assert panel.answer is None, "no such place in the picture"
    panel.picture._handle_custom_msg({"kind": "guess", "target": "Socket-2", "number": 1}, [])
    assert runs_of(panel.question.fork).wait(30)
    panel.refresh()
    assert panel.answer.right
    assert panel.picture.svg != before, "the way that was taken is drawn"


def test_panel_continues_with_second_guess_and_confidence(cast, make):
    panel = make(cast)
    assert panel.next.layout.display == "none"
    before = panel.picture.svg
    panel.sure.value = True
    click(panel, "end")
    assert "half a point" in shown(panel)
    assert "What happened" not in shown(panel)
    assert panel.picture.svg == before, "the picture tells no answer either"
    assert icons(panel) == {"end": "times"}
    click(panel, "Socket-2")
    assert icons(panel) == {"Socket-2": "check"}
    assert panel.next.layout.display is None
    panel.next.click()
    assert "Socket-2 runs next" in shown(panel)
    assert (panel.sure.value, panel.answer, icons(panel)) == (None, None, {})
    assert "alert" not in shown(panel)
    click(panel, "Socket-3")
    assert "2 steps predicted, 1.5 of 2 points" in shown(panel)
    assert [guess.sure for guess in read_guesses(guesses_file())] == [True, True, None]
    panel.next.click()
    panel.next.click()
    assert "not revealed yet" in panel.notice.value
    assert cast.steps == []


def test_panel_offers_no_next_step_at_the_end_of_a_route(bench, make):
    panel = make(bench.cast("x", agents={"Plan": lambda: {"workItems": []}, "Narrate": lambda: "told"}))
    click(panel, "Socket-5")
    assert panel.next.layout.display is None
    panel.next.click()
    click(panel, "end")
    assert panel.next.layout.display == "none"
    assert "That is the whole route, 2 of 2 points" in shown(panel)


def test_prediction_question_stays_open_after_the_cast_has_completed(cast, make):
    panel = make(cast)
    cast.run()
    assert not any(button.disabled for button in panel.buttons.values())
    click(panel, "Socket-2")
    assert panel.answer.right


def test_panel_without_a_question_has_no_buttons(cast, make):
    cast.run()
    panel = make(cast)
    assert not panel.buttons
    assert "no further step can be predicted" in shown(panel)


def test_verdict_is_announced_and_the_picture_marks_the_cast(cast, make):
    panel = make(cast)
    assert "alert" not in shown(panel)
    assert "<svg" in shown(panel)
    assert "Socket-1, visit 1" in shown(panel)
    click(panel, "Socket-2")
    assert 'role="alert"' in shown(panel)


def test_double_click_on_an_answer_counts_once_and_keeps_the_focus(bench, make):
    """A button that is disabled after the first click would lose the keyboard focus."""
    begun, go_on = threading.Event(), threading.Event()

    def slow():
        begun.set()
        go_on.wait(30)
        return {"workItems": h.items("a")}

    panel = make(bench.cast("x", agents={"Plan": slow}))
    panel.buttons["end"].click()
    assert begun.wait(30)
    panel.buttons["end"].click()
    assert not panel.buttons["end"].disabled
    assert not panel.notice.value
    go_on.set()
    assert runs_of(panel.question.fork).wait(30)
    assert panel.answer.guess == "end"


def test_late_click_on_the_question_of_an_earlier_step_is_refused(cast, make):
    panel = make(cast)
    late = panel.buttons["end"]
    click(panel, "Socket-2")
    panel.next.click()
    for send in (
        late.click,
        lambda: panel.picture._handle_custom_msg({"kind": "guess", "target": "Socket-3", "number": 1}, []),
    ):
        send()
        assert runs_of(panel.question.fork).wait(30)
        assert "now about another step" in panel.notice.value
        assert panel.answer is None
        assert panel.question.points == [1]
    click(panel, "Socket-3")
    assert panel.question.points == [1, 1]


def test_error_is_shown_below_the_panel_with_escaped_names(bench, make):
    hostile = "<img src=x onerror=alert(1)>"
    panel = make(bench.cast("x", agents={"Plan": lambda: hostile}))
    click(panel, "end")
    assert panel.answer.outcome == "stop"
    assert "<img" not in shown(panel)
    panel = make(bench.cast("x", agents={"Plan": "person"}))
    click(panel, "end")
    assert "is waiting for a person" in panel.notice.value
