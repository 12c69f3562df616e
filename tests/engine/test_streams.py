"""Test that every interleaving of the events of lanes produces the same session."""

from __future__ import annotations

import os
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from materia_nb.engine import approvals, decide
from materia_nb.engine import events as ev
from materia_nb.engine.cast_warnings import find_warnings
from materia_nb.engine.events import ImpossibleEvent
from materia_nb.engine.evolve import begin_session, evolve, fold
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import all_steps, every_step, lanes_at_work, pending_actions
from materia_nb.engine.state import Failure, Pin, Usage
from materia_nb.engine.streams import lane_folders
from materia_nb.errors import MateriaError
from materia_nb.handoff.runtime_rules import Stream
from materia_nb.loadout import build_graph
from materia_nb.loadout.graph import Budget
from stream_helpers import plan_of, streams_config

EXAMPLES = int(os.environ.get("MATERIA_EXAMPLES", "20"))
"""Number of schedules that each test tries; 200 for a manual run."""
STREAMS = {"ui": [2, 0], "api": [1], "docs": [3, 4, 5]}
YES, NO = '{"satisfied": true, "context": "good"}', '{"satisfied": false, "context": "again"}'


class Folded:
    """A cast in memory: its events and the session computed from them."""

    def __init__(self, rules):
        self.rules, self.events = rules, []
        self.session = begin_session(rules, ev.CastStart(request="r"))

    def keep(self, events):
        self.events += events
        self.session = fold(self.rules, self.session, events)

    def do(self, command, *given):
        self.keep(command(self.rules, self.session, *given, len(self.events)))

    def lane(self, name, command, *given):
        self.do(decide.run_in_lane, name, command, *given)


def forked(streams=STREAMS, **top):
    cast = Folded(Rules(build_graph(streams_config(3, **top))))
    cast.do(decide.enter)
    cast.do(decide.answer, decide.Answer(plan_of(streams)))
    cast.do(decide.enter)
    return cast


def worked(choose, **top):
    """Return a cast whose lanes advance in the order that ``choose`` determines."""
    cast = forked(**top)
    while lanes_at_work(cast.session).status == "running":
        due = [one for one in pending_actions(cast.rules, cast.session) if one.lane]
        if not due:
            cast.do(decide.enter)
            break
        one = choose(due)
        if one.what == "enter":
            cast.lane(one.lane, decide.enter)
        else:
            cast.lane(one.lane, decide.answer, decide.Answer(*choose.answer(one)))
    return cast


class InOrder:
    """Chooses the first waiting lane; one check refuses once, and an invalid answer fails one lane."""

    def __init__(self, fails=""):
        self.fails, self.refused = fails, set()

    def __call__(self, due):
        return due[0]

    def answer(self, due):
        visit = due.visit
        usage = Usage(1, 1, 0.1)
        if visit.socket != "Socket-4":
            return f"{due.lane} {visit.visit}", usage
        if due.lane == self.fails:
            return "no json", usage
        if visit.item.position == 2 and due.lane not in self.refused:
            self.refused.add(due.lane)
            return NO, usage
        return YES, usage


@cache
def in_order(fails):
    return worked(InOrder(fails))


def by_lane(events):
    """Return the events before the lanes, those of each lane, and those after the lanes; events of the cast come last."""
    first = next(n for n, one in enumerate(events) if one.lane)
    last = max(n for n, one in enumerate(events) if one.lane)
    lanes = {}
    for event in events[first : last + 1]:
        lanes.setdefault(event.lane, []).append(event.replace(transition=None))
    return events[:first], lanes, events[last + 1 :]


@pytest.mark.parametrize("fails", ["", "api"])
@given(data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_every_interleaving_of_lanes_produces_the_same_session(fails, data):
    cast = in_order(fails)
    assert cast.session.state.status == ("failed" if fails else "ready")
    before, lanes, behind = by_lane(cast.events)
    assert set(lanes) == set(STREAMS)
    order = data.draw(st.permutations([name for name, events in lanes.items() for _ in events]))
    rest = {name: iter(events) for name, events in lanes.items()}
    mixed = [next(rest[name]) for name in order]
    session = begin_session(cast.rules, ev.CastStart(request="r"))
    assert fold(cast.rules, session, [*before, *mixed, *behind]) == cast.session


@given(data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_cast_continues_from_the_same_state_for_any_order_of_lanes(data):
    class AnyOrder(InOrder):
        def __call__(self, due):
            return data.draw(st.sampled_from(due))

    wanted, made = in_order("").session, worked(AnyOrder()).session
    assert made.state == wanted.state
    assert made.turns == wanted.turns
    for name, lane in wanted.streams[0].lanes.items():
        other = made.streams[0].lanes[name]
        assert [(step.at, step.output, step.after) for step in other.session.steps] == [
            (step.at, step.output, step.after) for step in lane.session.steps
        ]


def test_lane_results_are_joined_only_if_all_are_accepted():
    cast = forked()
    before = cast.session.state
    cast.lane("ui", decide.enter)
    cast.lane("ui", decide.fail, Failure("agent_error", "gone", "Socket-2", "hint"), 3)
    assert cast.session.streams[0].lanes["ui"].status == "failed"
    assert cast.session.state == before._replace(usage=cast.session.state.usage)
    assert cast.session.state.usage.worked == 3
    with pytest.raises(MateriaError, match="ui"):
        cast.lane("nobody", decide.enter)


def test_event_of_an_unknown_lane_is_refused():
    cast = forked()
    with pytest.raises(ImpossibleEvent):
        evolve(cast.rules, cast.session, ev.LaneStarted(lane="nobody"))
    with pytest.raises(ImpossibleEvent):
        evolve(cast.rules, cast.session, ev.StreamsJoined(loop="L", next="Socket-5"))
    with pytest.raises(ImpossibleEvent, match="the cast is"):
        evolve(cast.rules, cast.session, ev.LaneEnded(lane="ui", status="accepted"))


def test_lanes_begin_at_the_entry_of_their_own_loop():
    cast = Folded(Rules(build_graph(streams_config(3))))
    cast.do(decide.enter)
    cast.do(decide.answer, decide.Answer(plan_of(STREAMS)))
    with pytest.raises(ImpossibleEvent, match="does not enter the loop elsewhere next"):
        evolve(cast.rules, cast.session, ev.StreamsStarted(loop="elsewhere", streams=(), limit=1))


def test_decisions_by_a_person_apply_in_lanes():
    cast = forked()
    pin = Pin("text", "a text", "x")
    cast.do(decide.record, ev.Pinned(name="Build", **pin.as_json()))
    cast.do(approvals.allow, frozenset({"bash"}))
    sessions = [cast.session, *(lane.session for lane in cast.session.streams[-1].lanes.values())]
    assert [(session.pins, session.allowed) for session in sessions] == [({"Build": pin}, {"bash"})] * 4
    cast.do(decide.record, ev.Unpinned(name="Build"))
    assert [lane.session.pins for lane in cast.session.streams[-1].lanes.values()] == [{}] * 3
    with pytest.raises(MateriaError, match="The lanes are running") as caught:
        cast.do(decide.enter)
    assert caught.value.kind == "lanes"
    for command, *values in ((decide.edit_state, {}, {}), (decide.edit_output, "x")):
        with pytest.raises(MateriaError, match="The lanes started from an earlier copy") as caught:
            cast.do(command, *values)
        assert (caught.value.kind, "back 1" in caught.value.hint) == ("lanes", True)
    cast.do(decide.abort, "enough")
    for command, *values in ((decide.skip, "why"), (decide.answer_by_hand,)):
        with pytest.raises(MateriaError, match="The cast stopped in its lanes"):
            cast.do(command, *values)


def test_lanes_of_an_aborted_cast_have_no_pending_work():
    cast = forked()
    assert [one.lane for one in pending_actions(cast.rules, cast.session)] == list(cast.session.streams[0].lanes)
    cast.do(decide.abort, "enough")
    assert pending_actions(cast.rules, cast.session) == ()


def test_each_lane_has_its_own_folder_with_a_safe_name():
    names = ["API", "api", "../../etc", "two words", "stream-3"]
    made = lane_folders("L", 1, tuple(Stream(name, (0,)) for name in names))
    assert len({one.casefold() for one in made}) == len(names)
    assert all(one.startswith("parallel/L/lanes/") and ".." not in one for one in made)
    assert lane_folders("L", 2, (Stream("a", (0,)),)) == ["parallel/L.2/lanes/a/"]


# -- how lanes end, and go on --------------------------------------------------------------------

GO_ON = "use `retry` to continue the lanes that were not accepted; accepted lanes do not run again"


def lanes(cast):
    return {name: lane.status for name, lane in cast.session.streams[-1].lanes.items()}


def since(cast, command):
    """Return the events of a command together with their lanes."""
    known = len(cast.events)
    cast.do(command)
    return [(event.type, event.lane) for event in cast.events[known:]]


@pytest.mark.parametrize("command", [decide.retry, decide.raise_limit, decide.retry_turn])
def test_failed_lane_fails_the_cast_and_is_retried_alone(command):
    cast = worked(InOrder("api"))
    failure = cast.session.state.failure
    assert (failure.kind, failure.socket, failure.hint) == ("stream_failed", "Socket-1", GO_ON)
    assert failure.message.startswith("1 of 3 lanes did not finish. api: Check gave")
    assert lanes(cast) == {"ui": "accepted", "api": "failed", "docs": "accepted"}
    again = "cast_revive" if command is decide.raise_limit else "cast_recast"
    assert since(cast, command) == [(again, ""), (again, "api")]
    assert lanes(cast) == {"ui": "accepted", "api": "waiting", "docs": "accepted"}
    assert cast.session.state.failure is None
    assert {one.lane for one in pending_actions(cast.rules, cast.session)} == {"api"}


def test_exhausted_budget_stops_all_lanes_until_it_is_raised():
    cast = worked(InOrder(), budget={"maxTokens": 12})
    assert set(lanes(cast).values()) == {"interrupted"}
    failure = cast.session.state.failure
    assert (failure.kind, failure.hint) == ("budget", f"raise the budget (`edit budget N`), then {GO_ON}")
    assert [event.type for event in cast.events if event.type.startswith("budget")] == [
        "budget_warning",
        "budget_limit",
    ]
    with pytest.raises(MateriaError, match="The budget is still used up: The cast has used 12 of 12 tokens"):
        cast.do(decide.retry)
    cast.do(decide.set_budget, Budget(max_tokens=1000))
    assert since(cast, decide.retry) == [("cast_recast", "")]
    assert set(lanes(cast).values()) == {"waiting"}


def test_abort_interrupts_the_lanes_and_after_a_retry_they_wait_again():
    cast = forked()
    cast.lane("ui", decide.enter)
    known = len(cast.events)
    cast.do(decide.abort, "enough")
    assert [(event.type, event.lane) for event in cast.events[known:]] == [
        *(("lane_ended", name) for name in STREAMS),
        ("cast_end", ""),
    ]
    failure = cast.session.state.failure
    assert (failure.kind, failure.message, failure.hint) == ("aborted", "enough", GO_ON)
    cast.do(decide.retry)
    assert lanes(cast) == dict.fromkeys(STREAMS, "waiting")
    with pytest.raises(MateriaError) as caught:
        cast.do(decide.retry)
    assert caught.value.kind == "not_stopped"


def test_failed_lane_accepts_commands_but_a_finished_lane_does_not():
    cast = worked(InOrder("api"))
    with pytest.raises(MateriaError) as caught:
        cast.lane("ui", decide.enter)
    assert caught.value.kind == "lane_over"
    assert caught.value.what == "The lane 'ui' is accepted."


def test_all_steps_lists_the_steps_of_lanes_after_their_generator_step():
    cast = worked(InOrder())
    cast.do(decide.enter)
    cast.do(decide.answer, decide.Answer("told"))
    found = [step.socket for step in all_steps(cast.session)]
    assert (found[0], found[-1]) == ("Socket-1", "Socket-5")
    per_lane = ["Socket-2", *["Socket-3", "Socket-4"] * 3]  # the second item of ui is done twice
    assert found[1:-1] == [*per_lane, *per_lane[:3], *per_lane]
    assert sorted((step.socket, left) for step, left in every_step(cast.session)) == sorted(
        (socket, False) for socket in found
    )
    assert all_steps(Folded(cast.rules).session) == ()


def test_lane_that_ends_with_open_items_fails():
    document = streams_config(3)
    document["loadouts"]["T"]["sockets"]["Socket-4"]["edges"][0]["to"] = "end"
    cast = Folded(Rules(build_graph(document)))
    cast.do(decide.enter)
    cast.do(decide.answer, decide.Answer(plan_of({"ui": [0, 1]})))
    cast.do(decide.enter)
    for text in ("set up", "built", YES):
        cast.lane("ui", decide.enter)
        cast.lane("ui", decide.answer, decide.Answer(text))
    cast.lane("ui", decide.enter)
    (lane,) = cast.session.streams[0].lanes.values()
    assert lane.status == "failed"
    assert lane.error == "The lane 'ui' continued to end with 1 item left."


def test_warnings_of_lanes_name_the_lane():
    class Repeats(InOrder):
        def answer(self, due):
            text, usage = super().answer(due)
            return (text if due.visit.socket == "Socket-4" else "the same"), usage

    for choose, wanted in ((InOrder(), []), (Repeats(), ["ui"])):
        cast = worked(choose)
        for command, *rest in ((decide.enter,), (decide.answer, decide.Answer("told")), (decide.enter,)):
            cast.do(command, *rest)
        assert cast.session.state.status == "complete"
        found = [
            (warning.code, warning.message.partition(":")[0]) for warning in find_warnings(cast.rules, cast.session)
        ]
        assert found == [("same-again", f"in lane {name}") for name in wanted]
