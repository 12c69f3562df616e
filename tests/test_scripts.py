"""The scripts behind the make targets."""

import pytest

import bootstrap
import chromium

PROJECT = {
    "name": "some-thing",
    "optional-dependencies": {
        "a": ["some-thing[b]", "other[c]>=1"],
        "b": ["some-thing[c,d]"],
        "c": [],
        "d": ["some-thing[a]"],
        "e": [],
    },
}


def test_an_extra_brings_those_that_it_names():
    assert bootstrap.with_implied(["a"], PROJECT) == {"a", "b", "c", "d"}
    assert bootstrap.with_implied(["e"], PROJECT) == {"e"}


def test_an_unknown_extra_is_named():
    with pytest.raises(SystemExit, match="no such extra: x, y"):
        bootstrap.with_implied(["y", "a", "x"], PROJECT)


def test_the_stamp_counts_for_its_project_file_only(tmp_path, monkeypatch):
    stamp = tmp_path / "stamp.json"
    monkeypatch.setattr(bootstrap, "STAMP", stamp)
    assert bootstrap.installed("k") == set(), "no stamp"
    stamp.write_text('{"key": "k", "extras": ["lab"]}')
    assert bootstrap.installed("k") == {"lab"}
    assert bootstrap.installed("changed") == set()
    stamp.write_text('{"key": "k", "ext')
    assert bootstrap.installed("k") == set(), "torn"


@pytest.mark.parametrize("ci, code", [("", 0), ("true", 1)])
def test_without_a_browser_only_ci_fails(ci, code, monkeypatch, capsys):
    monkeypatch.setattr(chromium, "find_chromium", lambda: None)
    monkeypatch.setattr(chromium, "install", lambda: None)
    monkeypatch.setattr(chromium, "driver_starts", lambda: True)
    monkeypatch.setenv("CI", ci)
    assert chromium.main() == code
    assert "NO BROWSER" in capsys.readouterr().err


def test_the_browser_that_was_asked_for_comes_first(monkeypatch):
    monkeypatch.setenv("MATERIA_CHROMIUM", "/opt/mine")
    assert chromium.find_chromium() == "/opt/mine"
