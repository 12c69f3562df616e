"""Test the usage of a cast, grouped by socket, materia or item."""

from __future__ import annotations

import pytest

import cast_helpers as h
from magics_helpers import line, text
from materia_nb.agents.interface import Reply, Usage, UsageEvent
from materia_nb.cast.views.tables import UsageView
from materia_nb.errors import MateriaError


@pytest.fixture
def paid(tmp_path):
    def with_usage(function):
        parameter_names = function.__code__.co_varnames[: function.__code__.co_argcount]
        return lambda turn: Reply(
            function(*(getattr(turn, name, turn) for name in parameter_names)), Usage(10, 5, 0.01)
        )

    agents = {name: with_usage(function) for name, function in h.loop_agents(2, refuse=(1,)).items()}
    cast = h.start(tmp_path, h.loop_config(), agents)
    cast.run()
    yield cast
    cast.close()


def test_usage_by_socket_adds_up_to_the_usage_of_the_cast(paid):
    paid.back(3)
    paid.run()
    for by in (("socket",), ("materia",), ("item",), ("socket", "item")):
        rows = list(paid.usage(*by))
        assert sum(row.usage.tokens for row in rows) == paid.now.usage.tokens
        assert sum(row.visits for row in rows) == len(paid.steps) + sum(map(len, paid.now.abandoned))
        assert sum(row.left.tokens for row in rows) == 15 * sum(map(len, paid.now.abandoned))


def test_usage_of_failed_attempts_is_counted_once(tmp_path):
    def tries(turn):
        turn.report(UsageEvent(Usage(5, 5)))
        return Reply("at last", Usage(1, 2))

    cast = h.start(tmp_path, h.chain_config(1), tries)
    cast.run()
    assert [(row.usage.input, row.usage.output) for row in cast.usage()] == [(6, 7)]
    assert (cast.now.usage.input, cast.now.usage.output) == (6, 7)


def test_usage_is_grouped_by_socket_and_item(paid):
    by_socket = {row.of: (row.visits, row.turns, row.usage.input) for row in paid.usage()}
    assert by_socket[("Socket-3",)] == (3, 3, 30)
    by_item = {row.of[0]: row.visits for row in paid.usage("item")}
    assert sum(by_item.values()) == len(paid.steps)
    assert by_item[""] == 2  # the plan and the end belong to no item
    output = repr(paid.usage())
    assert "total" in output
    assert "USD" in output
    assert "abandoned" not in output


def test_usage_can_be_read_as_a_data_frame(paid):
    pd = pytest.importorskip("pandas")
    frame = paid.usage("socket", "item").frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["tokens_in"].sum() == paid.now.usage.input
    assert list(frame.columns[:2]) == ["socket", "item"]


def test_unknown_group_is_refused_and_a_cast_without_steps_has_no_rows(tmp_path):
    cast = h.start(tmp_path, h.chain_config(1))
    assert repr(cast.usage()) == "no steps yet"
    with pytest.raises(MateriaError, match="grouped by 'sockets'"):
        cast.usage("sockets")
    assert repr(UsageView(("socket",), [], {})) == "no steps yet"
    cast.close()


def test_usage_verb_shows_usage_by_group(shell):
    line(shell, "use Plan-Build-Eval")
    line(shell, "cast a page")
    line(shell, 'reply {"workItems": []}')
    assert "Plan" in text(line(shell, "usage socket,item"))


def test_share_of_each_socket_is_drawn_as_a_bar(paid):
    usage = paid.usage()
    *bars, total = (row[usage.headers.index("share")] for row in usage.rows)
    assert total.end == 1
    assert [bar.end for bar in bars] == [pytest.approx(row.usage.cost / paid.now.usage.cost) for row in usage]
