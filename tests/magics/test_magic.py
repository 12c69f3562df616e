"""Test %materia and %%materia in a real IPython shell."""

from __future__ import annotations

import pytest

import materia_nb
from magics_helpers import ASK, cell, line, text
from materia_nb.cast import Cast
from materia_nb.errors import MateriaError
from materia_nb.magics.registry import VERBS, first_words
from materia_nb.registry import lookup
from model_server import says, serving


def test_verbs_load_cast_run_and_show_the_state(shell, project, capsys):
    assert "hello" in text(line(shell, "load hello.json"))
    cast = line(shell, "cast say hi")
    assert cast.now.request == "say hi"
    assert line(shell, "status;") is None, "a semicolon hides the value, as IPython's users expect"
    assert "complete after 1 step" in text(line(shell, "run"))
    assert line(shell, "state greeting").value == "hi"
    assert (cast.run_dir / "sockets/hello/1.command.stdout.txt").exists()
    assert capsys.readouterr().out == "", "values are returned, not printed"


def test_show_verb_draws_the_graph_in_several_formats(shell):
    line(shell, "load hello.json")
    assert "<svg" in line(shell, "grid")._repr_mimebundle_()["image/svg+xml"]
    assert "flowchart" in text(line(shell, "grid --to mermaid"))
    line(shell, "cast x")
    assert "current" in line(shell, "grid")._repr_mimebundle_()["image/svg+xml"]
    assert "flowchart" in text(line(shell, "grid --to mermaid"))
    cell(shell, "define loadout Bad", "entry: X\nsockets: {}")
    with pytest.raises(MateriaError, match="has problems"):
        line(shell, "grid --to mermaid Bad")


def test_origins_of_settings_are_shown(shell, project):
    (project / ".pi").mkdir()
    (project / ".pi" / "pi-materia.json").write_text("{ not json")
    line(shell, "load hello.json")
    cell(shell, "define loadout Mine", "entry: Socket-1\nsockets: {Socket-1: {materia: hi}}")
    output = text(line(shell, "list loadouts"))
    assert "Hello" in output
    assert "given" in output
    assert "bundled" in output
    assert "notebook" in output
    assert "ignored" in output
    assert "pi-materia.json:1" in "".join(output.split()), "folded where it is too long"
    output = text(line(shell, "list materia"))
    assert "hi" in output
    assert "a process" in output
    assert "agent, generator" in output


def test_workbench_is_available_as_the_variable_wb(shell):
    line(shell, "load hello.json")
    assert isinstance(shell.user_ns["wb"], materia_nb.Workbench)
    mine = shell.user_ns["wb"] = materia_nb.Workbench(bundled=False)
    line(shell, "load hello.json")
    assert list(mine.loadouts) == ["Hello"]
    shell.user_ns["wb"] = 5
    with pytest.raises(MateriaError, match="contains int instead of the workbench"):
        line(shell, "list casts")


def test_extension_can_be_reloaded_and_unloaded(shell):
    materia_nb.load_ipython_extension(shell)
    names = [getattr(matcher, "matcher_identifier", "") for matcher in shell.Completer.custom_matchers]
    assert names.count("materia_nb") == 1
    materia_nb.unload_ipython_extension(shell)
    assert "materia" not in shell.magics_manager.magics["line"]
    assert "materia" not in shell.magics_manager.magics["cell"]
    assert not [m for m in shell.Completer.custom_matchers if getattr(m, "matcher_identifier", "") == "materia_nb"]
    materia_nb.unload_ipython_extension(shell)


def test_mistyped_verb_raises_one_short_error(shell):
    result = shell.run_cell("%materia lod hello.json", silent=False)
    error = result.error_in_exec
    assert isinstance(error, MateriaError)
    lines = error._render_traceback_()
    assert "no verb 'lod'" in lines[0]
    assert any("did you mean 'load'?" in one for one in lines)
    assert not any("Traceback" in one or ".py" in one for one in lines)


@pytest.mark.parametrize(
    "given, expected",
    [
        ("use", "LOADOUT is missing"),
        ("step two", "must be a whole number"),
        ("run --unti Socket-1", "--until"),
        ("run --until", "needs a value"),
        ("status now", "is unexpected"),
        ("reply", "answer is missing"),
        ("define loadout X", "requires a cell body"),
        ("cast $nothing", "variable 'nothing' does not exist"),
        ("load nowhere.json", "nowhere.json"),
        ("use Hallo", "Hello"),
        ("open 1999", "1999"),
        ("step 0", "1 or more"),
        ("edit budget much", "2.50 USD for a cost"),
        ("why 99", "no step 99"),
        ("break Socket-9", "no socket 'Socket-9'"),
        ("state nope", "no value at 'nope'"),
        ("agent Nobody person", "No materia or socket is called 'Nobody'"),
    ],
)
def test_invalid_input_is_explained_with_a_hint(shell, given, expected):
    line(shell, "load hello.json")
    line(shell, "cast x")
    line(shell, "run")
    with pytest.raises(MateriaError) as caught:
        line(shell, given)
    assert expected in str(caught.value)


def test_verbs_without_a_cast_explain_what_to_do(shell):
    for verb in (
        "status",
        "step",
        "run",
        "state",
        "why",
        "handoff",
        "prompt",
        "abort",
        "retry",
        "edit budget",
    ):
        with pytest.raises(MateriaError, match="No cast has been started"):
            line(shell, verb)


def test_unexpected_cell_body_is_refused(shell):
    with pytest.raises(MateriaError, match="does not accept a cell body"):
        cell(shell, "status", "text")


def test_only_words_that_name_a_variable_are_expanded(shell):
    cell(shell, "define loadout Ask", ASK)
    shell.user_ns["topic"] = "cats {and} dogs"
    assert line(shell, "cast it's {x} $5 {{y}}").now.request == "it's {x} $5 {{y}}"
    assert line(shell, "cast $topic").now.request == "cats {and} dogs"
    assert line(shell, 'cast "quoted words"').now.request == "quoted words"
    assert line(shell, "cast -- --not-an-option").now.request == "--not-an-option"
    assert cell(shell, "cast", "two\nlines\n").now.request == "two\nlines"


def test_person_can_answer_in_the_next_cell(shell):
    cell(shell, "define loadout Ask", ASK)
    cast = line(shell, "cast the plan")
    output = text(line(shell, "run"))
    assert "Judge needs an answer" in output
    assert "Judge the plan" in output
    assert "true or false" in text(line(shell, "prompt"))
    with pytest.raises(MateriaError, match=r"\$\.satisfied"):
        line(shell, 'reply {"satisfied": 1}')
    assert "next: Teller" in text(cell(shell, "reply", '{"satisfied": true, "context": "fine"}\n'))
    shell.user_ns["answer"] = "told"
    line(shell, "run")
    line(shell, "reply $answer")
    line(shell, "run")
    assert cast.status == "complete"
    assert cast.steps[-1].output == "told"
    assert "satisfied needs satisfied: true" in " ".join(text(line(shell, "why 1")).split())
    assert "accepted" not in text(line(shell, "handoff 1"))
    assert text(line(shell, "steps")).count("Judge") == 1


def test_dict_variable_can_be_the_answer(shell):
    cell(shell, "define loadout Ask", ASK)
    cast = line(shell, "cast x")
    line(shell, "run")
    shell.user_ns["answer"] = {"satisfied": False}
    line(shell, "reply $answer")
    line(shell, "run")
    assert cast.status == "complete"
    assert len(cast.steps) == 1


def test_agents_are_defined_in_cells(shell):
    cell(shell, "define loadout Ask", ASK)
    shell.user_ns["verdict"] = True
    cell(shell, "agent Judge", "return {'satisfied': verdict, 'context': 'Judge x' in prompt and 'Judge'}")
    output = text(cell(shell, "agent Teller", "import asyncio\nawait asyncio.sleep(0)\nreturn turn.socket_id"))
    assert "Judge" in output
    cast = line(shell, "cast x")
    line(shell, "run")
    assert cast.status == "complete"
    assert cast.steps[-1].output == "Socket-2"
    assert cast.state["context"] == "[Socket-1 Judge] Judge"
    with pytest.raises(MateriaError, match="line 2 of the cell"):
        cell(shell, "agent Judge", "x = 1\nreturn (")


def test_error_of_a_failing_agent_names_the_agent(shell):
    cell(shell, "define loadout Ask", ASK)
    cell(shell, "agent Judge", "return 1 / 0")
    line(shell, "cast x")
    output = text(line(shell, "run"))
    assert "ZeroDivisionError" in output
    cell(shell, "agent Judge", "return {'satisfied': False}")
    line(shell, "retry")
    assert shell.user_ns["wb"].current.steps[-1].output == '{"satisfied":false}'


def test_run_can_raise_when_the_cast_fails_or_waits(shell):
    cell(shell, "define loadout Ask", ASK)
    line(shell, "cast x")
    with pytest.raises(MateriaError, match="is waiting for a person") as waits:
        line(shell, "run --raise")
    cell(shell, "agent Judge", "return 1 / 0")
    line(shell, "cast x")
    with pytest.raises(MateriaError, match="ZeroDivisionError") as failed:
        line(shell, "run --raise")
    assert (waits.value.kind, failed.value.kind) == ("cast_waits", "cast_failed")
    cell(shell, "agent Judge", "return {'satisfied': False}")
    line(shell, "cast x")
    assert "complete" in text(line(shell, "run --raise"))


def test_command_agent_answers_in_a_cast(shell):
    cell(shell, "define loadout Ask", ASK)
    line(shell, "agent * command cat")
    cast = line(shell, "cast x")
    line(shell, "step")
    assert cast.now.engine.failure is None or cast.now.engine.failure.kind == "repair_exhausted"
    assert "Judge x" in cast.steps[0].turns[0].text


@pytest.mark.parametrize(
    "how", ["openai:tiny --base-url {}", "--base-url {} openai:tiny", "model openai:tiny --base-url {}"]
)
def test_model_agent_answers_in_a_cast(shell, how, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    cell(shell, "define loadout Ask", ASK)
    with serving(says('{"satisfied": true, "context": "c"}'), says("told")) as server:
        output = text(line(shell, f"agent * {how.format(server.url)}"))
        assert "openai:tiny" in output
        cast = line(shell, "cast x")
        line(shell, "run")
    assert cast.status == "complete"
    assert [asked["model"] for asked in server.asked] == ["tiny", "tiny"]
    assert "max_completion_tokens" not in server.asked[0]
    assert "max_tokens" not in server.asked[0]


def test_max_tokens_setting_is_sent_to_the_model(shell, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    cell(shell, "define loadout Ask", ASK)
    with serving(says('{"satisfied": true, "context": "c"}')) as server:
        line(shell, f"agent * openai:tiny --base-url {server.url} --max-tokens 20")
        line(shell, "cast x")
        line(shell, "step")
        asked = server.asked[0]
    assert 20 in (asked.get("max_completion_tokens"), asked.get("max_tokens"))


def test_each_materia_uses_its_model(shell, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    cell(shell, "define loadout Ask", ASK.replace("Judge: {tools", "Judge: {model: openai:judge, tools"))
    with serving(says('{"satisfied": true, "context": "c"}')) as server:
        line(shell, f"agent * model --base-url {server.url} --key-env TOY_KEY")
        cast = line(shell, "cast x")
        line(shell, "run")
        assert cast.failure.kind == "no_key"
        assert "needs TOY_KEY in the environment" in cast.failure.message
        monkeypatch.setenv("TOY_KEY", "toy-key")
        line(shell, "retry --turn")
        line(shell, "run")
        assert cast.failure.kind == "no_model"
        assert "materia Teller does not name a model" in cast.failure.message
    assert [asked["model"] for asked in server.asked] == ["judge"]


@pytest.mark.parametrize(
    "given, expected",
    [
        ("agent * opnai:x", "did you mean 'openai'?"),
        ("agent * openai:x --bse-url y", "--base-url"),
        ("agent * openai:x y", "is unexpected"),
        ("agent * openai:x --base-url nowhere", "write the full URL"),
        ("agent * gpt-5", "write provider:model"),
    ],
)
def test_invalid_model_is_explained_with_a_hint(shell, given, expected):
    with pytest.raises(MateriaError) as caught:
        line(shell, given)
    assert expected in str(caught.value)


def test_utility_is_defined_in_a_cell(shell):
    output = text(cell(shell, "define utility Count", "import json\nprint(json.dumps({'state': {'n': 3}}))"))
    assert "Count.py" in output
    cell(
        shell,
        "define loadout Counting",
        '{"entry": "Socket-1", "sockets": {"Socket-1": {"materia": "Count"}}}',
    )
    cast = line(shell, "cast x")
    line(shell, "run")
    assert cast.state["n"] == 3
    with pytest.raises((MateriaError, SyntaxError)):
        cell(shell, "define utility Broken", "print(")


def test_all_problems_of_a_loadout_are_shown(shell):
    output = text(
        cell(shell, "define loadout Bad", "entry: S\nsockets: {Socket-1: {materia: Nobody, edges: [{to: X}]}}")
    )
    assert "unknown-endpoint" in output
    assert "invalid-edge-condition" in output
    with pytest.raises(MateriaError):
        line(shell, "cast --loadout Bad x")
    report = text(line(shell, "check Bad"))
    assert "unknown-endpoint" in report
    assert "unknown-materia" in report


def test_run_verb_accepts_breakpoints_a_target_and_a_number_of_steps(shell):
    cell(shell, "define loadout Ask", ASK)
    shell.user_ns["wb"].agent("Judge", lambda turn: {"satisfied": True, "context": "c"})
    shell.user_ns["wb"].agent("Teller", lambda turn: "t")
    line(shell, "cast x")
    assert "before Teller" in text(line(shell, "break Socket-2"))
    assert "(breakpoint)" in text(line(shell, "run"))
    assert "complete" in text(line(shell, "run"))
    line(shell, "cast x")
    line(shell, "break Socket-2 --when \"state.context == 'other'\"")
    assert "complete" in text(line(shell, "run"))
    line(shell, "cast x")
    line(shell, 'break Socket-2 --when "steps > 0"')
    assert "(breakpoint)" in text(line(shell, "run"))
    assert "no breakpoints" in text(line(shell, "break --clear"))
    line(shell, "cast x")
    assert "(stopped as requested)" in text(line(shell, "run --until Socket-2"))
    with pytest.raises(MateriaError, match="condition is invalid"):
        line(shell, 'break Socket-2 --when "1 +"')


@pytest.mark.parametrize(
    "words, said",
    [("'20000 tokens'", "every 20,000 tokens"), ("2.5usd", "every 2.5 usd"), ("'3 turns'", "every 3 turns")],
)
def test_usage_breakpoints_accept_each_unit(shell, words, said):
    cell(shell, "define loadout Ask", ASK)
    line(shell, "cast x")
    assert said in text(line(shell, f"break --every {words}"))
    assert f"{said} of Teller" in text(line(shell, f"break Socket-2 --every {words}"))
    with pytest.raises(MateriaError, match="cannot stop runs every"):
        line(shell, "break --every many")


def test_each_kind_of_breakpoint_can_be_set(shell):
    cell(shell, "define loadout Ask", ASK)
    replies = iter(["no JSON", {"satisfied": True, "context": "c"}])
    shell.user_ns["wb"].agent("Judge", lambda turn: next(replies))
    shell.user_ns["wb"].agent("Teller", lambda turn: "t")
    line(shell, "cast x")
    assert "refused output of any socket" in text(line(shell, "break --kind refused"))
    assert "after Judge, 1st time" in text(line(shell, "break Socket-1 --kind after --nth 1"))
    line(shell, "break Socket-2 --edge end")
    assert "Judge not satisfied" in text(line(shell, "break Socket-1 --kind not_satisfied"))
    output = text(line(shell, "run"))
    assert "waiting: Judge" in output
    assert "(breakpoint: refused output of any socket)" in output
    assert "(breakpoint: after Judge, 1st time)" in text(line(shell, "run"))
    output = text(line(shell, "break Socket-1 --kind after --clear"))
    assert "after" not in output
    assert "Judge not satisfied" in output
    assert "Judge" not in text(line(shell, "break Socket-1 --clear"))
    with pytest.raises(MateriaError, match="no edge 2"):
        line(shell, "break Socket-2 --edge 2")
    assert "no breakpoints" in text(line(shell, "break --clear"))


def test_abort_retry_budget_and_resume_verbs_change_the_cast(shell, project):
    cell(shell, "define loadout Ask", ASK)
    cast = line(shell, "cast x")
    line(shell, "run")
    assert "aborted" in text(line(shell, "abort not now"))
    line(shell, "retry")
    assert cast.status == "waiting"
    assert "1,000" in text(line(shell, "edit budget 1_000"))
    assert "none" in text(line(shell, "edit budget none"))
    cast.close()
    again = line(shell, f"resume {cast.id}")
    assert again.now.waiting_at.socket == "Socket-1"
    assert again.now.engine == cast.now.engine
    looked = line(shell, "open -1")
    assert looked.id == cast.id
    assert cast.id in text(line(shell, "list casts"))
    assert "cast.html" in text(line(shell, "export page"))
    assert "<html" in (cast.run_dir / "cast.html").read_text()


def test_incomplete_verb_lists_the_possible_next_words(shell):
    assert "%materia edit undo" in text(line(shell, "help edit"))
    with pytest.raises(MateriaError, match="items, set, prompt"):
        line(shell, "edit")


def test_help_explains_every_verb(shell):
    overview = text(line(shell, "help"))
    assert sorted(first_words()) == sorted({name.partition(" ")[0] for name in VERBS}), "each in one group"
    for name, verb in VERBS.items():
        assert all(word in overview for word in name.split())
        assert verb.summary
        assert verb.example.splitlines()[0] in text(line(shell, f"help {name}"))
    assert text(line(shell, "")) == overview == text(line(shell, "--help"))
    assert "--until" in text(line(shell, "run --help"))
    assert "load" in shell.magics_manager.magics["line"]["materia"].__doc__


@pytest.mark.parametrize(
    "typed, offered",
    [
        ("%materia lo", {"load"}),
        ("%%materia repl", {"reply", "replay"}),
        ("x = %materia sta", {"state", "status"}),
        ("%materia use Plan-", {"Plan-Build-Eval"}),
        ("%materia edit re", {"redefine", "remember"}),
        ("%materia explore o", {"odds"}),
        ("%materia edit redefine h", {"hi", "hello"}),
        ("%materia run --u", {"--until"}),
        ("%materia run --until h", {"hello"}),
        ("%materia load he", {"hello.json"}),
        ("%materia load UP", {"UPPER.JSON"}),
        ("%materia help wh", {"why"}),
        ("%materia gallery crit", {"critic-loop"}),
        ("%materia agent h", {"hello", "hi"}),
        ("%materia agent hi ope", {"openai:"}),
        ("materia lo", set()),
        ("%time lo", set()),
    ],
)
def test_completion_offers_verbs_options_and_names(shell, project, typed, offered):
    line(shell, "load hello.json")
    (project / "UPPER.JSON").write_text("{}")
    matcher = shell.Completer.custom_matchers[-1]

    class Context:
        text_until_cursor = typed
        token = typed.rsplit(" ", 1)[-1]

    found = matcher(Context())
    assert {completion.text for completion in found["completions"]} == offered


def test_completion_offers_casts_and_never_raises(shell):
    line(shell, "load hello.json")
    cast = line(shell, "cast x")
    matcher = shell.Completer.custom_matchers[-1]

    class Context:
        text_until_cursor = f"%materia open {cast.id[:4]}"
        token = cast.id[:4]

    assert cast.id in {completion.text for completion in matcher(Context())["completions"]}
    shell.user_ns["wb"] = 5
    assert matcher(Context())["completions"] == []


def test_r46_items_can_be_reordered_reopened_and_abandoned(shell):
    line(shell, "use Plan-Build-Eval")
    wb = shell.user_ns["wb"]
    wb.agent("Plan", lambda: {"workItems": [{"title": one, "context": "c"} for one in "ab"]})
    wb.agent("*", lambda: {"satisfied": True})
    cast = line(shell, "cast x")
    cast.run(until=lambda c: c.now.engine.cursors.get("workItemIndex") == 1)
    assert [row[1] for row in line(shell, "edit items").blocks[0].rows] == ["done", "open"]
    output = text(
        cell(
            shell,
            "edit items",
            "- {title: first, context: c}\n- {title: a, context: c}\n- {title: b, context: c}",
        )
    )
    assert "Moved: 'first' is at position 2, not 1." in output
    cast.step()
    made = line(shell, "edit items --again 1 --abandon")
    assert [row[1:3] for row in made.blocks[0].rows] == [("skipped", "first"), ("open", "a"), ("open", "b")]
    assert "'first' is abandoned" in text(made)
    assert "'a' will be worked on again" in made._repr_mimebundle_()["text/html"].replace("&#x27;", "'").replace(
        "&#39;", "'"
    )
    with pytest.raises(MateriaError, match="No work item has the number, key or title 'zz'"):
        line(shell, "edit items --again zz")


def test_edit_verbs_change_a_cast_between_steps(shell):
    shell.user_ns["wb"] = bench = materia_nb.Workbench(".")
    bench.use("Plan-Build-Eval")
    bench.agent("Plan", lambda: {"workItems": [{"title": "a", "context": "x"}]})
    bench.agent("*", lambda: "words")
    bench.agent("Eval", lambda: {"satisfied": False, "context": "no"})
    bench.agent("Maintain", lambda: {"satisfied": True})
    cast = line(shell, "cast x")
    line(shell, "step")
    assert "b2" in text(cell(shell, "edit items", "- {title: b2, context: c}\n- {title: a, context: x}"))
    line(shell, "edit undo")
    assert [item["title"] for item in cast.now.work_items] == ["a"]
    line(shell, "edit set plan.approved true")
    assert cast.state["plan"] == {"approved": True}
    line(shell, "edit set note some words")
    assert cast.state["note"] == "some words"
    line(shell, "run --steps 2")
    assert cast.now.next_socket == "Socket-2"
    assert "Maintain" in text(line(shell, 'edit output {"satisfied": true}'))
    line(shell, "run")
    assert cast.status == "complete"
    assert "next: Eval" in text(line(shell, "back 2 --discard-edits"))
    forked = line(shell, "fork")
    assert bench.current is forked
    assert forked.id != cast.id
    with pytest.raises(MateriaError, match="The work items must be a list"):
        cell(shell, "edit items", "{}")


def test_agent_for_an_unknown_name_raises_an_error(shell):
    assert "answered by" in text(line(shell, "agent"))
    with pytest.raises(MateriaError, match="No materia or socket is called 'openai:tiny'"):
        line(shell, "agent openai:tiny")
    with pytest.raises(MateriaError, match="The materia or socket is missing"):
        cell(shell, "agent", "return 'x'")


def test_forwarding_verbs_are_generated_from_methods():
    verb = VERBS["skip"]
    assert verb.summary == " ".join(Cast.skip.__doc__.partition("\n\n")[0].split()).replace("``", "")
    assert [(argument.name, argument.kind, argument.required) for argument in verb.arguments] == [
        ("--item", "flag", False),
        ("note", "rest", True),
    ]
    step, files = VERBS["back"].arguments[:2]
    assert (step.kind, step.integer, files.name, files.kind) == ("word", True, "--files", "flag")
    assert step.help == "the number of the step to continue from; 0 for the start of the cast"
    assert "root" not in {one.name for one in VERBS["fork"].arguments}, "what a line cannot give is left out"


def test_every_verb_argument_is_documented():
    assert [
        (name, argument.name) for name, verb in VERBS.items() for argument in verb.arguments if not argument.help
    ] == []


def test_unknown_name_in_the_registry_raises_a_clear_error():
    with pytest.raises(KeyError, match="nothing of the kind"):
        lookup("nothing of the kind")
