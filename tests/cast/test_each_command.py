"""Store the outcome of every command in every state of a cast: its effect, or the reason why it is refused."""

from __future__ import annotations

import pytest

import cast_helpers as h
import cast_scenes
import shown_texts
from materia_nb.errors import MateriaError
from materia_nb.store.opening import verify

YES = '{"satisfied": true, "context": "well done"}'
COMMANDS = {
    "step()": lambda cast: cast.step(),
    "step(ask=False)": lambda cast: cast.step(ask=False),
    "run(steps=1)": lambda cast: cast.run(steps=1),
    "run(steps=0)": lambda cast: cast.run(steps=0),
    "run('nothing')": lambda cast: cast.run("nothing"),
    "run('Socket-3')": lambda cast: cast.run("Socket-3"),
    "run(function)": lambda cast: cast.run(lambda cast: len(cast.steps) > 1),
    "reply(text)": lambda cast: cast.reply("some text"),
    "reply(verdict)": lambda cast: cast.reply(YES),
    "reply(object)": lambda cast: cast.reply({"workItems": [h.item("A")]}),
    "reply(lane)": lambda cast: cast.reply(YES, lane="ui"),
    "reply(no lane)": lambda cast: cast.reply(YES, lane="none"),
    "refine": lambda cast: cast.refine("shorter"),
    "accept()": lambda cast: cast.accept(),
    "accept('satisfied')": lambda cast: cast.accept("satisfied"),
    "accept('nonsense')": lambda cast: cast.accept("nonsense"),
    "stop()": lambda cast: cast.stop(),
    "abort()": lambda cast: cast.abort(),
    "retry()": lambda cast: cast.retry(),
    "retry(turn)": lambda cast: cast.retry(turn=True),
    "retry(limit)": lambda cast: cast.retry(limit=True),
    "retry(both)": lambda cast: cast.retry(turn=True, limit=True),
    "skip('')": lambda cast: cast.skip(" "),
    "skip": lambda cast: cast.skip("not today"),
    "skip(item)": lambda cast: cast.skip("not today", item=True),
    "back(0)": lambda cast: cast.back(0),
    "back(99)": lambda cast: cast.back(99),
    "back(files)": lambda cast: cast.back(1, files=True),
    "fork()": lambda cast: cast.fork().close(),
    "fork(99)": lambda cast: cast.fork(99).close(),
    "attempt": lambda cast: cast.attempt(n=1, agents=[lambda: YES]),
    "attempt(none)": lambda cast: cast.attempt(n=0),
    "at(99)": lambda cast: cast.at(99),
    "at(1, 7)": lambda cast: cast.at(1, 7),
    "why(99)": lambda cast: cast.why(99),
    "why(lane)": lambda cast: cast.why(lane="none"),
    "blame": lambda cast: cast.blame("satisfied"),
    "usage": lambda cast: cast.usage("nothing"),
    "edit.items": lambda cast: cast.edit.items([h.item("A"), h.item("B")]),
    "edit.items(bad)": lambda cast: cast.edit.items([{"title": ""}]),
    "edit.again": lambda cast: cast.edit.again(0),
    "edit.again(bad)": lambda cast: cast.edit.again("nothing", 99),
    "edit.abandon": lambda cast: cast.edit.abandon(),
    "edit.set": lambda cast: cast.edit.set("note", 1),
    "edit.set(bad)": lambda cast: cast.edit.set("", 1),
    "edit.set(no JSON)": lambda cast: cast.edit.set("note", {1}),
    "edit.state": lambda cast: cast.edit.state({"note": 1}),
    "edit.state(bad)": lambda cast: cast.edit.state([1]),
    "edit.prompt": lambda cast: cast.edit.prompt("task", "another"),
    "edit.prompt(bad)": lambda cast: cast.edit.prompt("nothing", "another"),
    "edit.redefine": lambda cast: cast.edit.redefine("Build", {"type": "agent", "prompt": "b"}),
    "edit.redefine(bad)": lambda cast: cast.edit.redefine("Nobody", {"type": "agent", "prompt": "b"}),
    "edit.undo": lambda cast: cast.edit.undo(),
    "edit.output": lambda cast: cast.edit.output(YES),
    "edit.budget": lambda cast: cast.edit.budget(max_tokens=7),
    "edit.budget(bad)": lambda cast: cast.edit.budget(max_tokens=-1),
    "edit.budget_in_words": lambda cast: cast.edit.budget_in_words("$1.5"),
    "edit.budget_in_words(bad)": lambda cast: cast.edit.budget_in_words("much"),
    "edit.remember": lambda cast: cast.edit.remember(1),
    "labels.add()": lambda cast: cast.labels.add(),
    "labels.add(name)": lambda cast: cast.labels.add(name="good", tag="t"),
    "labels.add(bad)": lambda cast: cast.labels.add(verdict="great"),
    "labels.add(99)": lambda cast: cast.labels.add(99, note="n"),
    "labels.undo": lambda cast: cast.labels.undo(),
    "approvals.allow": lambda cast: cast.approvals.allow("bash"),
    "approvals.allow(bad)": lambda cast: cast.approvals.allow("nothing", ""),
    "approvals.disallow": lambda cast: cast.approvals.disallow("bash"),
    "approvals.answer": lambda cast: cast.approvals.answer("so"),
    "approvals.approve": lambda cast: cast.approvals.approve(),
    "approvals.deny": lambda cast: cast.approvals.deny("no"),
    "approvals.decide()": lambda cast: cast.approvals.decide(),
    "approvals.decide(yes)": lambda cast: cast.approvals.decide(satisfied=True),
    "approvals.decide(bad)": lambda cast: cast.approvals.decide(target="Nowhere"),
    "approvals.in_lane": lambda cast: cast.approvals.in_lane("none"),
    "pins.add": lambda cast: cast.pins.add("Socket-1", "text"),
    "pins.add(latest)": lambda cast: cast.pins.add("Socket-1"),
    "pins.add(visit)": lambda cast: cast.pins.add("Socket-1", visit=9),
    "pins.add(bad)": lambda cast: cast.pins.add("Nowhere", "text"),
    "pins.add(no text)": lambda cast: cast.pins.add("Socket-1", 7),
    "pins.remove": lambda cast: cast.pins.remove("Socket-1"),
    "breakpoints.add": lambda cast: cast.breakpoints.add("Socket-1"),
    "breakpoints.add(bad)": lambda cast: cast.breakpoints.add("Nowhere"),
    "breakpoints.watch(bad)": lambda cast: cast.breakpoints.watch(""),
    "breakpoints.clear": lambda cast: cast.breakpoints.clear("Socket-1"),
    "agents.set(bad)": lambda cast: cast.agents.set("Nobody", "person"),
    "files.changes": lambda cast: cast.files.changes(1),
    "export.contexts": lambda cast: cast.export.contexts().name,
    "export.recording": lambda cast: cast.export.recording("/nowhere/at/all.json"),
    "verify": lambda cast: str(verify(cast.runner.run_dir)),
    "steps.at(99)": lambda cast: cast.steps.at(99),
    "steps.ask": lambda cast: [str(one) for one in cast.steps.ask("$.satisfied")],
    "steps.ask(bad)": lambda cast: cast.steps.ask("$["),
    "suggestions": lambda cast: [one.verbs for one in map(str, cast.now.suggestions)],
}  # fmt: skip


def outcome(cast, command):
    """Return the effect of a command or the error that refuses it, and the resulting status of the cast."""
    try:
        gave = command(cast)
    except MateriaError as error:
        return [f"{error.kind}: {line}" if not n else line for n, line in enumerate(str(error).splitlines())]
    now = cast.now
    plain = str(gave) if isinstance(gave, str | int | tuple | list) else type(gave).__name__
    stands = f"{now.status}, {len(now.steps)} steps, next {now.next_socket}, {now.engine.budget.max_tokens}"
    return [plain, stands, *([now.failure.message] if now.failure else [])]


def every_command(tmp_path, scene):
    cast, number = scene(tmp_path / "0"), 0
    for title, command in COMMANDS.items():
        before = cast.runner.session
        yield title, outcome(cast, command)
        if cast.runner.session is not before or title == "stop()":
            cast.close()
            number += 1
            cast = scene(tmp_path / str(number))
    cast.close()


RECORDED = ("not_begun", "by_a_person", "failing_utility", "in_lanes", "come_to_its_end")
"""The scenes whose outcomes are compared word for word.

In all other scenes, a command must succeed or be refused with a clear error.
"""


@pytest.mark.parametrize("scene", cast_scenes.ALL, ids=lambda scene: scene.__name__)
def test_every_command_succeeds_or_is_refused_with_a_clear_error(tmp_path, scene):
    outcomes = list(every_command(tmp_path, scene))
    if scene.__name__ in RECORDED:
        shown_texts.matches(f"commands-{scene.__name__}", outcomes)
