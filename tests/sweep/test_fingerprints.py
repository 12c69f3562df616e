"""Test that a sweep distinguishes agents by their readable parts and never reuses results of an opaque agent."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import pytest

from builders import at, config
from materia_nb import Workbench
from materia_nb.sweep import Judge
from materia_nb.sweep.grid import fingerprint_of


@pytest.fixture
def wb(project):
    bench = Workbench(project, bundled=False)
    bench.load(json.loads(json.dumps(config({"Do": at("P")}))))
    yield bench
    bench.close()


def closed_over(what):
    return lambda: f"said {what}"


def with_default(what):
    def answer(turn, temperature=what):
        return f"{temperature}"

    return answer


def with_keyword(what):
    def answer(turn, *, temperature=what):
        return f"{temperature}"

    return answer


@dataclass
class Ob:
    what: object
    name: str = "ob"

    def answer(self, turn):
        return str(self.what)


class CallEvent:
    __slots__ = ("what",)

    def __init__(self, what):
        self.what = what

    def __call__(self, turn):
        return str(self.what)


class Inner:
    def __init__(self, what):
        self.ob = [{"deep": Ob(what)}]

    def __call__(self, turn):
        return "x"


def asked_by(turn, what):
    return what


def written(text, **names):
    """Run the source code of a cell and return the variables that it defines."""
    names |= {"__name__": "__main__"}
    exec(text, names)  # noqa: S102 - our own
    return names


def helped_by(what):
    """Return a function that calls another function through a global variable."""
    return written(f"def helper(): return {what!r}\ndef answer(turn): return helper()\n")["answer"]


def reads_a_global(what):
    return written("def answer(turn): return str(SETTINGS)\n", SETTINGS={"temperature": what})["answer"]


def with_method(what):
    return written(f"class A:\n    name = 'a'\n    def answer(self, turn): return {what!r}\n")["A"]()


def decorated(what):
    return cache(closed_over(what))


CHANGES = [
    closed_over,
    with_default,
    with_keyword,
    Ob,
    CallEvent,
    Inner,
    helped_by,
    reads_a_global,
    with_method,
    decorated,
    lambda what: partial(asked_by, what=what),
    lambda what: Ob(what).answer,
    lambda what: {"Do": [what]},
]


@pytest.mark.parametrize("make", CHANGES)
def test_changed_agent_has_a_different_fingerprint(make):
    one, same, other = (fingerprint_of(make(what), "a") for what in ("one", "one", "other"))
    assert one == same
    assert one.key != other.key
    assert one.opaque == ()


@pytest.mark.parametrize("make", [closed_over, with_default, Ob, CallEvent, reads_a_global])
def test_sweep_repeats_and_reports_the_casts_of_a_changed_agent(wb, make):
    def swept(what):
        return wb.sweep(requests="rain", agents={"a": {"*": make(what)}}, checks=[lambda outputs: outputs["Do"] != ""])

    first, again, changed = swept("one"), swept("one"), swept("two")
    assert [one.fresh for one in (first, again, changed)] == [1, 0, 1]
    assert "two" in changed[0].open().steps[0].output
    assert again.notes == ()
    assert changed.notes == ("1 earlier cast not reused: the loadout, agents or pins changed",)


class Connected:
    """An agent with a part that cannot be fingerprinted."""

    name = "connected"

    def __init__(self):
        self.client = threading.Lock()

    def answer(self, turn):
        return "x"


def test_casts_of_an_agent_without_a_fingerprint_are_never_reused(wb):
    sweeps = [wb.sweep(requests=["rain", "sun"], agents={"a": Connected()}) for _ in range(2)]
    assert [sweep.fresh for sweep in sweeps] == [2, 2]
    told = "2 casts cannot be reused, because changes to"
    assert told in repr(sweeps[0])
    assert "client is a lock" in repr(sweeps[0])
    assert told in sweeps[0]._repr_mimebundle_()["text/html"]


def test_changed_judge_is_asked_again(wb):
    asked = []

    def judged(judge):
        return wb.sweep(requests="rain", agents=closed_over("one"), checks={"good": judge})

    def judging(strict):
        def answer(turn):
            asked.append(strict)
            return {"satisfied": not strict}

        return answer

    for strict in (False, True):
        assert judged(Judge(judging(strict), "Good?"))[0].checks["good"].value is not strict
    assert asked == [False, True]


def test_judge_without_a_fingerprint_is_asked_in_each_sweep(wb):
    class UncountedQuantity(Connected):
        asked = 0

        def answer(self, turn):
            UncountedQuantity.asked += 1
            return {"satisfied": True}

    for _ in range(2):
        s = wb.sweep(requests="rain", agents=closed_over("one"), checks={"good": Judge(UncountedQuantity(), "Good?")})
    assert UncountedQuantity.asked == 2
    assert "the judge good is asked each time" in repr(s)


def test_fingerprint_of_a_model_agent_depends_on_settings_but_not_on_connections():
    pytest.importorskip("pydantic_ai")
    from materia_nb.agents.model_agent import ModelAgent

    cold, warm, used = (ModelAgent("ollama:tiny", settings={"temperature": one}) for one in (0.1, 0.9, 0.1))
    used._handles["ollama:tiny"] = threading.Lock()
    assert fingerprint_of(cold, "a") == fingerprint_of(used, "a")
    assert fingerprint_of(cold, "a").key != fingerprint_of(warm, "a").key


def test_fingerprint_of_an_agent_that_counts_its_calls_changes_only_with_its_settings(wb):
    class Counts:
        name = "counts"

        def __init__(self):
            self.calls, self.temperature = 0, 0.1

        def answer(self, turn):
            self.calls += 1
            return "x"

    agent = Counts()
    fresh = []
    for temperature in (0.1, 0.1, 0.9, 0.9, 0.1):
        agent.temperature = temperature
        fresh.append(wb.sweep(requests="rain", agents={"a": agent}).fresh)
    assert fresh[:4] == [1, 0, 1, 0]


def test_agents_with_equal_code_but_different_settings_have_different_fingerprints(wb):
    class Lowers:
        def __init__(self, retries):
            self.retries = retries

        def __call__(self, turn):
            self.retries -= 1
            return f"answered with {self.retries + 1} retries"

    first, second = Lowers(3), Lowers(2)
    assert wb.sweep(requests="rain", agents={"a": first}).fresh == 1
    assert wb.sweep(requests="rain", agents={"a": second}).fresh == 1
    assert wb.sweep(requests="rain", agents={"a": second}).fresh == 0


def test_result_of_getstate_determines_the_fingerprint(wb):
    class Says(Connected):
        def __getstate__(self):
            return {"version": 1}

    assert fingerprint_of(Says(), "a") == fingerprint_of(Says(), "a")
    assert fingerprint_of(Says(), "a").opaque == ()


def test_fingerprint_of_a_module_covers_only_its_used_attributes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_own_settings.py").write_text("TEMPERATURE = 0.1\nOTHER = 1\n")
    import my_own_settings

    def closes_over_it(turn):
        return str(my_own_settings.TEMPERATURE)

    text = "def answer(turn): return str(my_own_settings.TEMPERATURE)"
    agents = [closes_over_it, written(text, my_own_settings=my_own_settings)["answer"]]
    before = [fingerprint_of(agent, "a") for agent in agents]
    monkeypatch.setattr(my_own_settings, "OTHER", 2)
    assert [fingerprint_of(one, "a") for one in agents] == before
    monkeypatch.setattr(my_own_settings, "TEMPERATURE", 0.9)
    assert not set(before) & {fingerprint_of(one, "a") for one in agents}


def test_self_referential_values_have_a_fingerprint():
    def one(turn):
        return other(turn)

    def other(turn):
        return one(turn)

    knot = Ob(None)
    knot.what = [knot]
    assert fingerprint_of(one, "a") == fingerprint_of(one, "a")
    assert fingerprint_of(knot, "a").opaque == ()


def test_fingerprints_are_equal_in_another_kernel(tmp_path):
    """Fingerprints must not depend on the hash seed or on memory addresses."""
    script = f"""
import sys
sys.path[:0] = {[str(Path(__file__).parent), *sys.path]!r}
import test_fingerprints as t
from materia_nb.sweep.grid import fingerprint_of
def answer(turn):
    return "x" if turn.kind in {{"work", "repair", "final"}} else {{"a", "b", "c"}}
print(fingerprint_of([t.Inner({{"a", "b"}}), t.closed_over(frozenset("abc")), answer, t.decorated(t.Ob)], "a"))
"""
    told = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1
    assert "opaque=()" in told.pop()
