"""Test prompt contexts in random casts with edits (R50): no repeated or outdated values, and all limits kept."""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from typing import NamedTuple

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from drawn_loadouts import loadouts, rules_of
from materia_nb.engine import decide, events, evolve
from materia_nb.engine.events import from_json, to_json
from materia_nb.engine.rules import Rules
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import whole_floats_as_integers
from materia_nb.loadout import build_graph, read_config
from materia_nb.loadout.layers import BUNDLED
from materia_nb.loadout.vocabulary import ACCEPTED

EXAMPLES = int(os.environ.get("MATERIA_EXAMPLES", "100"))

MARK = re.compile(r"[a-z]\d{5}[be]")
"""Pattern of the unique marks at the beginning and end of each value; the first letter is the kind of value."""

BUNDLED_RULES = {
    name: Rules(build_graph({**read_config(BUNDLED), "activeLoadout": name}))
    for name in read_config(BUNDLED)["loadouts"]
}
PROMPTS = [
    "Do it.",
    "Do it for {{request}}.",
    "What was said:\n{{lastOutput}}\nGo on.",
    "Judge {{lastJson.note}}.",
    "{{item.title}}\n{{item.context}}",
    "{{itemJson}}",
    "{{stateJson}}",
    "Look at {{state.a}} and {{state.workItems}}.",
    "{{state.context}}",
]
"""Prompts that an author may write; some of their variables are empty in sockets that iterate over other items."""


class TextEvent(NamedTuple):
    """The handoff of a step, as recorded by the test."""

    step: int
    socket: str
    title: str | None
    satisfied: bool | None
    text: str


@st.composite
def documents(draw):
    """Draw a loadout whose prompts use variables and whose assignments copy outputs."""
    made = draw(loadouts())
    for materia in made["materia"].values():
        if materia["type"] == "agent":
            materia["prompt"] = draw(st.sampled_from(PROMPTS))
    for socket in made["loadouts"]["T"]["sockets"].values():
        texts = ["$", "lastOutput"] if socket.get("parse") != "json" else ["$.note"]
        if "assign" in socket:
            socket["assign"] = {path: draw(st.sampled_from(texts)) for path in socket["assign"] if path != "rows"}
    made["limits"]["promptCharacters"] = draw(st.sampled_from([60_000, 12_000, 4_000]))
    made["limits"]["maxEdgeTraversals"] = 6
    made.pop("budget", None)
    return made


class PromptContext:
    """A cast in memory in which every value is marked."""

    def __init__(self, rules, seed):
        self.rules, self.rng, self.made = rules, random.Random(seed), 0
        self.events = [events.CastStart(request=self.value("r"), ts=0)]
        self.session = evolve.begin_session(rules, self.events[0])
        self.said, self.checked = [], 0

    # -- values

    def value(self, kind, most=60):
        self.made += 1
        filler = "word " * (self.rng.randint(0, most) // 5)
        return f"{kind}{self.made:05}b {filler}{kind}{self.made:05}e"

    def items(self, count):
        return [{"title": self.value("t"), "context": self.value("c", 400)} for _ in range(count)]

    def answer(self, here, mode):
        rng = self.rng
        if mode == "draft" or here.requirements.parse == "text":
            return self.value("o", rng.choice([100, 100, 2_000, 9_000]))
        if rng.random() < 0.04:
            return self.value("o")
        value = {}
        if here.requirements.why_satisfied or rng.random() < 0.5:
            value["satisfied"] = rng.random() < 0.6
        if rng.random() < 0.75:
            value["context"] = self.value("h", rng.choice([50, 200, 900, 1_800]))
        if rng.random() < 0.4:
            value["note"] = self.value("n", 300)
        if here.requirements.work_items:
            value["workItems"] = self.items(rng.choice([1, 2, 3, 13]))
        if here.socket.is_utility and rng.random() < 0.5:
            value["state"] = {"a": self.value("s"), "rows": [{"row": self.value("s")}]}
        return json.dumps(value)

    # -- what happens

    @property
    def state(self):
        return self.session.state

    def keep(self, made):
        self.session = evolve.fold(self.rules, self.session, made)
        self.events += made

    def go_on(self):
        state = self.state
        if state.status == "ready":
            self.keep(decide.enter(self.rules, self.session, 0))
            return
        here = self.rules.sockets[state.at.socket]
        if state.at.mode == "draft" and state.at.drafts:
            self.keep(decide.finalize(self.rules, self.session, 0))
            return
        text = self.answer(here, state.at.mode)
        self.take(text, lambda: decide.answer(self.rules, self.session, decide.Answer(text), 0))

    def take(self, text, make):
        """Record an accepted answer and its handoff."""
        before = self.state
        outcome = make()
        self.keep(outcome)
        if self.state.last_output == text.strip() and self.state.last_output != before.last_output:
            said = parsed(text) if self.rules.sockets[self.state.last_socket].requirements.parse == "json" else None
            step = self.session.steps[-1]
            self.said = [one for one in self.said if one.step < step.number]
            if isinstance(said, dict):
                at = step.after.at if step.after is not None else self.state.at
                title = None if at is None or at.item is None else title_of(at.item)
                self.said.append(
                    TextEvent(step.number, step.socket, title, said.get("satisfied"), said.get("context", ""))
                )

    def edit(self):
        """Edit the work items, a value, the handoffs or the output, or go back."""
        rng = self.rng
        how = rng.choice(["items", "items", "items", "value", "value", "context", "output", "back"])
        data = self.state.data
        listed = data.get("workItems")
        try:
            if how == "items" and isinstance(listed, list):
                self.edit_lists(list(listed))
            elif how == "value":
                self.keep(decide.edit_state(self.rules, self.session, {**data, "a": self.value("s")}, {}, 0))
            elif how == "context" and rng.random() < 0.3:
                made = {**data, "context": self.value("s")}
                self.keep(decide.edit_state(self.rules, self.session, made, {}, 0))
            elif how == "output" and self.session.steps and self.state.status == "ready":
                here = self.rules.sockets[self.session.steps[-1].socket]
                text = self.answer(here, "final")
                self.take(text, lambda: decide.edit_output(self.rules, self.session, text, 0))
            elif how == "back" and self.session.steps and rng.random() < 0.4:
                number = rng.randint(0, len(self.session.steps) - 1)
                self.keep(decide.back_to(self.rules, self.session, number, 0))
                self.said = [one for one in self.said if one.step <= number]
        except MateriaError:
            return

    def edit_lists(self, old):
        rng = self.rng
        places = [place for place in range(len(old)) if rng.random() < 0.8]
        for _ in range(rng.choice([0, 1, 2])):
            places.insert(rng.randint(0, len(places)), None)
        new = [self.items(1)[0] if place is None else dict(whole_floats_as_integers(old[place])) for place in places]
        renamed = None
        if new and rng.random() < 0.3:
            at = rng.randrange(len(new))
            renamed = new[at]["title"], self.value("t")
            new[at] = {"title": renamed[1], "context": self.value("c", 300)}
        self.keep(decide.edit_items(self.rules, self.session, new, places, 0, abandon=rng.random() < 0.3))
        if renamed:
            self.said = [one._replace(title=renamed[1]) if one.title == renamed[0] else one for one in self.said]

    # -- what must hold

    def check(self):
        prompt = self.session.prompt
        if self.state.status != "waiting" or prompt is None or not prompt.describes_task or self.state.at.turn:
            return
        self.checked += 1
        self.told_once(prompt)
        self.nothing_stale(prompt)
        self.newest_whole(prompt)
        self.bounds_kept(prompt)

    def own(self):
        return self.rules.sockets[self.state.at.socket].context.own

    def told_once(self, prompt):
        """Assert that each value appears once, except in the prompt of the author and in quoted excerpts."""
        counts = Counter(mark for part in prompt.parts for mark in sorted(marks(part)))
        authors = marks(part_of(prompt, "task"))
        if "no context was given" in part_of(prompt, "reasons").text:
            authors |= marks(part_of(prompt, "reasons"))
        for mark, count in counts.items():
            assert count == 1 or mark in authors, f"{mark} is told {count} times:\n{prompt.text}"
        tells = Counter(tell for part in prompt.parts if part.text for tell in part.values)
        assert max(tells.values(), default=1) == 1, tells
        for part in prompt.parts:
            if part.name not in ("task", "reasons"):
                again = [mark for mark, count in Counter(MARK.findall(part.text)).items() if count > 1]
                assert not again, (part.name, again, prompt.text)

    def nothing_stale(self, prompt):
        parts = [part for part in prompt.parts if not (self.own().output and part.name == "task")]
        there = {mark for part in parts for mark in marks(part)}
        held = set(MARK.findall(json.dumps(whole_floats_as_integers(dict(self.state.data)))))
        said = set()
        for step in self.session.steps:
            said |= set(MARK.findall(step.output or ""))
        gone = {mark for mark in there if mark[0] in "tc" and mark not in held}
        gone |= {mark for mark in there if mark[0] == "s" and mark not in held | said}
        gone |= {mark for mark in there if mark[0] in "ohn" and mark not in held | said}
        assert not gone, (gone, prompt.text)
        listed = self.own().variable_of(("context",)) or "as it was set" in prompt.text
        for one in self.superseded():
            if not listed:
                assert one.text not in prompt.text, (one, prompt.text)

    def superseded(self):
        """Return the refusals of items that the same socket accepted later."""
        for place, one in enumerate(self.said):
            later = self.said[place + 1 :]
            if (
                one.satisfied is False
                and one.text
                and any(
                    (other.socket, other.title) == (one.socket, one.title) and other.satisfied is True
                    for other in later
                )
            ):
                yield one

    def newest_whole(self, prompt):
        kept = self.state.handoffs
        if self.state.data.get("context", "") != kept.text or not kept.entries:
            return
        newest = kept.entries[-1]
        if not newest.socket or newest.result not in ACCEPTED:  # set by a person; why there was no output
            return
        mine = [one for one in self.said if one.text]
        assert newest.text in {one.text for one in mine}, (newest, self.said)
        if newest.step == self.session.state.last_step:
            assert newest.text in prompt.text, (newest, prompt.text)

    def bounds_kept(self, prompt):
        most = self.rules.graph.limits.prompt_characters
        if len(prompt.text) <= most:
            return
        needed = sum(
            len(part.text) + len(part.heading) + 6
            for part in prompt.parts
            if part.name not in ("state", "previous", "before", "handoffs") and part.text
        )
        assert needed + 3_000 > most, (len(prompt.text), needed)
        assert "over limits.promptCharacters" in part_of(prompt, "task").note

    def rebuilt(self):
        session = evolve.begin_session(self.rules, self.events[0])
        for one in self.events[1:]:
            stored = json.loads(json.dumps(to_json(one)))
            session = evolve.evolve(self.rules, session, from_json(type(one).type, stored, one.ts))
        return session


def parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def title_of(item):
    return item.value.get("title") if isinstance(item.value, dict) else item.key


def part_of(prompt, name):
    return next(part for part in prompt.parts if part.name == name)


def marks(part):
    return set(MARK.findall(part.text))


def play(rules, seed, steps=70):
    cast = PromptContext(rules, seed)
    for _ in range(steps):
        if cast.state.status not in ("ready", "waiting"):
            break
        if cast.rng.random() < 0.2:
            cast.edit()
            cast.check()
        if cast.state.status not in ("ready", "waiting"):
            break
        cast.go_on()
        cast.check()
    again = cast.rebuilt()
    assert again == cast.session, "reopened is not live"
    if cast.session.prompt is not None:
        assert again.prompt.text == cast.session.prompt.text
    return cast.checked


@given(documents(), st.integers(0, 2**32))
@settings(max_examples=EXAMPLES, deadline=None)
def test_r50_prompts_follow_the_rule_in_random_casts_of_random_loadouts(document, seed):
    checked = play(rules_of(document), seed)
    event(f"{min(checked, 10)} prompts")


@pytest.mark.parametrize("name", BUNDLED_RULES)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=max(2, EXAMPLES // 10), deadline=None)
def test_r50_prompts_follow_the_rule_in_random_casts_of_bundled_loadouts(name, seed):
    play(BUNDLED_RULES[name], seed)
