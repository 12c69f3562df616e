"""Where ways lead, beside what trying out every way finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from materia_nb.loadout.topology import cycles_in, reachable_from, reversed_edges, strong_components

GRAPHS = st.integers(1, 6).flatmap(
    lambda size: st.fixed_dictionaries({one: st.sets(st.integers(0, size - 1)) for one in range(size)})
)


def leads(ways, start):
    """All that a way of one or more steps leads to, by taking each step as often as there are ends."""
    found = set(ways[start])
    for _ in ways:
        found |= {to for one in found for to in ways[one]}
    return found


@given(GRAPHS)
def test_knots_and_rounds_are_what_leads_to_one_another(ways):
    led = {one: leads(ways, one) for one in ways}
    found = strong_components(ways)
    assert sorted(one for knot in found for one in knot) == sorted(ways)
    together = {one: place for place, knot in enumerate(found) for one in knot}
    for one in ways:
        assert reachable_from([one], ways) == led[one] | {one}
        assert reachable_from([one], reversed_edges(ways)) == {
            other for other in ways if one in led[other]
        } | {one}
        assert (one in cycles_in(ways)) == (one in led[one])
        for other in ways:
            assert (together[one] == together[other]) == (
                one == other or (other in led[one] and one in led[other])
            )
            assert other not in led[one] or together[other] <= together[one], "the last ones come first"


def test_what_has_no_ways_of_its_own_leads_nowhere():
    ways = {"a": ["b", "end"], "b": ["a"]}
    assert reachable_from(["a"], ways) == {"a", "b", "end"}
    assert reversed_edges(ways) == {"a": {"b"}, "b": {"a"}, "end": {"a"}}
