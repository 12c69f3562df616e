"""Two casts, steps or loadouts beside one another: where they first differ, and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cast_helpers import items, loop_agents, loop_config, start
from materia_nb.errors import MateriaError
from materia_nb.insight.compare import Comparison


@pytest.fixture
def cast_of(bench):
    def make(*refuse, plan=("a", "b"), build="built"):
        agents = {
            "Plan": lambda: {"workItems": items(*plan)},
            "Build": lambda turn: f"{build} {turn.item_label}",
            "Eval": lambda turn: {"satisfied": turn.visit not in refuse, "context": "seen"},
        }
        cast = bench.cast("compare me", agents=agents)
        cast.run()
        return cast

    return make


def test_two_casts_that_were_answered_alike_did_the_same(bench, cast_of):
    d = bench.compare(cast_of(1), cast_of(1))
    assert not d
    assert d.first is None
    assert "did the same" in repr(d)


def test_the_first_difference_is_the_verdict_and_says_which_edges(bench, cast_of):
    d = bench.compare(cast_of(), cast_of(1))
    assert d
    assert (d.first.step, d.first.a, d.first.b) == (3, "Socket-4", "Socket-2")
    assert "$.satisfied is true in A, false in B" in d.first.why
    assert "not_satisfied" in d.first.why


def test_another_text_that_leads_the_same_way_is_a_difference_too(bench, cast_of):
    d = bench.compare(cast_of(), cast_of(build="made"))
    assert (d.first.step, d.first.a, d.first.b) == (2, "Socket-3", "Socket-3")
    assert "built a in A, made a in B" in d.first.why
    assert d.parted is None


def test_the_retry_stands_alone_and_what_follows_is_aligned_again(bench, cast_of):
    d = bench.compare(cast_of(), cast_of(1))
    alone = [(one.where, one.b.socket) for one in d.pairs if one.where != "both"]
    assert alone == [("B", "Socket-2"), ("B", "Socket-3")]


def test_a_fork_differs_first_where_it_was_answered_otherwise(bench, cast_of):
    cast = cast_of()
    fork = bench.take(cast.fork(2))
    fork.agents.set("Eval", lambda turn: {"satisfied": turn.visit != 1, "context": "seen"})
    fork.run()
    d = bench.compare(cast, fork)
    assert d.first.step == 3
    assert d.first.aspects[0] == "answer"


def test_a_fork_that_has_not_gone_on_only_stops_earlier(bench, cast_of):
    cast = cast_of()
    d = bench.compare(cast, cast.fork(2))
    assert d.first.step == 2
    assert "B is ready there; A went on with Socket-3 (WI-1)" in d.first.why


def test_an_edit_of_a_person_is_named_as_the_cause(bench, cast_of):
    cast = cast_of()
    fork = bench.take(cast.fork(2))
    fork.edit_value("note", "by hand")
    fork.run()
    why = bench.compare(cast, fork).first.why
    assert "changed by a person before it: state.note is not there in A, by hand in B" in why


def test_time_cost_and_id_make_no_difference(bench):
    a, b = (
        bench.cast(
            "x", loadout="Ask", agents={"*": {"Answer": {"text": "so", "usage": {"input": n, "output": n}}}}
        )
        for n in (1, 2)
    )
    a.run()
    b.run()
    d = bench.compare(a, b)
    assert not d
    assert [one.tokens for one in d.usage] == [2, 4]


def test_casts_are_named_by_reference_and_the_current_one_stays(bench, cast_of):
    a, b = cast_of(), cast_of(1)
    assert bench.compare(a.id, "-1").first.step == 3
    assert bench.compare(bench.casts()[1], b.run_dir).first.step == 3
    assert bench.current is b


def test_two_steps_are_laid_beside_one_another(bench, cast_of):
    cast = cast_of(1)
    d = bench.compare(cast.at_step(3), cast.at_step(5))
    assert (d.first.a, d.first.b) == ("Socket-2", "Socket-4")
    assert [one.path for one in d.answer] == ["satisfied"]
    assert "follow-up" in bench.compare(cast.at_step(2), cast.at_step(4)).prompt


def test_things_of_two_kinds_are_refused(bench, cast_of):
    with pytest.raises(MateriaError, match="a cast and a loadout cannot be compared"):
        bench.compare(cast_of(), "Ask")


def test_tables_fit_and_what_models_wrote_is_escaped(bench, cast_of):
    d = bench.compare(cast_of(), cast_of(build="<script>alert(1)</script>" * 9))
    assert max(map(len, repr(d).splitlines()[2:])) <= 88
    html = d._repr_mimebundle_()["text/html"]
    assert "<script>" not in html
    assert "time" in html


def test_the_graph_shows_what_only_one_of_them_took(bench, cast_of):
    d = bench.compare(cast_of(), cast_of(1))
    assert "only B" in d.picture.text
    assert "only B" in d.picture.svg
    assert d.routes["Socket-3", 1] in {"A", "B"} or d.routes["Socket-3", 0] in {"A", "B"}


@given(a=st.lists(st.booleans(), max_size=5), b=st.lists(st.booleans(), max_size=5))
def test_a_comparison_with_itself_is_empty_and_both_ways_round_tell_the_same(tmp_path_factory, a, b):
    casts = []
    for verdicts in (a, b):
        refuse = [visit for visit, good in enumerate(verdicts, start=1) if not good]
        cast = start(tmp_path_factory.mktemp("c"), loop_config(), loop_agents(2, refuse))
        cast.run()
        casts.append(cast)
    one, other = (Comparison(x.side, y.side) for x, y in (casts, casts[::-1]))
    assert not Comparison(casts[0].side, casts[0].side)
    assert bool(one) == bool(other)
    assert [(p.a, p.b) for p in one.pairs] == [(p.b, p.a) for p in other.pairs]
    if one:
        assert (one.first.step, one.first.a, one.first.b) == (other.first.step, other.first.b, other.first.a)
