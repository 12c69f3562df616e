"""Test JSONPath queries over the state and the outputs of a cast."""

from __future__ import annotations

import pytest

from magics_helpers import line, run, text
from materia_nb.errors import MateriaError
from materia_nb.insight.values import MAX_EXPRESSION_CHARS, MAX_VALUES, compile_query


def test_query_is_evaluated_on_every_output(cast):
    cast.run()
    assert [one.value for one in cast.steps.ask("$.workItems[*].title")] == ["a", "b", "c"]
    verdicts = cast.steps.ask("$.satisfied")
    assert (verdicts[0].socket, verdicts[0].item, verdicts[0].value) == ("Socket-3", "WI-1", False)
    assert [one.value for one in cast.steps.ask("satisfied")] == [verdict.value for verdict in verdicts], (
        "dotted paths too"
    )
    assert any(one.value == "built a" for one in cast.steps.ask("$")), "text is asked as text"


def test_query_verbs_show_matches_and_state_values(shell, bench):
    shell.user_ns["wb"] = bench
    line(shell, "cast x")
    run(shell, "%materia run")
    assert "title" not in text(run(shell, "%materia steps ask $.workItems[*].title"))
    assert text(run(shell, "%materia steps ask $.workItems[*].title")).splitlines()[2].split() == [
        "1",
        "Plan",
        "a",
    ]
    assert run(shell, "%materia state $.workItems[*].title").value == ["a", "b", "c"]
    assert run(shell, "%materia state $.workItems[0].title").value == "a"
    assert run(shell, "%materia state \"$.workItems[?(@.title == 'b')].title\"").value == "b"
    assert run(shell, "%materia state workItems.2.title").value == "c"
    assert "nothing found" in text(run(shell, "%materia steps ask $.nothing"))
    with pytest.raises(MateriaError, match="no value at"):
        run(shell, "%materia state $.nothing[*]")


@pytest.mark.parametrize(
    "expression",
    ["$[", "$.a[?(@.b =~ '(a+)+$')]", "$.a.`sub(/(a+)+$/, x)`", "$..a..b", "$." + "a" * MAX_EXPRESSION_CHARS],
)
def test_invalid_or_slow_expression_is_refused(expression):
    with pytest.raises(MateriaError, match="cannot be evaluated") as caught:
        compile_query(expression)
    assert "\n" not in caught.value.what
    assert "$.workItems[*].title" in caught.value.hint


def test_query_of_an_oversized_value_is_refused_immediately():
    with pytest.raises(MateriaError, match="more than"):
        compile_query("$..x")([0] * (MAX_VALUES + 1) * 10)


def test_query_accepts_deep_values_and_unusual_types():
    deep = {}
    for _ in range(5_000):
        deep = {"a": deep}
    assert compile_query("$..x")(deep) == []
    assert compile_query("$.a[?(@.b > 3)]")({"a": [{"b": "x"}, 1, None]}) in ([], [{"b": "x"}])
