"""Test suggestions for unknown names, and the escaping of names in errors."""

from __future__ import annotations

from traceback import format_exception

import pytest

from materia_nb.errors import (
    MateriaError,
    close_match,
    deceptive_signs,
    did_you_mean,
    signs_warning,
    with_visible_signs,
)
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
def test_error_for_a_misspelt_name_suggests_a_similar_name(typed, meant):
    assert close_match(typed, VERBS) == meant


@pytest.mark.parametrize("typed", ["pause", "quit", "play", "start", "see", ""])
def test_short_word_without_a_similar_name_gets_no_suggestion(typed):
    assert close_match(typed, VERBS) is None
    assert did_you_mean(typed, VERBS).startswith("choose one of: ")


def test_name_that_contains_a_known_name_gets_a_suggestion():
    assert close_match("Plan-Build", ["Plan-Build-Eval", "Full-Auto"]) == "Plan-Build-Eval"


HOSTILE = "\x1b[31m\u202eab\nFAKE LINE\u2028FAKE"


def test_names_in_errors_have_no_line_breaks_or_control_characters(monkeypatch):
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


def test_each_problem_of_a_loadout_is_listed_on_one_line():
    config = {"loadouts": {"L": {"entry": "S", "sockets": {HOSTILE: {"materia": HOSTILE}, "S": {"materia": "m"}}}}}
    report = check_config(config, "L")
    assert len(report.problems) > 1
    for text in (*map(str, report.problems), str(report), str(LoadoutError(report, HOSTILE))):
        assert not set(text) & set("\x1b\u202e\u2028")
        assert not [line for line in text.splitlines() if line.startswith("FAKE")]


@pytest.mark.parametrize(
    "text, shown",
    [
        ("rm\u200b -rf x", "rm[U+200B] -rf x"),
        ("rm\u00a0-rf x", "rm[U+00A0]-rf x"),
        ("a\u2028b", "a[U+2028]b"),
        ("echo \u202ecba", "echo [U+202E]cba"),
        ("\u0441at x", "[U+0441]at x"),
        ("cat \u0441\u0430\u0440", "cat [U+0441][U+0430][U+0440]"),
        ("\uff52m x", "[U+FF52]m x"),
        ("rm \u2013rf x", "rm [U+2013]rf x"),
        ("a\u2215b", "a[U+2215]b"),
        ("a\U000e0041b", "a[U+E0041]b"),
    ],
)
def test_deceptive_characters_are_made_visible(text, shown):
    assert with_visible_signs(text) == shown
    assert [f"U+{ord(sign):04X}" in signs_warning(text) for sign in deceptive_signs(text)]
    assert deceptive_signs(with_visible_signs(text)) == frozenset()


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf x",
        "git commit -m 'Prüfung \u2013 größer'",
        "cat файлы.txt",
        "echo 日本語 ❤️ … é",
        "cat שלום.txt",
        "λ → ½",
        "",
    ],
)
def test_words_of_any_language_are_unchanged(text):
    assert with_visible_signs(text) == text
    assert signs_warning(text) == ""


@pytest.mark.parametrize("name, known", [("Pru\u0308fer", "Pr\u00fcfer"), ("\u0410gent", "\u0430gent")])
def test_lookalike_names_are_distinguishable_in_an_error(name, known):
    assert did_you_mean(name, [known]) == f"did you mean {known!r}? The two names differ: {name!a} and {known!a}"
    assert did_you_mean("Prufer", ["Pruefer"]) == "did you mean 'Pruefer'?"
