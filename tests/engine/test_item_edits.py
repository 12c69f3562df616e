"""Test that work items keep their history when a person edits the list in any way and at any time (R46)."""

from __future__ import annotations

import json
import os
import random
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cast_helpers as h
from builders import YES, Folded, items, retry_loop
from materia_nb.cast import open_cast
from materia_nb.cast.views.status import status_lines
from materia_nb.engine import decide, events, evolve
from materia_nb.engine.cast_warnings import find_warnings
from materia_nb.engine.events import from_json, to_json
from materia_nb.engine.item_edits import ListEdit, current_iteration, edit_lists, origins_of
from materia_nb.engine.items import item_status, item_statuses
from materia_nb.engine.rules import Rules
from materia_nb.errors import MateriaError
from materia_nb.loadout import build_graph

EXAMPLES = int(os.environ.get("MATERIA_EDITS", "150"))
"""Minimum number of edits that the property makes; MATERIA_EDITS=10000 for a long run."""
EDITS = 6
"""Maximum number of edits in one cast."""

BEHIND = ("done", "skipped")


def two_loops():
    """Return a loadout that builds each item in one loop and then checks it in another loop with its own cursor."""
    document = h.loop_config()
    place = document["loadouts"]["T"]
    place["sockets"]["Socket-4"] = h.at("Build", ("always", "Socket-5"))
    place["sockets"]["Socket-5"] = h.at(
        "Check", ("satisfied", "Socket-4"), ("not_satisfied", "Socket-4", 3), parse="json"
    )
    place["sockets"]["Socket-6"] = h.at("Tell")
    place["loops"]["M"] = {
        "sockets": ["Socket-4", "Socket-5"],
        "iterator": {"items": "state.workItems", "as": "workItem", "cursor": "second"},
        "exits": [{"id": "f", "from": "Socket-5", "condition": "satisfied", "targetSocketId": "Socket-6"}],
    }
    place["sockets"]["Socket-5"]["advance"] = {"when": "satisfied"}
    return document


def of_foreach():
    """Return a loadout with one socket that has its own foreach."""
    sockets = {
        "Socket-1": h.at("Plan", ("always", "Socket-2"), parse="json"),
        "Socket-2": h.at(
            "Check",
            ("always", "Socket-2"),
            parse="json",
            foreach={"items": "state.workItems", "as": "workItem"},
            advance={"when": "satisfied"},
        ),
    }
    return h.config(sockets, {"Plan": h.agent(generator=True), "Check": h.agent()})


def nested():
    """Return a loadout with rows that each have parts, over which an inner socket iterates."""
    sockets = {
        "Socket-1": h.at("Work", ("always", "Socket-2")),
        "Socket-2": h.at(
            "Work",
            ("always", "Socket-3"),
            foreach={"items": "state.rows", "as": "row", "cursor": "o"},
        ),
        "Socket-3": h.at(
            "Check",
            ("always", "Socket-3"),
            parse="json",
            foreach={"items": "state.row.parts", "as": "part", "cursor": "i"},
            advance={"when": "satisfied"},
        ),
        "Socket-4": h.at(
            "Work",
            ("always", "Socket-2"),
            foreach={"items": "state.rows", "as": "row", "cursor": "o"},
            advance={"when": "always"},
        ),
    }
    loops = {
        "Parts": {
            "sockets": ["Socket-3"],
            "exits": [{"id": "p", "from": "Socket-3", "condition": "always", "targetSocketId": "Socket-4"}],
        },
    }
    return h.config(sockets, {"Work": h.agent(), "Check": h.agent()}, loops)


KINDS = {"loop": h.loop_config, "two loops": two_loops, "foreach": of_foreach, "nested": nested}
RULES = {name: Rules(build_graph(make())) for name, make in KINDS.items()}


class Played:
    """A cast in memory with its session and events, and an independent count of how often each item began."""

    def __init__(self, kind: str, rng: random.Random) -> None:
        self.rules, self.rng, self.path = RULES[kind], rng, "rows" if kind == "nested" else "workItems"
        self.made = 0
        state = {"rows": self.items(rng.randint(0, 4))} if kind == "nested" else {}
        self.events = [events.CastStart(request="r", state=state, ts=0)]
        self.session = evolve.begin_session(self.rules, self.events[0])
        self.begun, self.expected, self.advanced = Counter(), Counter(), Counter()

    def items(self, count):
        found = []
        for _ in range(count):
            self.made += 1
            one = {"title": f"t{self.made}", "context": f"c{self.made}"}
            if self.path == "rows":
                one["parts"] = [{"title": f"{one['title']}.{n}"} for n in range(self.rng.randint(0, 2))]
            found.append(one)
        return found

    @property
    def state(self):
        return self.session.state

    @property
    def listed(self):
        found = self.state.data.get(self.path)
        return found if isinstance(found, list) else []

    def keep(self, made):
        self.session = evolve.fold(self.rules, self.session, made)
        self.events += made

    def walks(self):
        return self.rules.lists[self.path,]

    def step(self):
        """Enter a socket or answer it; count begun and advanced items from the states before and after."""
        before = self.state
        if before.status == "ready":
            self.keep(decide.enter(self.rules, self.session, 0))
            item = self.state.at.item if self.state.status == "waiting" else None
            for id_ in () if item is None else self.within(item):
                if id_ not in before.items:
                    self.begun[id_[0], self.title(item, id_)] += 1
            return
        here = self.rules.sockets[before.at.socket]
        value = {"satisfied": self.rng.random() < 0.8}
        if here.socket.is_generator:
            value = {"workItems": self.items(self.rng.randint(0, 5))}
        self.keep(decide.answer(self.rules, self.session, decide.Answer(json.dumps(value)), 0))
        fact = self.session.steps[-1].decision.advance if self.session.steps[-1].decision else None
        if (
            fact is not None
            and fact.moved
            and any(iteration.iterator.cursor == fact.cursor for iteration in self.walks())
        ):
            self.advanced[fact.cursor, self.listed[fact.before]["title"]] += 1

    def within(self, item):
        return [item.id] if item.cursor in {iteration.iterator.cursor for iteration in self.walks()} else []

    def title(self, item, id_):
        return self.listed[id_[1]]["title"]

    def edit(self):
        """Reorder, insert, remove, reopen, abandon or change items at random; some of these edits are refused."""
        rng, old = self.rng, list(self.listed)
        kept = [place for place in range(len(old)) if rng.random() < 0.85]
        rng.shuffle(kept)
        places = [*kept]
        for _ in range(rng.choice([0, 0, 1, 2])):
            places.insert(rng.randint(0, len(places)), None)
        new = [self.items(1)[0] if place is None else dict(old[place]) for place in places]
        stands = self.status_phrase()
        governed, _ = current_iteration(self.rules, self.state, (self.path,))
        can = [place for place in kept if stands[governed.iterator.cursor][place] in BEHIND]
        again = [place for place in can if rng.random() < 0.15]
        abandon = rng.random() < 0.3
        origins = places if again or rng.random() < 0.7 else None
        if origins is not None and new and rng.random() < 0.3:
            new[0]["title" if self.path == "workItems" else "note"] = self.items(1)[0]["title"]
            new[0]["context"] = "changed"
        renamed = {}
        if origins is not None:
            renamed = {old[place]["title"]: new[n]["title"] for n, place in enumerate(places) if place is not None}
        before = self.session
        try:
            if self.path == "workItems":
                made = decide.edit_items(self.rules, before, new, origins, 0, again=again, abandon=abandon)
            else:
                given = {} if origins is None else {"rows": ListEdit(tuple(origins), tuple(again), abandon)}
                made = decide.edit_state(self.rules, before, {**self.state.data, "rows": new}, given, 0)
        except MateriaError as error:
            self.refused(error, places, stands)
            return False
        if not made:
            return False
        self.keep(made)
        for counted in (self.begun, self.expected, self.advanced):
            for cursor, title in list(counted):
                if renamed.get(title, title) != title:
                    counted[cursor, renamed[title]] = counted.pop((cursor, title))
        self.expect(old, places, stands, renamed, again)
        self.laid_out(governed, [one["title"] for one in new])
        return True

    def refused(self, error, places, stands):
        """Assert that an edit is refused only because it removes the current item or the one at which the cast stopped."""
        assert error.kind == "working", error
        taken = [place for place in range(len(self.listed)) if place not in places]
        busy = [place for place in taken if any(how[place] == "being worked on" for how in stands.values())]
        assert busy or self.state.shown

    def expect(self, old, places, stands, renamed, again):
        """Record that an item that was done or begun and is now open must begin once more."""
        after = self.status_phrase()
        now = {one["title"]: place for place, one in enumerate(self.listed)}
        for cursor, how in stands.items():
            for place in (place for place in places if place is not None):
                title = renamed.get(old[place]["title"], old[place]["title"])
                if self.begun[cursor, title] and how[place] != "open" and after[cursor][now[title]] == "open":
                    self.expected[cursor, title] += 1
                    self.advanced[cursor, title] = 0
                    said = " ".join(self.session.edits[-1].messages)
                    assert place in again or "more" in said or repr(title) in said, (
                        said,
                        cursor,
                        title,
                        how[place],
                        place,
                    )

    def laid_out(self, governed, given):
        """Return the expected order: done items, then the current item, then the open items in their specified order."""
        how = item_statuses(self.state, governed)
        rank = [0 if one in BEHIND else 1 if one == "being worked on" else 2 for one in how]
        assert rank == sorted(rank), how
        if not self.session.edits[-1].lists[self.path].again:
            opened = [one["title"] for one, stands in zip(self.listed, how, strict=True) if stands == "open"]
            assert opened == [title for title in given if title in opened]

    def status_phrase(self):
        return {iteration.iterator.cursor: item_statuses(self.state, iteration) for iteration in self.walks()}

    def check(self):
        """Assert that no untouched item is shown as done and no entered item is shown as not begun."""
        for cursor, how in self.status_phrase().items():
            for one, stands in zip(self.listed, how, strict=True):
                begun = self.begun[cursor, one["title"]] > self.expected[cursor, one["title"]]
                if stands == "done":
                    assert min(begun, self.advanced[cursor, one["title"]]) > 0, (one, how)
                if stands == "being worked on":
                    assert begun
                if not begun:
                    assert stands in ("open", "skipped"), (one, how)

    def rebuilt(self):
        session = evolve.begin_session(self.rules, self.events[0])
        for event in self.events[1:]:
            stored = json.loads(json.dumps(to_json(event)))
            session = evolve.evolve(self.rules, session, from_json(type(event).type, stored, event.ts))
        return session

    def finished(self):
        """Assert that each remaining item was entered once plus once per requested repetition, or is named in a
        warning.
        """
        assert self.state.status in ("complete", "failed"), self.state.status
        if self.state.status == "failed":
            return
        named = {
            (warning.item, warning.message)
            for warning in find_warnings(self.rules, self.session)
            if warning.code == "never-worked-on"
        }
        for iteration in self.walks():
            cursor = iteration.iterator.cursor
            for place, one in enumerate(self.listed):
                begun, expected = self.begun[cursor, one["title"]], 1 + self.expected[cursor, one["title"]]
                if begun == 0 and cursor in self.state.cursors:
                    assert any(one["title"] in message for _, message in named), (one, place)
                assert begun in (expected, expected - 1), (one, begun, expected)
                if begun == expected - 1:
                    assert item_status(self.state, (cursor, place, ())) in BEHIND


def play(kind, seed):
    rng = random.Random(seed)
    played = Played(kind, rng)
    left, made = rng.randint(1, EDITS), 0
    for _ in range(300):
        if played.state.status not in ("ready", "waiting"):
            break
        if left and rng.random() < 0.35 and (played.listed or played.session.steps):
            left -= 1
            before = played.session
            if played.edit():
                made += 1
                played.check()
                undone = evolve.fold(played.rules, played.session, decide.undo(played.rules, played.session, 0))
                assert undone._replace(steps=before.steps) == before
                assert [*undone.steps] == [*before.steps]
                continue
        played.step()
        played.check()
    played.finished()
    assert played.rebuilt() == played.session, "resumed is not live"
    return made


@given(st.sampled_from(list(KINDS)), st.integers(0, 2**32))
@example("two loops", 345)  # renamed by the edit that lets another loop begin it anew
@settings(max_examples=max(1, EXAMPLES // 2), deadline=None)
def test_r46_after_edits_each_open_item_is_entered_once_or_reported(kind, seed):
    play(kind, seed)


# -- what was found first -------------------------------------------------------------------


def built(cast, socket="Socket-2"):
    return [label for name, _, _, label in cast.route if name == socket]


@pytest.fixture
def at_c(tmp_path):
    """Return a cast in which A and B are done and C is next."""
    agents = {**h.loop_agents(), "Plan": lambda: json.dumps({"workItems": h.items(*"ABC")})}
    cast = h.start(tmp_path, h.loop_config(), agents)
    cast.run(until=lambda c: c.now.engine.cursors.get("workItemIndex") == 2)
    return cast


@pytest.mark.parametrize(
    "given, worked_on, laid_out",
    [
        ("ABEDC", "EDC", "ABEDC"),
        ("EABCD", "ECD", "ABECD"),
        ("ABECD", "ECD", "ABECD"),
        ("ABED", "ED", "ABED"),
        ("CBAX", "CX", "ABCX"),
        ("X", "X", "X"),
    ],
)
@pytest.mark.parametrize("guess", [True, False])
def test_r46_each_open_item_is_processed_once_in_any_order(at_c, given, worked_on, laid_out, guess):
    before = len(at_c.route)
    places = [None if letter not in "ABC" else "ABC".index(letter) for letter in given]
    pairs = at_c.edit.items(h.items(*given), None if guess else places)
    assert "".join(item["title"] for item in at_c.now.work_items) == laid_out
    assert bool(pairs) == (given != laid_out)
    done = [one for one in given if one in "AB"]
    assert at_c.now.item_statuses == ["done"] * len(done) + ["open"] * len(worked_on)
    assert at_c.run() == "complete"
    assert "".join(dict.fromkeys(label for *_, label in at_c.route[before:] if label)) == worked_on
    assert at_c.now.item_statuses == ["done"] * len(given)
    assert at_c.now.warnings == ()


def test_r46_current_item_remains_current_between_its_sockets(tmp_path):
    agents = {**h.loop_agents(), "Plan": lambda: json.dumps({"workItems": h.items(*"abc")})}
    cast = h.start(tmp_path, h.loop_config(), agents)
    cast.run(steps=2)
    assert (cast.now.next_socket, cast.now.item_statuses) == ("Socket-3", ["being worked on", "open", "open"])
    assert cast.edit.items(h.items(*"bac")) == (
        "Moved: 'b' is at position 2, not 1. Finished items come first, then the item in progress.",
    )
    with pytest.raises(MateriaError, match="so it cannot be removed") as refused:
        cast.edit.items(h.items(*"bc"))
    assert refused.value.kind == "working"
    assert "abandon" in str(refused.value.hint)
    assert cast.edit.items(h.items(*"bc"), abandon=True) == ("'a' is abandoned.",)
    assert (cast.now.next_socket, cast.now.upcoming_item.label) == ("Socket-2", "b")
    cast.run()
    assert (built(cast), built(cast, "Socket-3")) == (["a", "b", "c"], ["b", "c"])


def test_r46_abandoned_item_stays_in_the_list_as_skipped_and_can_be_reopened(tmp_path):
    agents = {**h.loop_agents(), "Plan": lambda: json.dumps({"workItems": h.items(*"abc")})}
    cast = h.start(tmp_path, h.loop_config(), {**agents, "Check": "person"})
    cast.run()
    assert (cast.status, cast.now.waiting_at.socket) == ("waiting", "Socket-3")
    before = cast.now.session
    assert cast.edit.abandon() == ("'a' is abandoned; it stays in the list as skipped.",)
    assert (cast.status, cast.now.next_socket) == ("ready", "Socket-2")
    assert cast.now.item_statuses == ["skipped", "open", "open"]
    assert "A person chose to continue with Build." in " ".join(cast.why(3).lines)
    cast.edit.undo()
    assert cast.now.session._replace(edits=()) == before._replace(edits=())
    cast.edit.abandon()
    assert cast.edit.again("a") == ("'a' will be worked on again, before the other open items.",)
    assert [item["title"] for item in cast.now.work_items] == ["a", "b", "c"]
    assert cast.now.item_statuses == ["open"] * 3
    with pytest.raises(MateriaError, match="There is no current work item to abandon"):
        cast.edit.abandon()
    with pytest.raises(MateriaError, match="No work item has the number, key or title 'z'") as unknown:
        cast.edit.again("z")
    assert unknown.value.kind == "no_item"
    cast.agents.set("Check", lambda: h.YES)
    cast.run()
    assert cast.status == "complete"
    assert built(cast) == ["a", "a", "b", "c"]
    h.assert_same(open_cast(cast.run_dir), cast)


def test_r46_reopened_item_starts_over(at_c):
    assert at_c.edit.again(1, "B") == ("'A', 'B' will be worked on again, before the other open items.",)
    assert at_c.now.item_statuses == ["open"] * 3
    at_c.run()
    assert built(at_c) == ["A", "B", "A", "B", "C"]


def test_r45_r46_item_added_after_its_loop_has_ended_is_reported(tmp_path):
    agents = {**h.loop_agents(), "Plan": lambda: json.dumps({"workItems": h.items(*"ab")})}
    cast = h.start(tmp_path, h.loop_config(), agents)
    cast.run(until="Socket-4")
    cast.edit.items(h.items(*"abX"))
    assert cast.now.item_statuses == ["done", "done", "open"]
    cast.run()
    assert [(warning.code, warning.item, warning.socket) for warning in cast.now.warnings] == [
        ("never-worked-on", "WI-3", "Socket-2")
    ]
    assert cast.now.item_statuses == ["done", "done", "skipped"]


def test_r46_any_list_in_the_state_can_be_reordered(tmp_path):
    document = h.config(
        {"Socket-1": h.at("M", ("always", "Socket-2"), parse="json"),
         "Socket-2": h.at("M", ("always", "Socket-2"), foreach={"items": "state.rows", "as": "row"}, advance={"when": "always"})},
        {"M": h.agent()},
    )  # fmt: skip
    cast = h.start(tmp_path, document, lambda: "{}")
    cast.edit.state({"rows": ["a", "b", "c"]})
    cast.run(steps=2)
    said = cast.edit.set("rows", ["c", "new", "a", "b"])
    assert cast.state["rows"] == ["a", "c", "new", "b"]
    assert said[0].startswith("Moved: 'c' is at position 2, not 1")
    assert cast.edit.set("rows.0", "renamed") == ()
    cast.run()
    assert built(cast) == ["0", "1", "2", "3"]
    assert [step.at.item.value for step in cast.steps[1:]] == ["a", "c", "new", "b"]


def test_r46_item_is_identified_by_equality_then_by_title():
    a, b = h.items("a", "b")
    changed = {**a, "context": "other"}
    assert origins_of([a, b], [b, a]) == [1, 0]
    assert origins_of([a, b], [changed, b]) == [0, 1]
    assert origins_of([a, b], [changed, a]) == [None, 0], "an exact match wins over a guess"
    assert origins_of([a, b], [{**a, "title": "A"}]) == [None], "the same context is no reason"
    assert origins_of(["x", "x", 1], ["x", 1, "x", True]) == [0, 2, 1, None]


@pytest.fixture(scope="module")
def two_done():
    """Return a cast in which the first two of eight items are done."""
    return Folded(retry_loop()).answers(items(*"abcdefgh"), "built", YES, "built", YES)


def laid(cast, order, again=()):
    """Reorder the items of a cast by position; a position that does not exist stands for a new item."""
    listed = dict(enumerate(cast.state.data["workItems"]))
    new = [listed.get(origin, h.item("new")) for origin in order]
    wanted = {"workItems": ListEdit(tuple(order), tuple(again))}
    return edit_lists(cast.rules, cast.state, {**cast.state.data, "workItems": new}, wanted)


@pytest.mark.parametrize(
    "order, again, titles, said",
    [
        (range(8), (), "abcdefgh", ""),
        (range(2, 8), (), "cdefgh", ""),
        (range(8), (0,), "bacdefgh", "'a' will be worked on again, before the other open items."),
        (range(8), (0, 1), "abcdefgh", "'a', 'b' will be worked on again, before the other open items."),
        ((2, 0, 1, *range(3, 8)), (), "abcdefgh", "Moved: 'c' is at position 3, not 1. "),
        ((7, 6, 0, 1, 2, 3, 4, 5), (), "abhgcdef", "Moved: 'h' is at position 3, not 1, 'g' is at position 4, not 2. "),
        (range(7, -1, -1), (), "abhgfedc", "'e' is at position 6, not 4, and 2 more. "),
    ],
)
def test_r46_done_items_stay_first_and_moves_are_reported(two_done, order, again, titles, said):
    found = laid(two_done, order, again)
    assert "".join(item["title"] for item in found.data["workItems"]) == titles
    assert said in "".join(found.messages)
    assert bool(found.messages) == bool(said)


@pytest.mark.parametrize("order, again", [((0, 0), ()), ((8,), ()), ((-1,), ()), ((0, 1), (2,))])
def test_r46_positions_that_do_not_match_the_list_are_refused(two_done, order, again):
    with pytest.raises(MateriaError, match="do not match the list") as caught:
        laid(two_done, order, again)
    assert caught.value.kind == "items"


def test_loops_that_were_never_entered_are_counted_as_not_started(tmp_path):
    """Many loops share a list and its cursor, so the first loop processes every item and the others are skipped."""
    count = 34
    sockets = {"Socket-1": h.at("Plan", ("always", "Socket-2"), parse="json")}
    loops = {}
    for n in range(2, count + 2):
        sockets[f"Socket-{n}"] = h.at("Check", (("always"), f"Socket-{n}"), parse="json", advance={"when": "always"})
        target = f"Socket-{n + 1}" if n <= count else "end"
        loops[f"part{n}"] = {
            "sockets": [f"Socket-{n}"],
            "iterator": {"items": "state.workItems", "as": "workItem", "cursor": "shared"},
            "exits": [{"id": f"e{n}", "from": f"Socket-{n}", "condition": "always", "targetSocketId": target}],
        }
    document = h.config(sockets, {"Plan": h.agent(generator=True), "Check": h.agent()}, loops)
    answers = {"Plan": lambda: json.dumps({"workItems": h.items("a", "b")}), "Check": lambda: h.YES}
    cast = h.start(tmp_path, document, answers)
    cast.run(steps=1)
    assert status_lines(cast.now)[0] == "T: ready after 1 step (34 loops not started)"
    cast.run()
    assert status_lines(cast.now)[0] == "T: complete after 3 steps (loop part2: 2 of 2 done, 33 loops not started)"
    assert set(cast.now.loop_progress.values()) == {(2, 2), (0, 2)}
