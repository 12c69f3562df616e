"""What is offered in place of a name that is not known."""

from __future__ import annotations

from traceback import format_exception

import pytest

from materia_nb.errors import MateriaError, close_match, did_you_mean
from materia_nb.loadout import check_config
from materia_nb.loadout.report import LoadoutError

VERBS = ["cast", "page", "quest", "reply", "resume", "run", "state", "step", "undo", "use"]


@pytest.mark.parametrize(
    "typed, meant",
    [
        ("stpe", "step"),
        ("ues", "use"),
        ("uze", "use"),
        ("rn", "run"),
        ("caste", "cast"),
        ("Undo", "undo"),
        ("resmue", "resume"),
        ("resumption", "resume"),
    ],
)
def test_a_slip_of_the_hand_is_understood(typed, meant):
    assert close_match(typed, VERBS) == meant


@pytest.mark.parametrize("typed", ["pause", "quit", "play", "start", "see", ""])
def test_another_short_word_is_not_taken_for_a_slip(typed):
    assert close_match(typed, VERBS) is None
    assert did_you_mean(typed, VERBS).startswith("choose one of: ")


def test_a_longer_name_is_found_by_a_part_of_it():
    assert close_match("Plan-Build", ["Plan-Build-Eval", "Full-Auto"]) == "Plan-Build-Eval"


HOSTILE = "\x1b[31m\u202eab\nFAKE LINE\u2028FAKE"


def test_the_text_of_an_error_has_no_line_and_no_control_of_a_name_in_it(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-canary-0123456789")
    error = MateriaError(
        f"There is no {HOSTILE} sk-canary-0123456789.",
        where=HOSTILE,
        hint=did_you_mean("x", [HOSTILE]),
        more=[f"  - {HOSTILE}"],
    )
    for text in (str(error), "\n".join(error._render_traceback_()), "".join(format_exception(error))):
        assert "sk-canary" not in text
        assert not set(text) & set("\x1b\u202e\u2028")
        assert not [line for line in text.splitlines() if line.startswith("FAKE")]
    assert [line.strip()[:5] for line in str(error).splitlines()] == ["There", "- ␛[3", "at: ␛", "try: "]
    assert "sk-canary" not in repr(error)


def test_problems_of_a_loadout_are_one_line_each():
    config = {
        "loadouts": {"L": {"entry": "S", "sockets": {HOSTILE: {"materia": HOSTILE}, "S": {"materia": "m"}}}}
    }
    report = check_config(config, "L")
    assert len(report.problems) > 1
    for text in (*map(str, report.problems), str(report), str(LoadoutError(report, HOSTILE))):
        assert not set(text) & set("\x1b\u202e\u2028")
        assert not [line for line in text.splitlines() if line.startswith("FAKE")]
