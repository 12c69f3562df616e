"""Test that loading and checking a loadout needs few calls, and that cached results are never used for another config."""

from __future__ import annotations

import copy

from call_counts import calls_of
from materia_nb.jsonvalue import frozen
from materia_nb.loadout import check_config

CONFIG = {
    "loadouts": {
        "T": {
            "entry": "Socket-1",
            "sockets": {
                "Socket-1": {
                    "materia": "Do",
                    "parse": "json",
                    "edges": [{"when": "always", "to": "Socket-2"}],
                },
                "Socket-2": {
                    "materia": "Review",
                    "parse": "json",
                    "edges": [
                        {"when": "satisfied", "to": "Socket-3"},
                        {"when": "not_satisfied", "to": "Socket-1", "maxTraversals": 2},
                    ],
                },
                "Socket-3": {"materia": "Do", "edges": [{"when": "always", "to": "end"}]},
            },
        }
    },
    "materia": {
        "Do": {"prompt": "Do {{request}}.", "tools": "none"},
        "Review": {"prompt": "Review {{lastOutput}}.", "tools": "none"},
    },
}


def test_loading_and_checking_three_sockets_stay_within_call_limits(bench):
    bench.load(CONFIG)  # imports what is needed
    assert 0 < calls_of(lambda: bench.load(copy.deepcopy(CONFIG))) <= 1000
    assert 0 < calls_of(bench.check) <= 50
    assert bench.check().ok


def test_check_detects_every_change_of_a_config():
    document = copy.deepcopy(CONFIG)
    assert check_config(document, "T").ok
    document["loadouts"]["T"]["sockets"]["Socket-1"]["materia"] = "Gone"
    assert not check_config(document, "T").ok
    first, second = frozen(copy.deepcopy(CONFIG)), frozen(document)
    for _ in range(2):
        assert check_config(first, "T").ok
        assert not check_config(second, "T").ok
    assert check_config(first, "T").problems is check_config(first, "T").problems
