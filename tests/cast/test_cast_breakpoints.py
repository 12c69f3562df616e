"""Test every kind of breakpoint, of a loadout and of a single cast, and how files store them."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.agents import Reply
from materia_nb.agents.interface import Usage
from materia_nb.cast.breakpoint import FILE, Breakpoint, parse_breakpoint
from materia_nb.errors import MateriaError


@pytest.fixture
def checked(tmp_path):
    """Return a cast with two items; its first check is not satisfied and sends the work back."""
    return h.start(tmp_path, h.loop_config(), h.loop_agents(2, refuse=(1,)))


def stops(cast):
    """Run the cast to its end and return the number of steps at each stop."""
    found = []
    while cast.run() == "breakpoint":
        found.append(len(cast.steps))
    return found


def sockets(cast):
    """Return the sockets that have a breakpoint before them."""
    return {one.socket for one in cast.breakpoints if one.kind == "before"}


def one_judge(tmp_path):
    """Return a cast whose agent has two outputs refused before its third output is accepted."""
    document = h.config({"A": h.at("M", parse="json")}, {"M": h.agent("x")}, limits={"repairAttempts": 3})
    replies = iter(["no JSON", "nor this", h.YES])
    return h.start(tmp_path, document, lambda: next(replies))


# -- each kind --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, behind",
    [
        ({"socket": "Socket-2"}, [1, 3, 5]),
        ({"socket": "Socket-2", "nth": 2}, [3]),
        ({"socket": "Socket-2", "kind": "after"}, [2, 4, 6]),
        ({"socket": "Socket-4", "kind": "after"}, [8]),
        ({"socket": "Socket-2", "kind": "after", "nth": 3}, [6]),
        ({"socket": "Socket-3", "edge": 1}, [5]),
        ({"socket": "Socket-3", "edge": 2}, [3]),
        ({"socket": "Socket-3", "edge": "Socket-2"}, [3, 5]),
        ({"socket": "Socket-3", "edge": "Socket-2", "nth": 2}, [5]),
        ({"socket": "Socket-3", "edge": "Socket-4"}, [7]),
        ({"socket": "Socket-4", "edge": "end"}, [8]),
        ({"kind": "not_satisfied"}, [3]),
        ({"socket": "Socket-3", "kind": "not_satisfied"}, [3]),
        ({"socket": "Socket-1", "kind": "not_satisfied"}, []),
        ({"kind": "refused"}, []),
    ],
)
def test_run_stops_before_a_breakpoint(checked, given, behind):
    checked.breakpoints.add(**given)
    assert stops(checked) == behind
    assert [step.socket[-1] for step in checked.steps] == list("12323234")


def test_breakpoint_stops_at_the_nth_change_of_a_path(checked):
    checked.breakpoints.watch("currentWorkItem", nth=2)
    assert stops(checked) == [6]


def test_breakpoint_counts_from_the_start_of_the_cast(checked):
    checked.run(steps=3)
    checked.breakpoints.add("Socket-2", kind="after", nth=2)
    assert stops(checked) == [4]
    checked.back(3)
    assert stops(checked) == [4], "of the steps that were taken back none counts"


@pytest.mark.parametrize(
    "condition, behind",
    [
        ("steps > 2", [4, 6]),
        ("len(state.workItems[0].title) > 0 and visits['Socket-2'] == 2", [4]),
        ('"built" in output and not state.nowhere.deeper', [2, 4, 6]),
        ("len(state.workItems) != 2 or -1 > 0 or steps in [99]", []),
        ("state.nowhere < 3", []),
    ],
)
def test_breakpoint_condition_given_as_text_is_evaluated_in_the_current_state(checked, condition, behind):
    checked.breakpoints.add("Socket-2", condition, kind="after")
    assert stops(checked) == behind


@pytest.mark.parametrize(
    "text",
    [
        "cast.abort()",
        "state and __import__('os')",
        "1 +",
        "lambda: 1",
        "nope",
        "f'{state}'",
        lambda cast: len(cast.steps) > 2,
        "steps ** 9 > 1",
        "",
    ],
)
def test_invalid_condition_is_refused(checked, text):
    with pytest.raises(MateriaError, match="condition is invalid") as refused:
        checked.breakpoints.add("Socket-2", text)
    assert refused.value.kind == "bad_condition"
    with pytest.raises(MateriaError, match="not a valid breakpoint"):
        parse_breakpoint({"kind": "before", "socket": "Socket-2", "where": text})
    assert not list(checked.breakpoints)


def test_breakpoint_on_a_refused_output_stops_before_the_repair_turn(tmp_path):
    cast = one_judge(tmp_path)
    cast.breakpoints.add(kind="refused")
    assert cast.run() == "breakpoint"
    assert (cast.status, [turn.text for turn in cast.steps[0].turns]) == ("waiting", ["no JSON"])
    assert [one.words() for one in cast.now.breakpoints_hit] == ["refused output of any socket"]
    assert cast.run() == "breakpoint"
    assert len(cast.steps[0].turns) == 2
    assert cast.run() == "complete"


@pytest.mark.parametrize(
    "given, turns",
    [
        ({"nth": 2}, 2),
        ({"condition": "visits.A == 1", "nth": 2}, 2),
        ({"socket": "A"}, 1),
    ],
)
def test_breakpoint_can_be_limited_to_the_nth_refused_output(tmp_path, given, turns):
    cast = one_judge(tmp_path)
    cast.breakpoints.add(kind="refused", **given)
    assert cast.run() == "breakpoint"
    assert len(cast.steps[0].turns) == turns
    cast.breakpoints.clear()
    assert cast.run() == "complete"


def test_single_step_continues_after_a_refusal_but_waits_for_a_person(tmp_path):
    document = h.config({"A": h.at("M", ("always", "B"), parse="json"), "B": h.at("M")}, {"M": h.agent("x")})
    replies = iter(["no JSON", h.YES])
    cast = h.start(tmp_path, document, {"A": lambda: next(replies)})
    cast.breakpoints.add(kind="refused")
    assert cast.step().decision.target == "B"
    assert cast.run() == "person"


@pytest.mark.parametrize(
    "limit, behind",
    [
        ((3, "turns"), [3, 6]),
        ((2, "turns", "Socket-3"), [5]),
        ((25, "tokens"), [3, 5, 8]),
        ((0.45, "usd"), [5]),
        ((0.25, "usd", "Socket-2"), [6]),
        ((1, "seconds"), []),
    ],
)
def test_soft_limit_stops_a_run_whenever_its_amount_has_been_used_again(tmp_path, limit, behind):
    def paying(one):
        wanted = one.__code__.co_varnames[: one.__code__.co_argcount]
        return lambda turn: Reply(one(*(getattr(turn, name) for name in wanted)), Usage(7, 3, 0.1))

    agents = {name: paying(one) for name, one in h.loop_agents(2, refuse=(1,)).items()}
    cast = h.start(tmp_path, h.loop_config(), agents)
    cast.breakpoints.every(*limit)
    assert stops(cast) == behind
    assert cast.status == "complete"


def test_soft_limit_is_never_reached_without_reported_usage(checked):
    checked.breakpoints.every(1, "tokens")
    assert stops(checked) == []


@pytest.mark.parametrize(
    "amount, unit",
    [(0, "tokens"), (-1, "usd"), (float("inf"), "turns"), (float("nan"), "turns"), (3, "euros")],
)
def test_invalid_soft_limit_is_refused(checked, amount, unit):
    with pytest.raises(MateriaError, match="cannot stop runs every"):
        checked.breakpoints.every(amount, unit)


# -- what is said of them -----------------------------------------------------------------------------


def test_breakpoint_text_is_unchanged_by_a_round_trip(checked):
    told = {
        "before Check": Breakpoint("before", "Socket-3"),
        "after Check, 2nd time": Breakpoint("after", "Socket-3", nth=2),
        "Check → Build (edge 2), 11th time": Breakpoint("edge", "Socket-3", 2, nth=11),
        "Check → the end": Breakpoint("edge", "Socket-3", "end"),
        "refused output of Plan": Breakpoint("refused", "Socket-1"),
        "any socket not satisfied, 3rd time": Breakpoint("not_satisfied", nth=3),
        "state.plan.title changed": Breakpoint("changed", path="plan.title"),
        "every 20,000 tokens": Breakpoint("every", amount=20_000, unit="tokens"),
        "every 0.5 usd of Build": Breakpoint("every", "Socket-2", amount=0.5, unit="usd"),
    }
    for words, one in told.items():
        assert one.words(checked.graph) == words
        assert parse_breakpoint(json.loads(json.dumps(one.as_json()))) == one
    assert Breakpoint("edge", "gone", 7).words(checked.graph) == "edge 7 of gone"
    assert "\n" not in Breakpoint("before", "a\u202e\nb" * 99).words()


@pytest.mark.parametrize(
    "value",
    [
        None,
        "before",
        {},
        {"kind": "beside", "socket": "A"},
        {"kind": "before"},
        {"kind": "before", "socket": 1},
        {"kind": "before", "socket": "A", "path": "x"},
        {"kind": "edge", "socket": "A"},
        {"kind": "edge", "socket": "A", "edge": 0},
        {"kind": "edge", "socket": "A", "edge": True},
        {"kind": "changed", "path": ".."},
        {"kind": "refused", "nth": 0},
        {"kind": "refused", "nth": "2"},
        {"kind": "refused", "more": 1},
        {"kind": "changed", "path": "p" * 1_001},
        {"kind": "before", "socket": "\ud800"},
        {"kind": "every", "amount": 3},
        {"kind": "every", "amount": 0, "unit": "turns"},
        {"kind": "every", "amount": True, "unit": "turns"},
        {"kind": "every", "amount": 3, "unit": "euros"},
        {"kind": "changed", "path": "a", "socket": "A"},
    ],
)
def test_malformed_breakpoint_is_refused(value):
    with pytest.raises(MateriaError, match="not a valid breakpoint"):
        parse_breakpoint(value)


@pytest.mark.parametrize(
    "given, words",
    [
        ({}, "socket of the breakpoint is missing"),
        ({"kind": "after"}, "socket of the breakpoint is missing"),
        ({"socket": "Socket-3", "edge": 1, "kind": "refused"}, "the kind refused and an edge"),
        ({"socket": "Socket-3", "kind": "refuse"}, "breakpoint kind 'refuse' does not exist.*refused"),
        ({"socket": "Socket-3", "edge": 3}, "no edge 3.*1 to Build, 2 to Build"),
        ({"socket": "Socket-3", "edge": "Socket-1"}, "no edge 'Socket-1'"),
        ({"socket": "Socket-3", "nth": 0}, "a positive integer"),
        ({"socket": "Sokket-3", "kind": "refused"}, "no socket"),
    ],
)
def test_breakpoint_that_can_never_be_reached_is_reported(checked, given, words):
    with pytest.raises(MateriaError, match=f"(?s){words}"):
        checked.breakpoints.add(**given)
    assert not checked.breakpoints


def test_breakpoint_counts_and_amounts_must_be_positive(checked):
    breaks = checked.breakpoints
    for nth in (0, -1, True, 1.0, "1"):
        with pytest.raises(MateriaError, match="must be a positive integer") as caught:
            breaks.add("Socket-2", nth=nth)
        assert caught.value.kind == "usage"
    for amount, unit in (
        (0, "turns"),
        (-1, "turns"),
        (float("inf"), "turns"),
        (float("nan"), "turns"),
        (1, "x"),
    ):
        with pytest.raises(MateriaError):
            breaks.every(amount, unit)
    assert not breaks
    breaks.add("Socket-2", nth=1)
    breaks.every(0.5, "usd")
    assert [(one.kind, one.nth) for one in breaks][:1] == [("before", 1)]
    assert len(list(breaks)) == 2


def test_breakpoints_are_removed_individually_or_by_socket(checked):
    breaks = checked.breakpoints
    breaks.add("Socket-2")
    breaks.add("Socket-2", nth=2)
    assert list(breaks) == [Breakpoint("before", "Socket-2", nth=2)], "one place, one breakpoint"
    breaks.add("Socket-2", kind="after")
    breaks.add("Socket-3", kind="refused")
    breaks.watch("plan")
    breaks.clear("Socket-2", kind="after")
    assert [one.kind for one in breaks] == ["before", "refused", "changed"]
    breaks.clear("Socket-2")
    breaks.clear(path="plan")
    assert repr(breaks) == "<breakpoints: refused output of Check>"
    breaks.clear(kind="refused")
    assert len(breaks) == 1, "that of any socket is another one"
    breaks.clear()
    assert not breaks


# -- of all casts of a loadout, or of one -----------------------------------------------------------------


def test_breakpoints_apply_to_new_casts_of_their_loadout(bench, cast):
    bench.breakpoints.add("Socket-2")
    bench.breakpoints.watch("plan")
    made = bench.cast("again")
    for one in (cast, made):
        assert (sockets(one), one.breakpoints.paths) == ({"Socket-2"}, ["plan"])
    assert not bench.cast("x", loadout="Hello-Utility").breakpoints
    bench.casts.make_current(made)
    bench.breakpoints.clear()
    assert not sockets(cast), "taken away of all, gone in all"


def test_r47_breakpoints_of_a_cast_do_not_affect_other_casts(bench, cast):
    bench.breakpoints.add("Socket-3")
    other = bench.cast("other")
    cast.breakpoints.add("Socket-2")
    cast.breakpoints.clear("Socket-3")
    assert (sockets(cast), sockets(other), sockets(bench.cast("later"))) == (
        {"Socket-2"},
        {"Socket-3"},
        {"Socket-3"},
    )
    assert [one.socket for one in bench.breakpoints] == ["Socket-3"]
    fork = cast.fork()
    fork.breakpoints.add("Socket-4")
    cast.breakpoints.clear()
    assert (sockets(cast), sockets(fork)) == (set(), {"Socket-2", "Socket-4"})
    bench.breakpoints.add("Socket-1")
    assert (sockets(cast), sockets(other)) == (set(), {"Socket-3", "Socket-1"}), "it has its own"


def test_breakpoints_of_the_workbench_change_the_current_cast(bench, cast):
    cast.breakpoints.add("Socket-2")
    bench.breakpoints.add("Socket-3", "steps > 1")
    assert sockets(cast) == {"Socket-2", "Socket-3"}
    bench.breakpoints.clear()
    assert not cast.breakpoints


def test_breakpoints_can_be_set_before_a_cast(bench):
    bench.breakpoints.add("Socket-2")
    assert sockets(bench.cast("x")) == {"Socket-2"}
    with pytest.raises(MateriaError):
        bench.breakpoints.add("Socket-99")


def test_fork_and_resumed_cast_keep_breakpoints(bench, cast):
    cast.breakpoints.add("Socket-3")
    cast.step()
    fork = bench.casts.make_current(cast.fork())
    assert sockets(fork) == {"Socket-3"}
    fork.close()
    resumed = bench.resume(fork.id)
    assert resumed is not fork
    assert resumed.run() == "breakpoint"
    resumed.breakpoints.clear()
    resumed.close()
    bench.cast("other")
    bench.breakpoints.add("Socket-2")
    assert not sockets(bench.resume(fork.id)), "its own are none"


# -- kept over kernels ------------------------------------------------------------------------------------


def another_kernel(bench):
    new_bench = Workbench(bench.project)
    new_bench.use("Plan-Build-Eval")
    return new_bench


def test_breakpoints_are_stored_for_the_next_kernel(bench, cast):
    bench.breakpoints.add("Socket-2", kind="after", nth=2)
    bench.breakpoints.add("Socket-4", "steps > 2")
    bench.breakpoints.watch("plan")
    cast.close()
    assert another_kernel(bench).cast("other").breakpoints
    resumed = another_kernel(bench).resume(cast.id)
    assert [one.words() for one in resumed.breakpoints] == [
        "after Socket-2, 2nd time",
        "before Socket-4, where steps > 2",
        "state.plan changed",
    ]
    assert not resumed.now.messages
    resumed.breakpoints.clear()
    assert another_kernel(bench).cast("again").breakpoints
    bench.breakpoints.clear()
    assert not another_kernel(bench).cast("again").breakpoints


def test_breakpoints_of_two_kernels_are_merged_by_loadout(bench, cast):
    other = another_kernel(bench)
    other.cast("x", loadout="Hello-Utility")
    other.breakpoints.watch("greeting")
    other.cast("x")
    bench.breakpoints.add("Socket-2")
    other.breakpoints.add("Socket-3")
    third = another_kernel(bench)
    assert sockets(third.cast("x")) == {"Socket-3"}
    assert third.cast("x", loadout="Hello-Utility").breakpoints.paths == ["greeting"]


@pytest.mark.parametrize("content", ["{", "[]", '{"loadouts": 3}', '{"loadouts": {"Plan-Build-Eval": [1]}}'])
def test_damaged_breakpoint_file_is_reported_once_and_replaced(bench, content):
    path = bench.casts.root / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    cast = bench.cast("x")
    (message,) = cast.now.messages
    assert FILE in message
    assert not cast.breakpoints
    assert not bench.cast("y").now.messages
    bench.breakpoints.add("Socket-2")
    assert sockets(another_kernel(bench).cast("z")) == {"Socket-2"}


def test_valid_breakpoints_of_a_damaged_list_are_kept(bench):
    one, path = {"kind": "before", "socket": "Socket-2"}, bench.casts.root / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"loadouts": {"Plan-Build-Eval": [{"kind": "x"}, one]}}))
    cast = bench.cast("x")
    assert sockets(cast) == {"Socket-2"}
    assert "Some breakpoints" in cast.now.messages[0]
    many = [{**one, "nth": number} for number in range(1, 1_000)]
    path.write_text(json.dumps({"loadouts": {"Plan-Build-Eval": many}}))
    cast = another_kernel(bench).cast("x")
    assert len(cast.breakpoints) == 200
    assert "more than 200" in cast.now.messages[0]


def test_disk_error_while_saving_breakpoints_is_reported_once(bench, cast):
    (bench.casts.root / FILE).mkdir()
    bench.breakpoints.add("Socket-2")
    bench.breakpoints.add("Socket-3")
    (message,) = cast.now.messages
    assert "lost when this kernel ends" in message
    assert cast.run() == "breakpoint"
    assert sockets(bench.cast("y")) == {"Socket-2", "Socket-3"}
