"""Test config files: strict parsing, errors with a location, and unchanged round trips (R28)."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadout_samples import BROKEN
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import equal_json
from materia_nb.loadout import read_config, read_text, write_config
from materia_nb.loadout.config_files import line_of


def fault(text, format_=None):
    with pytest.raises(MateriaError) as caught:
        read_text(text, format_, where="cell")
    assert caught.value.kind == "config"
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    "name, text",
    [
        ("a.json", '{"a": [1, 2.5, null, true, "x"]}'),
        ("a.JSON", '\ufeff{"a": [1, 2.5, null, true, "x"]}'),
        ("a.jsonc", '// note\n{"a": [1, 2.5, null, true, "x",], /* so */}'),
        ("a.yaml", "a: [1, 2.5, null, true, x]\n"),
        ("a.yml", "# note\na:\n- 1\n- 2.5\n-\n- true\n- x\n"),
    ],
)
def test_format_is_inferred_from_the_file_suffix(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert read_config(path) == {"a": [1, 2.5, None, True, "x"]}


@pytest.mark.parametrize(
    "text, document",
    [
        ('{"a": 1}', {"a": 1}),
        ('\n  {"a": 1, // one\n}', {"a": 1}),
        ('// one\n{"a": 1}', {"a": 1}),
        ("a: 1", {"a": 1}),
        ("- 1", [1]),
        ("", None),
    ],
)
def test_format_of_text_is_detected(text, document):
    assert read_text(text) == document


def test_words_such_as_yes_and_on_remain_text_in_yaml():
    assert read_text("{when: on, a: yes, b: off, c: 'no', d: 12:30, e: 010}", "yaml") == {
        "when": "on",
        "a": "yes",
        "b": "off",
        "c": "no",
        "d": "12:30",
        "e": 10,
    }


@pytest.mark.parametrize(
    "text, place, hint",
    [
        ('{"a": 1,}', "cell:1:8" if sys.version_info >= (3, 13) else "cell:1:9", "comma"),
        ('{"a": 1 // x\n}', "cell:1:9", "jsonc"),
        ("{'a': 1}", "cell:1:2", "double quotes"),
        ('{\n  "a": 1\n  "b": 2}', "cell:3:3", "comma"),
        ('{"a": [1, 2', "cell:1:12", "bracket"),
        ('{"a": 1} x', "cell:1:10", "remove the text after the first value"),
        ("", "cell:1:1", "empty"),
        ('{"a": NaN}', "cell", "number"),
        ('{"a": 1e999}', "cell", "number"),
        ('{"a": ' + "1" * 5000 + "}", "cell", "number"),
        ("[" * 100_000, "cell", "levels"),
        ("[" * 600 + "]" * 600, "cell", "levels"),
    ],
)
def test_json_errors_have_a_position_and_advice(text, place, hint):
    error = fault(text, "json")
    assert error.where == place
    assert hint in error.hint


def test_field_named_comment_is_not_a_comment():
    assert fault("{comment: 1}", "json").hint == 'put comment in double quotes: "comment"'


@pytest.mark.parametrize(
    "text, path",
    [
        ('{"loadouts": {"T": {"sockets": {"S": 1, "S": 2}}}}', "loadouts.T.sockets"),
        ('{"a": [0, {"x": 1, "x": 1}]}', "a[1]"),
        ('{"a": 1, "a": 2}', "the config"),
    ],
)
@pytest.mark.parametrize("format_", ["json", "jsonc"])
def test_duplicate_key_is_refused_with_its_path(text, path, format_):
    error = fault(text, format_)
    assert "twice" in error.what
    assert path in error.what


def test_duplicate_key_error_points_at_the_second_key():
    assert fault('{\n "a": 1,\n "a": 2}', "json").where == "cell:3:2"


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2} // x', '{"a": NaN} // x', "{a: 1}", '{"a": 1', '{"a": [1}', "{'a': 'x}"]
)
def test_errors_in_json_with_comments_have_positions(text):
    fault(text, "jsonc")


@pytest.mark.parametrize(
    "text, what",
    [
        ("a: 2024-01-01", "a is a date"),
        ("a: {b: [2024-01-01T10:00:00Z]}", "a.b[0] is a datetime"),
        ("a: !!binary aGk=", "a is a bytes"),
        ("a: !!set {x, y}", "a is a set"),
        ("a: .inf", "a is inf"),
        ("a: .nan", "a is nan"),
        ("1: x", "the key 1"),
        ("[1, 2]: x", "the key"),
        ("a: 1\na: 2", "duplicate key"),
        ("a: [1\nb: 2", "expected"),
        ("a: !!python/object:os.system {}", "tag"),
        ("--- 1\n--- 2", "another document"),
        ("a: &x [*x]", "too deeply"),
        ("a: 2024-99-99", "month"),
        ("\x01", "character"),
        ("*nobody", "alias"),
    ],
)
def test_yaml_errors_have_positions(text, what):
    error = fault(text, "yaml")
    assert what.lower() in error.what.lower()


def _lists(width, depth):
    repeat = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, depth)]
    return "\n".join(["a0: &a0 [" + "x, " * width + "]", *repeat])


@pytest.mark.parametrize(
    "text, reason",
    [
        (_lists(10, 9), "more than 200,000 values"),
        (_lists(400, 3), "more than 200,000 values"),
        (
            "a0: &a0 {k: 1}\n" + "\n".join(f"a{n}: &a{n} {{b: *a{n - 1}, c: *a{n - 1}}}" for n in range(1, 60)),
            "values",
        ),
        ("a: &a " + "x" * 70_000 + "\nb: [" + "*a, " * 10_000 + "]", "more than 50,000,000 characters"),
        ("a: &a {b: [*a]}", "nested too deeply"),
        ("a: " + "[" * 600 + "]" * 600, "nested too deeply"),
        ("- " * 20_000, "nested too deeply"),
        ("? " * 20_000, "nested too deeply"),
    ],
    ids=["lists", "wide", "objects", "text", "cycle", "flow", "block", "key-blocks"],
)
def test_yaml_bomb_is_refused_in_bounded_memory(text, reason):
    tracemalloc.start()
    assert reason in fault(text, "yaml").what
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert memory < 120_000_000


@pytest.mark.parametrize("text, key", [(":", "None"), ("~: 1", "None"), ("1: a", "1"), ("true: a", "True")])
def test_yaml_error_names_a_key_that_is_not_text(text, key):
    assert f"the key {key} in" in fault(text, "yaml").what


def test_yaml_aliases_of_a_reasonable_size_are_accepted():
    assert read_text("a: &a [1]\nb: [*a, *a]", "yaml") == {"a": [1], "b": [[1], [1]]}


@given(st.text(), st.sampled_from([None, "json", "jsonc", "yaml"]))
def test_any_text_is_parsed_or_refused_with_a_materia_error(text, format_):
    try:
        document = read_text(text, format_)
    except MateriaError:
        return
    json.dumps(document, allow_nan=False)


_documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), _documents))
def test_config_is_unchanged_by_a_round_trip_r28(tmp_path_factory, document):
    path = tmp_path_factory.mktemp("written") / "c.json"
    write_config(path, document)
    again = read_config(path)
    assert equal_json(again, document)
    assert json.dumps(again) == json.dumps(document)  # order and spelling too


def test_round_trip_keeps_unknown_fields_order_and_spelling_r28(tmp_path):
    text = '{\n  "zebra": 1.0,\n  "loadouts": {\n    "é": {\n      "later": [\n        1e-07\n      ]\n    }\n  },\n  "a": -0.0\n}\n'
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text(text, encoding="utf-8")
    write_config(second, read_config(first))
    assert second.read_text(encoding="utf-8") == text


def test_lone_surrogate_is_unchanged_by_a_round_trip(tmp_path):
    path = tmp_path / "c.json"
    path.write_text('{"a": "\\ud800"}', encoding="utf-8")
    write_config(path, read_config(path))
    assert read_config(path) == {"a": "\ud800"}


def test_failed_write_leaves_only_the_old_file(tmp_path):
    path = tmp_path / "c.json"
    write_config(path, {"a": 1})
    with pytest.raises(MateriaError, match="not JSON"):
        write_config(path, {"a": float("nan")})
    with pytest.raises(MateriaError, match="not JSON"):
        write_config(path, {"a": object()})
    assert read_config(path) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.json"]


def test_interrupted_write_leaves_only_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "c.json"
    write_config(path, {"a": 1})

    def interrupted(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_config(path, {"a": 2})
    assert read_config(path) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.json"]


def test_writing_follows_links_and_keeps_permissions(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    write_config(real, {})
    real.chmod(0o640)
    link.symlink_to(real)
    write_config(link, {"a": 1})
    assert link.is_symlink()
    assert read_config(real) == {"a": 1}
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_configs_are_not_written_as_yaml(tmp_path):
    with pytest.raises(MateriaError) as caught:
        write_config(tmp_path / "c.yaml", {})
    assert "c.json" in caught.value.hint


def test_unreadable_files_are_refused(tmp_path):
    (tmp_path / "hello.json").write_text("{}")
    (tmp_path / "note.txt").write_text("{}")
    (tmp_path / "latin.json").write_bytes(b'{\n"a": "\xe9"}')
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    for name, what, hint in [
        ("helo.json", "does not exist", "'hello.json'"),
        ("hello", "does not exist", "'hello.json'"),
        ("nowhere/hello.json", "does not exist", "not a readable directory"),
        ("note.txt", "unknown extension", "rename"),
        ("latin.json", "UTF-8", "UTF-8"),
        ("folder.json", "directory", "config files"),
        ("pipe.json", "plain file", "config file"),
        ("hello.json/x.json", "cannot be read", "path"),
        ("nul\0.json", "file name", "config file"),
        ("~nobody-of-that-name/x.json", "home", "full path"),
    ]:
        with pytest.raises(MateriaError) as caught:
            read_config(name if name.startswith("~") else tmp_path / name)
        assert what in caught.value.what, name
        assert hint in caught.value.hint, name
        assert caught.value.where
    assert ":2" in _where(tmp_path / "latin.json")


def _where(path):
    with pytest.raises(MateriaError) as caught:
        read_config(path)
    return caught.value.where


def test_yaml_merge_keys_are_refused_before_they_are_expanded():
    lines = ["a0: &a0 {k: v}", *(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 40))]
    error = fault("\n".join(lines), "yaml")
    assert "merge key" in error.what
    assert error.where == "cell:2:10"
    assert read_text("'<<': x", "yaml") == {"<<": "x"}


@pytest.mark.parametrize(
    "text",
    [
        '{"' + "k" * 500_000 + '": [' + "1," * 250_000 + "1]}",
        "// a comment\n[" + "[]," * 300_000 + "[],]",
        "[" * 400 + '"' + "\\\\" * 400_000 + '"' + "]" * 400,
        '"' + '\\"' * 500_000,
        "/*" * 500_000,
        "[1" + ", " * 300_000 + "]",
        "- a\n" * 250_000,
    ],
    ids=["long-key", "empties", "deep", "open-string", "open-comments", "commas", "yaml"],
)
@pytest.mark.parametrize("format_", ["json", "jsonc", "yaml"])
def test_megabyte_of_text_is_parsed_or_refused_quickly(text, format_):
    began = time.process_time()
    with suppress(MateriaError):
        read_text(text, format_)
    assert time.process_time() - began < 5


def test_memory_for_paths_of_long_keys_is_limited():
    text = '{"' + "k" * 50_000 + '": [' + "1," * 25_000 + "1]}"
    tracemalloc.start()
    read_text(text, "json")
    assert tracemalloc.get_traced_memory()[1] < 100 * len(text)
    tracemalloc.stop()


def test_comments_of_any_length_do_not_shift_error_positions():
    text = "{ // first\n" + "/* x */\n" * 20_000 + '"a": "// no comment", /* , */ "b": [1, ], }'
    assert read_text(text, "jsonc") == {"a": "// no comment", "b": [1]}
    assert fault("// x\n" * 20_000 + '{"a": nothing}', "jsonc").where == "cell:20001:7"


def test_surrogate_pairs_are_joined_as_in_json():
    escaped = r'{"a": "\ud83d\udc69", "\ud83d\udc69": ["\ud83d"]}'
    document = {"a": "\U0001f469", "\U0001f469": ["\ud83d"]}
    assert [read_text(escaped, format_) for format_ in ("json", "yaml")] == [document, document]


AS_YAML = """\
# a comment
loadouts:
  "A.B":
    entry: Socket-1
    sockets:
      Socket-1:
        materia: Say
        edges:
          - when: always
            to: Sockt-2
"""


@pytest.mark.parametrize(
    "text, source, loadout, line, left",
    [
        (BROKEN, "Socket-1.edges[0].to", "Bad", 10, 0),
        (BROKEN, "Socket-1.edges[0].maxTraversals", "Bad", 10, len("maxTraversals")),
        (BROKEN, "Socket-9", "Bad", 6, len("Socket-9")),
        (BROKEN, "materia.Say.prompt", None, 19, 0),
        (BROKEN, "materia.Say.prompt", "Bad", 19, 0),
        (BROKEN, "limits", None, 1, len("limits")),
        (AS_YAML, "Socket-1.edges[0].to", "A.B", 10, 0),
        (
            '// c\n{\n\t/* d */ "limits": {\n\t\t"maxSocketVisits": 1,\n},\n}',
            "limits.maxSocketVisits",
            None,
            4,
            0,
        ),
        ("[", "limits", None, 1, len("limits")),
        ("a: " + "x" * 2**21, "a", None, 1, 1),
        (AS_YAML, "Socket-1.edges[1].to", "A.B", 8, len("[1].to")),
    ],
)
def test_finding_has_a_line_number(text, source, loadout, line, left):
    assert line_of(text, source, loadout) == (line, left)


@pytest.mark.parametrize(
    "text, place",
    [
        ('{"a": 1, "a": 2}', ":1:10"),
        ('{"b": 0,\n "a": 1,\n  "a" : 2}', ":3:3"),
        ('{"a": 1,\n"a": {"a": 2}}', ""),
        ('{"a": {"b": 1}, "c": {"b": 2, "b": 3}}', ""),
        ('{"x": "\\"a\\": ", "a": 1, "a": 2}', ":1:26"),
    ],
)
def test_finding_about_a_duplicate_key_points_at_its_second_occurrence(text, place):
    assert fault(text, "json").where == f"cell{place}"
