"""Test sweeps: each cast of the grid runs once, a failed cast is a row, and finished casts are reused."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from random import Random

import pytest

from builders import asks, at, config, edge, utility
from magics_helpers import run, text
from materia_nb import Workbench
from materia_nb.agents import Reply, Usage
from materia_nb.cast import open_cast
from materia_nb.errors import MateriaError
from materia_nb.sweep import Judge, row_of
from materia_nb.sweep.results import Matrix, confidence_interval, paired_difference

DO_AND_CHECK = config(
    {"Do": at("D", edge("Check")), "Check": asks(edge("Do", "not_satisfied", 1), materia="C")},
    materia={
        "D": {"tools": "none", "prompt": "Do {{request}}"},
        "C": {"tools": "none", "prompt": "Check it"},
    },
)


def good(turn):
    return {"satisfied": True} if turn.required_fields else f"did {turn.request}"


def thrifty(turn):
    return Reply('{"satisfied": true}' if turn.required_fields else "did it", Usage(10, 5, 0.15))


def slow_to_please(turn):
    return {"satisfied": turn.visit > 1} if turn.required_fields else "did it"


def never(turn):
    return {"satisfied": False} if turn.required_fields else "did it"


def dies_once(turn):
    """Kill the process that runs the cast, but only the first time, as recorded in the file that the request names."""
    marker = Path(turn.request)
    if not marker.is_absolute():
        return good(turn)
    if turn.required_fields and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    with marker.with_suffix(".asked").open("a") as file:
        file.write(f"{turn.socket_id}\n")
    return good(turn)


def dies_always(turn):
    """Kill the process that runs the cast, unless the file named by the request exists."""
    if turn.required_fields and not Path(turn.request).exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return good(turn)


@pytest.fixture
def wb(project):
    bench = Workbench(project, bundled=False)
    bench.load(json.loads(json.dumps(DO_AND_CHECK)))
    yield bench
    bench.close()


class Counted:
    """An agent that counts its calls and gives the same answers as :func:`good`."""

    def __init__(self, answer=good):
        self.asked, self._answer = [], answer
        self.name = "counted"

    def answer(self, turn):
        self.asked.append(turn.socket_id)
        value = self._answer(turn)
        return Reply(value if isinstance(value, str) else json.dumps(value), usage=Usage(10, 1, 0.25))

    def __repr__(self):
        return "Counted()"


# -- the grid -----------------------------------------------------------------------------------


def test_sweep_has_one_row_for_each_combination_in_the_grid(wb):
    s = wb.sweep("T", ["rain", "sun"], agents=[good, slow_to_please, never], repeat=2)
    assert len(s) == 12
    assert [(one.agents, one.request, one.repeat) for one in s[:3]] == [
        ("good", "rain", 1),
        ("good", "rain", 2),
        ("good", "sun", 1),
    ]
    assert {one.agents: (one.ends, one.turns) for one in s} == {
        "good": ("complete", 2),
        "slow_to_please": ("complete", 4),
        "never": ("edge_traversals_exhausted", 4),
    }
    assert s.matrix().means["never", "rain"] == 0
    assert s.matrix().means["good", "sun"] == 1
    assert s.matrix("turns", "agents", "request").means["slow_to_please", "sun"] == 4
    assert wb.open(s[0].cast).state == s[0].open().state


def test_sweep_changes_neither_the_current_cast_nor_the_list_of_casts(wb):
    cast = wb.cast("mine")
    wb.sweep(requests="rain", agents=good)
    assert wb.current is cast
    assert len(wb.casts()) == 1


def test_finished_casts_are_reused_and_only_new_casts_run(wb):
    agent = Counted()
    first = wb.sweep(requests=["rain"], agents={"a": agent}, repeat=2)
    asked = len(agent.asked)
    repeated = wb.sweep(requests=["rain"], agents={"a": agent}, repeat=2)
    assert (first.fresh, repeated.fresh, len(agent.asked)) == (2, 0, asked)
    assert list(repeated) == list(first)
    assert wb.sweep(requests=["rain", "sun"], agents={"a": agent}, repeat=3).fresh == 4


def test_different_loadout_or_function_runs_a_new_cast(wb):
    def build(word):
        namespace = {}
        exec(f"def one(turn):\n    return {{'satisfied': True}} if turn.required_fields else {word!r}", namespace)  # noqa: S102
        return namespace["one"]

    assert wb.sweep(requests="rain", agents=build("x")).fresh == 1
    assert wb.sweep(requests="rain", agents=build("x")).fresh == 0
    assert wb.sweep(requests="rain", agents=build("y")).fresh == 1
    changed = json.loads(json.dumps(DO_AND_CHECK))
    changed["loadouts"]["T"]["sockets"]["Check"]["edges"][0]["maxTraversals"] = 2
    wb.load(changed)
    assert wb.sweep(requests="rain", agents=build("x")).fresh == 1


def test_sweep_accepts_one_set_of_agents_or_labelled_sets(wb):
    one = wb.sweep(requests="rain", agents={"D": lambda: "did", "C": lambda: {"satisfied": True}})
    assert [row.ends for row in one] == ["complete"]
    many = wb.sweep(requests="rain", agents={"all": good, "two": {"D": lambda: "did", "*": never}})
    assert [(row.agents, row.complete) for row in many] == [("all", True), ("two", False)]


@pytest.mark.parametrize(
    "given, told",
    [
        ({"requests": ()}, "needs requests"),
        ({"requests": [3]}, "needs requests"),
        ({"requests": "r", "repeat": 0}, "at least one loadout"),
        ({"requests": "r", "agents": [good, good]}, "have the same name"),
        ({"requests": "r", "agents": {"D": good, "label": good}}, "No materia or socket is called 'label'"),
        ({"requests": "r", "agents": {"new": {"Chek": good, "*": good}}}, "called 'Chek'.*did you mean 'Check'"),
        ({"requests": "r", "agents": [{"Chek": good}]}, "called 'Chek'.*did you mean 'Check'"),
        ({"requests": "r", "loadouts": ["Nope"]}, "The loadout 'Nope' does not exist"),
        ({"requests": "r", "checks": {"x": lambda rout, state: True}}, "unknown parameter 'rout'"),
        ({"requests": "r", "checks": {"turns": lambda cast: True}}, "cannot be named"),
    ],
)
def test_invalid_sweep_grid_is_refused(wb, given, told):
    with pytest.raises(MateriaError, match=f"(?s){told}"):
        wb.sweep(**given)


# -- failures are rows -------------------------------------------------------------------------------


def test_failed_casts_are_rows_of_the_sweep_table_and_can_be_retried(wb):
    luck = []

    def broken(turn):
        if not luck:
            raise ValueError("no luck")
        return good(turn)

    s = wb.sweep(requests="rain", agents={"broken": broken, "nobody": "person", "good": good})
    assert [one.ends for one in s] == ["agent_error", "person", "complete"]
    assert "no luck" in s[0].why
    assert "D is waiting for an answer" in s[1].why
    assert [failure.agents for failure in s.failures] == ["broken", "nobody"]
    luck.append(1)
    repeated = wb.sweep(requests="rain", agents={"broken": broken, "nobody": "person", "good": good}, retry=True)
    assert [one.ends for one in repeated] == ["complete", "person", "complete"]
    assert repeated.fresh == 2


def test_failed_utility_has_a_row_and_a_pinned_utility_is_not_run(project):
    document = config({"U": at("U", edge("P"), parse="json"), "P": at("P")}, materia={"U": utility(command=["false"])})
    with_utility = Workbench(project, bundled=False)
    with_utility.load(document)
    assert with_utility.sweep(requests="r", agents=good)[0].ends == "utility_exit"
    pinned = with_utility.sweep(requests="r", agents=good, pins={"U": {"satisfied": True}})
    assert pinned[0].complete
    with_utility.close()


def test_sweep_accepts_drafts_immediately(project):
    bench = Workbench(project, bundled=False)
    bench.load(config({"A": at("M")}))
    (row,) = bench.sweep(requests="r", agents=lambda turn: f"{turn.kind}")
    assert (row.ends, row.turns) == ("complete", 2)
    bench.close()


# -- cut off ---------------------------------------------------------------------------------------------


def test_interrupted_cast_of_a_sweep_continues(wb):
    stops = [True]

    def answer(turn):
        if turn.required_fields and stops:
            stops.clear()
            raise KeyboardInterrupt
        return good(turn)

    agent = Counted(answer)
    with pytest.raises(KeyboardInterrupt):
        wb.sweep(requests="rain", agents={"a": agent})
    (row,) = wb.sweep(requests="rain", agents={"a": agent})
    assert row.complete
    assert agent.asked == ["Do", "Check", "Check"]  # what was answered was not asked again


def test_damaged_row_of_a_sweep_is_restored_without_a_new_cast(wb, project):
    agent = Counted()
    s = wb.sweep(requests=["rain", "sun"], agents={"a": agent})
    rows = s.folder / "rows.jsonl"
    rows.write_bytes(rows.read_bytes()[:-20])
    repeated = wb.sweep(requests=["rain", "sun"], agents={"a": agent})
    assert [one.complete for one in repeated] == [True, True]
    assert len(agent.asked) == 4
    assert wb.sweep(requests=["rain", "sun"], agents={"a": agent}).fresh == 0


def test_missing_row_of_a_failed_cast_is_restored_without_a_new_cast(wb):
    agent = Counted(never)
    s = wb.sweep(requests="rain", agents={"a": agent})
    (s.folder / "rows.jsonl").unlink()
    (row,) = wb.sweep(requests="rain", agents={"a": agent})
    assert row == s[0]
    assert len(agent.asked) == 4


def test_reason_given_by_a_judge_is_saved_without_secrets(wb, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123456789")
    checks = {"x": Judge(lambda: {"satisfied": True, "context": "sk-very-secret-0123456789"}, "?")}
    s = wb.sweep(requests="rain", agents=good, checks=checks)
    assert "secret" not in s[0].checks["x"].why
    assert b"very-secret" not in (s.folder / "rows.jsonl").read_bytes()


def test_progress_function_can_end_the_sweep_and_finished_casts_are_kept(wb):
    class Enough(Exception):
        pass

    def progress(done, total):
        assert total == 3
        raise Enough

    with pytest.raises(Enough):
        wb.sweep(requests=["a", "b", "c"], agents=good, progress=progress)
    assert wb.sweep(requests=["a", "b", "c"], agents=good).fresh == 2


def test_sweep_returns_the_same_rows_with_several_workers(wb):
    grid = {"requests": ["rain", "sun"], "agents": [good, never], "repeat": 2}
    shared, alone = wb.sweep(**grid, dir="shared", workers=2), wb.sweep(**grid, dir="alone")
    assert [(row.agents, row.ends, row.turns) for row in shared] == [(row.agents, row.ends, row.turns) for row in alone]


def test_sweep_without_workers_is_refused(wb):
    with pytest.raises(MateriaError, match="needs at least one worker"):
        wb.sweep(requests=["a"], agents=good, workers=0)


# -- checks -----------------------------------------------------------------------------------------------


def test_sweep_checks_receive_the_cast_and_may_return_or_assert(wb):
    def asserts(route):
        assert route == ["Do", "Check"], "another route"

    checks = {
        "asserts": asserts,
        "said": lambda outputs: outputs["Check"]["satisfied"],
        "number": lambda steps: len(steps) / 2,
        "breaks": lambda state: state["nothing"],
    }
    row, other = wb.sweep(requests="rain", agents=[good, never], checks=checks)
    assert {name: one.value for name, one in row.checks.items()} == {
        "asserts": True,
        "said": True,
        "number": 1.0,
        "breaks": None,
    }
    assert "KeyError" in row.checks["breaks"].why
    assert other.checks["asserts"].value is False
    assert "another route" in other.checks["asserts"].why
    assert not other.passed


def test_checks_run_again_in_each_sweep_without_new_casts(wb):
    wb.sweep(requests="rain", agents=good, checks=[lambda cast: False])
    s = wb.sweep(requests="rain", agents=good, checks={"now": lambda cast: True})
    assert (s.fresh, s[0].passed) == (0, True)


def test_judge_is_asked_once_per_cast_about_its_result(wb):
    asked = []

    def judging(turn):
        asked.append(turn.prompt)
        if len(asked) == 1:
            return "Yes!"  # no JSON: it is asked for once more
        return Reply(json.dumps({"satisfied": "rain" in turn.request, "context": "it says so"}), usage=Usage(5, 1))

    checks = {"about rain": Judge(judging, "Is it about rain?")}
    s = wb.sweep(requests=["rain", "sun"], agents=good, checks=checks)
    assert [one.checks["about rain"].value for one in s] == [True, False]
    assert s[1].checks["about rain"].why == "it says so"
    assert s[0].checks["about rain"].usage.tokens == 6
    assert "did rain" in asked[0]
    assert "Is it about rain?" in asked[0]
    assert "was refused" in asked[1]
    assert len(asked) == 3
    repeated = wb.sweep(requests=["rain", "sun"], agents=good, checks=checks)
    assert [one.checks["about rain"].value for one in repeated] == [True, False]
    assert len(asked) == 3


def test_judge_that_fails_is_asked_again_by_the_next_sweep(wb):
    asked = []

    def judging(turn):
        asked.append(1)
        raise ValueError("no network")

    for _ in range(2):
        (row,) = wb.sweep(requests="rain", agents=good, checks={"fine": Judge(judging, "Is it fine?")})
        assert row.checks["fine"].value is None
        assert not row.passed
    assert len(asked) == 2


# -- looking at it -----------------------------------------------------------------------------------------


def test_sweep_table_is_escaped_and_available_as_a_data_frame(wb):
    hostile = "<img src=x onerror=alert(1)>"
    s = wb.sweep(
        requests=[hostile, "rain"],
        agents=[good, never],
        checks={hostile: lambda cast: hostile == cast.now.request},
    )
    html = s._repr_mimebundle_()["text/html"]
    assert "<img" not in html
    assert "linear-gradient" in html
    assert "edge_traversals_exhausted" in repr(s)
    pytest.importorskip("pandas")
    frame = s.frame()
    assert list(frame["ends"]) == ["complete"] * 2 + ["edge_traversals_exhausted"] * 2
    assert list(frame[hostile]) == [True, False, True, False]
    with pytest.raises(MateriaError, match="no value"):
        s.matrix("tokns")


# -- differences with intervals -----------------------------------------------------------------


def outcomes(rng, count, old, new):
    """Return paired outcomes of two choices with the given chances."""
    return [(rng.random() < old, rng.random() < new) for _ in range(count)]


@pytest.mark.parametrize("count", [10, 30, 100])
@pytest.mark.parametrize("chance", [0.5, 0.8, 0.95])
def test_interval_of_a_rate_contains_the_true_rate_in_95_percent_of_samples(count, chance):
    rng, samples = Random(1), 4_000
    intervals = (
        confidence_interval([rng.random() < chance for _ in range(count)], is_rate=True) for _ in range(samples)
    )
    covered = sum(low <= chance <= high for _, low, high in intervals)
    expected = 0.914 if (count, chance) == (10, 0.95) else 0.95  # the exact coverage of Wilson's interval is 0.9139
    assert expected - 0.025 <= covered / samples <= 0.99


@pytest.mark.parametrize("count", [3, 5, 10, 50])
def test_interval_of_a_mean_contains_the_true_mean_in_95_percent_of_samples(count):
    rng, samples = Random(2), 4_000
    intervals = (confidence_interval([rng.gauss(7, 3) for _ in range(count)], is_rate=False) for _ in range(samples))
    covered = sum(low <= 7 <= high for _, low, high in intervals)
    assert 0.935 <= covered / samples <= 0.965


@pytest.mark.parametrize("old, new", [(0.5, 0.5), (0.73, 0.8), (0.9, 0.95), (0.3, 0.6)])
@pytest.mark.parametrize("count", [10, 30, 100])
def test_interval_of_a_difference_contains_the_true_difference_in_93_percent_of_samples(count, old, new):
    rng, samples = Random(3), 3_000
    covered = 0
    for _ in range(samples):
        numbers = [b - a for a, b in outcomes(rng, count, old, new)]
        _, low, high = paired_difference("new", "old", numbers, is_rate=True).interval
        covered += low <= new - old <= high
    assert covered / samples >= 0.93  # the interval is wider than necessary for few casts


def test_recommended_number_of_pairs_detects_the_difference_with_80_percent_probability():
    """The number of pairs that is computed from a sample with exactly the true shares."""
    exact = [1] * 30 + [-1] * 15 + [0] * 55
    needed = paired_difference("new", "old", exact, is_rate=True).needed
    rng, samples, shown = Random(4), 1_000, 0
    for _ in range(samples):
        numbers = rng.choices([1, -1, 0], [30, 15, 55], k=needed)
        _, low, high = paired_difference("new", "old", numbers, is_rate=True).interval
        shown += low > 0 or high < 0
    assert 0.76 <= shown / samples <= 0.84


def test_comparison_of_prompts_without_a_significant_difference_needs_more_pairs():
    """22 of 30 against 24 of 30: an exact test gives p = 0.76."""
    numbers = [1] * 6 + [-1] * 4 + [0] * 20
    found = paired_difference("new", "old", numbers, is_rate=True)
    assert found.interval.mean == pytest.approx(2 / 30)
    assert found.interval.low < 0 < found.interval.high
    assert found.needed > 300


def test_matrix_pairs_casts_by_request_and_repetition(wb):
    def sometimes(turn):
        return {"satisfied": turn.request != "sun"} if turn.required_fields else "did it"

    s = wb.sweep("T", ["rain", "sun"], agents={"never": never, "good": good, "sometimes": sometimes}, repeat=3)
    matrix = s.matrix()
    assert matrix.means["sometimes", "rain"] == 1
    assert matrix.intervals["good", "sun"].mean == 1
    assert 0.4 < matrix.intervals["good", "sun"].low < 0.5
    better, partly = matrix.differences
    assert (better.choice, better.baseline, better.interval.mean, better.pairs) == ("good", "never", 1, 6)
    assert (partly.choice, partly.interval.mean) == ("sometimes", 0.5)
    output = text(matrix)
    assert "100% of 3 (44% to 100%)" in output
    assert "good is 100 points higher than never, 95 % interval" in output
    assert "shown by 6 pairs of casts." in output
    assert "sometimes is 50 points higher than never" in output
    assert "good is 100 points higher" in text(s.matrix(columns="agents"))
    assert s.matrix(rows="request", columns="repeat").differences == []


def test_all_intervals_of_a_matrix_are_drawn_on_the_same_scale(wb):
    numbers = {("new", "turns"): [1.0, 2.0, 3.0], ("old", "turns"): [-3.0, -2.0, -1.0], ("once", "turns"): [2.0]}
    matrix = Matrix("agents", numbers, {})
    new, old, once = (cell for _, cell in matrix.table.rows)
    low, high = matrix.intervals["old", "turns"].low, matrix.intervals["new", "turns"].high
    assert (old.start, new.end) == (0, 1)
    assert new.start == pytest.approx((matrix.intervals["new", "turns"].low - low) / (high - low))
    for bar, mean in ((new, 2), (old, -2), (once, 2)):
        assert sum(bar.strong) / 2 == pytest.approx((mean - low) / (high - low))
    assert once.positions[:2] == [0, 1], "the interval of a single number is unlimited"


def test_matrix_reports_which_agents_differ_and_which_do_not(wb):
    s = wb.sweep("T", ["rain", "sun"], agents={"good": good, "also good": good, "slow": slow_to_please})
    same, slow = s.matrix("turns").differences
    assert (same.interval.mean, same.needed) == (0, None)
    assert slow.interval.mean == 2
    output = text(s.matrix("turns"))
    assert "also good and good do not differ on average" in output
    assert "slow is 2 higher than good" in output
    (single,) = wb.sweep("T", ["rain"], agents={"good": good, "slow": slow_to_please}).matrix("turns").differences
    assert single.needed is None
    assert "95 %" not in text(wb.sweep("T", ["rain"], agents={"good": good, "slow": slow_to_please}).matrix("turns"))


def test_sweep_verb_uses_each_line_of_a_cell_as_a_request(shell):
    run(shell, "%materia use Ask")
    shell.user_ns["who"] = {"one": lambda: "a", "other": lambda: "b"}
    found = run(shell, "%%materia sweep --agents $who --repeat 2\nfirst\nsecond\n")
    assert "8 casts: 8 new" in text(found)
    assert "0 new, 2 reused" in text(run(shell, "%materia sweep --agents $who first"))


def test_r56_unreported_run_time_is_unknown_rather_than_zero():
    recording = open_cast(Path(__file__).parents[1] / "data" / "recorded-casts" / "loop-retry")
    assert row_of(recording, ("loadout", "request", "agents", 1)).seconds is None


def test_sweep_starts_no_casts_above_its_limit_and_continues_with_a_higher_limit(wb):
    grid = {"requests": list("abcdef"), "agents": thrifty}
    s = wb.sweep(most="0.5 usd", **grid)
    assert [row.ends for row in s] == ["complete"] * 2 + ["left out"] * 4, "two casts of 0.3 USD use it up"
    assert (s.left_out, s.fresh, s.cost) == (4, 2, pytest.approx(0.6))
    assert "0.6 of 0.5 usd are used. To continue, run the same sweep with a higher limit." in repr(s)
    repeated = wb.sweep(most="0.5 usd", **grid)
    assert (repeated.fresh, repeated.left_out) == (0, 4), "casts of an earlier run count too"
    rest = wb.sweep(most="20 turns", **grid)
    assert (rest.fresh, rest.left_out, rest.cost) == (4, 0, pytest.approx(1.8))
    assert "are used" not in repr(rest)


def test_sweep_workers_finish_their_casts_at_the_limit_and_start_no_more(wb):
    s = wb.sweep(requests=list("abcdef"), agents=thrifty, workers=2, most="0.2 usd")
    assert [row.ends for row in s].count("complete") == 2, "one of two running casts uses up the limit"
    assert s.left_out == 4


@pytest.mark.parametrize("most", ["much", "0 usd", "3 apples"])
def test_invalid_limit_is_rejected(wb, most):
    with pytest.raises(MateriaError, match="is not a limit of a sweep"):
        wb.sweep(requests=["a"], agents=good, most=most)
