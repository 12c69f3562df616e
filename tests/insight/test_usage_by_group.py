"""The usage of a cast by socket, materia or item."""

from __future__ import annotations

import pytest

import cast_helpers as h
from magics_helpers import line, text
from materia_nb.agents.interface import Reply, Usage, UsageEvent
from materia_nb.cast.views.tables import SpentView
from materia_nb.errors import MateriaError


@pytest.fixture
def paid(tmp_path):
    def paying(one):
        wanted = one.__code__.co_varnames[: one.__code__.co_argcount]
        return lambda turn: Reply(one(*(getattr(turn, name, turn) for name in wanted)), Usage(10, 5, 0.01))

    agents = {name: paying(one) for name, one in h.loop_agents(2, refuse=(1,)).items()}
    cast = h.start(tmp_path, h.loop_config(), agents)
    cast.run()
    yield cast
    cast.close()


def test_usage_by_socket_adds_up_to_the_usage_of_the_cast(paid):
    paid.back(3)
    paid.run()
    for by in (("socket",), ("materia",), ("item",), ("socket", "item")):
        rows = list(paid.usage(*by))
        assert sum(one.usage.tokens for one in rows) == paid.now.usage.tokens
        assert sum(one.visits for one in rows) == len(paid.steps) + sum(map(len, paid.now.abandoned))
        assert sum(one.left.tokens for one in rows) == 15 * sum(map(len, paid.now.abandoned))


def test_usage_of_failed_tries_is_counted_once(tmp_path):
    def tries(turn):
        turn.tell(UsageEvent(Usage(5, 5)))
        return Reply("at last", Usage(1, 2))

    cast = h.start(tmp_path, h.chain_config(1), tries)
    cast.run()
    assert [(one.usage.input, one.usage.output) for one in cast.usage()] == [(6, 7)]
    assert (cast.now.usage.input, cast.now.usage.output) == (6, 7)


def test_usage_is_grouped_by_socket_and_item(paid):
    by_socket = {one.of: (one.visits, one.turns, one.usage.input) for one in paid.usage()}
    assert by_socket[("Socket-3",)] == (3, 3, 30)
    by_item = {one.of[0]: one.visits for one in paid.usage("item")}
    assert sum(by_item.values()) == len(paid.steps)
    assert by_item[""] == 2  # the plan and the end belong to no item
    shown = repr(paid.usage())
    assert "total" in shown
    assert "USD" in shown
    assert "left behind" not in shown


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
    assert repr(SpentView(("socket",), [])) == "no steps yet"
    cast.close()


def test_usage_verb_shows_the_table(shell):
    line(shell, "use Plan-Build-Eval")
    line(shell, "cast a page")
    line(shell, 'reply {"workItems": []}')
    assert "Socket-1" in text(line(shell, "usage socket,item"))
