"""Test the algorithms on directed graphs against a brute-force search."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from materia_nb.loadout.topology import cycles_in, reachable_from, reversed_edges, strong_components

GRAPHS = st.integers(1, 6).flatmap(
    lambda size: st.fixed_dictionaries({node: st.sets(st.integers(0, size - 1)) for node in range(size)})
)


def reachable_in_steps(targets, start):
    """Return all nodes that can be reached in at least one step, found by brute force."""
    reached = set(targets[start])
    for _ in targets:
        reached |= {to for node in reached for to in targets[node]}
    return reached


@given(GRAPHS)
def test_strongly_connected_nodes_form_components_and_cycles(targets):
    reached = {node: reachable_in_steps(targets, node) for node in targets}
    components = strong_components(targets)
    assert sorted(node for component in components for node in component) == sorted(targets)
    number = {node: index for index, component in enumerate(components) for node in component}
    for node in targets:
        assert reachable_from([node], targets) == reached[node] | {node}
        sources = {other for other in targets if node in reached[other]} | {node}
        assert reachable_from([node], reversed_edges(targets)) == sources
        assert (node in cycles_in(targets)) == (node in reached[node])
        for other in targets:
            mutual = other in reached[node] and node in reached[other]
            assert (number[node] == number[other]) == (node == other or mutual)
            assert other not in reached[node] or number[other] <= number[node], "the last components come first"


def test_reachable_nodes_and_reversed_edges_are_computed():
    targets = {"a": ["b", "end"], "b": ["a"]}
    assert reachable_from(["a"], targets) == {"a", "b", "end"}
    assert reversed_edges(targets) == {"a": {"b"}, "b": {"a"}, "end": {"a"}}
