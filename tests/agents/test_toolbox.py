"""Test the tools as a model uses them: scopes, arguments, limits, and errors, which are always returned as results."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from materia_nb.agents.tools import (
    MAX_RESULT_CHARS,
    TOOLS,
    choose_tools,
    cut_middle,
    escape_controls,
    safe_name,
)
from materia_nb.agents.tools.file_tools import Toolbox
from materia_nb.loadout.topology import TOOL_SCOPES

READ_ONLY = ["read", "grep", "find", "ls"]
CHANGING = ["bash", "edit", "write"]


@pytest.fixture
def box(project):
    (project / "a.txt").write_text("one\ntwo\n")
    return Toolbox(project)


# -- scopes -----------------------------------------------------------------------------


def names(scope):
    tools, unknown = choose_tools(scope)
    return [tool.name for tool in tools], list(unknown)


def test_each_tool_scope_contains_the_expected_tools():
    assert names("none") == ([], [])
    assert names("readOnly") == (READ_ONLY, [])
    assert names("coding") == ([*READ_ONLY, *CHANGING], [])


def test_every_tool_scope_of_the_config_is_known():
    assert [names(scope)[1] for scope in TOOL_SCOPES] == [[], [], []]


def test_tool_names_keep_their_order_and_unknown_names_are_listed():
    assert names(("write", "web", "read", "write", "readOnly")) == (["write", "read"], ["web", "readOnly"])
    assert names("everything") == ([], ["everything"])


def test_tools_with_side_effects_need_approval():
    assert [tool.name for tool in choose_tools("coding")[0] if tool.has_side_effects] == CHANGING


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_tool_parameters_are_closed_schemas_with_descriptions(tool):
    schema = tool.parameters
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert set(schema["required"]) <= set(schema["properties"])
    assert all(one["description"] and one["type"] for one in schema["properties"].values())
    assert tool.description


# -- arguments --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, args, said",
    [
        ("read", {}, "path: Field required"),
        ("read", {"path": None}, "path: Input should be a valid string"),
        ("read", {"path": 3}, "path: Input should be a valid string"),
        ("read", {"path": ["a.txt"]}, "path: Input should be a valid string"),
        ("read", {"path": {"a": 1}}, "path: Input should be a valid string"),
        ("read", {"path": "a.txt", "offset": "1"}, "offset: Input should be a valid number"),
        ("read", {"path": "a.txt", "offset": True}, "offset: Input should be a valid number"),
        ("read", {"path": "a.txt", "offset": 1.5}, "offset: Input should be a multiple of 1"),
        ("read", {"path": "a.txt", "offset": float("nan")}, "offset: Input should be a finite number"),
        ("read", {"path": "a.txt", "offset": 0}, "offset: Input should be greater than or equal to 1"),
        ("read", {"path": "a.txt", "limit": 10**10}, "limit: Input should be less than or equal to 1000000000"),
        ("read", {"path": "a.txt", "limit": 10**400}, "limit: Input should be a valid number"),
        (
            "read",
            {"file_path": "a.txt"},
            "file_path: Extra inputs are not permitted. The arguments are path, offset (optional), limit (optional).",
        ),
        ("read", {"path": "a.txt", "x\0y": 1}, r"x\x00y: Extra inputs are not permitted"),
        ("grep", {"pattern": "a", "ignore_case": 1}, "ignore_case: Input should be a valid boolean"),
        ("bash", {"command": "true", "timeout_s": 0}, "timeout_s: Input should be greater than 0"),
        ("bash", {"command": "true", "timeout_s": 1e9}, "timeout_s: Input should be less than or equal to 3600"),
        ("bash", {"command": "true", "timeout_s": float("inf")}, "timeout_s: Input should be a finite number"),
        ("write", {"path": "b.txt"}, "content: Field required"),
        ("read", ["a.txt"], "the arguments: Input should be a valid dictionary"),
        ("raed", {}, "The tool 'raed' does not exist: did you mean 'read'?"),
        ("", {}, "The tool '' does not exist"),
    ],
)
def test_invalid_arguments_are_explained(box, project, name, args, said):
    result = box.call(name, args)
    assert not result.ok
    assert said in result.text
    assert sorted(path.name for path in project.iterdir()) == ["a.txt"]


def test_all_invalid_arguments_are_reported_together(box):
    text = box.call("edit", {"path": 1, "with": "x"}).text
    assert all(part in text for part in ("path: Input", "with: Extra", "old: Field required", "new: Field required"))


def test_optional_argument_may_be_null_and_integer_may_be_written_as_float(box):
    assert box.call("read", {"path": "a.txt", "offset": None, "limit": 1.0}).text.startswith(
        "one\n(lines 1-1; continue with offset 2"
    )


# -- text -------------------------------------------------------------------------------


def test_control_characters_are_escaped_and_line_endings_are_kept():
    assert (
        escape_controls("a\tb\nc\r\nd\re\x1b[31m\x00\x7f\x9b\ud800") == "a\tb\nc\nd\\re\\x1b[31m\\x00\\x7f\\x9b\\ud800"
    )
    assert escape_controls(b"caf\xe9".decode(errors="surrogateescape")) == "caf\\xe9"
    assert safe_name("a\nb\tc") == "a\\nb\\tc"
    assert len(safe_name("x" * 10_000)) < 300


@given(st.text(st.characters(codec=None)))
def test_escaped_text_has_no_control_characters(text):
    made = escape_controls(text)
    assert all(sign in "\n\t" or (sign >= " " and not "\x7f" <= sign <= "\x9f") for sign in made)
    made.encode()


def test_long_text_is_truncated_in_the_middle_with_the_number_of_omitted_characters():
    text = "first " + "x" * 100_000 + " last"
    short = cut_middle(text)
    assert len(short) <= MAX_RESULT_CHARS
    assert short.startswith("first x")
    assert short.endswith("x last")
    left = int(short.partition("[... ")[2].partition(" ")[0].replace(",", ""))
    assert left + len(short.replace(f"\n[... {left:,} characters left out ...]\n", "")) == len(text)
    assert cut_middle("x" * MAX_RESULT_CHARS) == "x" * MAX_RESULT_CHARS


def test_huge_tool_name_is_shortened_in_the_error(box):
    for name, args in [("x" * 10**6, {}), ("read", {"path": "x" * 10**6}), ("read", {"x" * 10**6: 1})]:
        result = box.call(name, args)
        assert not result.ok
        assert len(result.text) < 1_000


# -- the door ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", TOOLS)
def test_no_tool_runs_after_the_cast_has_been_stopped(project, name):
    (project / "a.txt").write_text("a")
    stop = threading.Event()
    stop.set()
    given = {"path": "a.txt", "pattern": "a", "content": "b", "old": "a", "new": "b", "command": "touch b"}
    args = {key: given[key] for key in TOOLS[name].parameters["required"]}
    result = Toolbox(project, stop).call(name, args)
    assert (result.ok, result.text) == (False, "The cast was stopped.")
    assert [(path.name, path.read_text()) for path in project.iterdir()] == [("a.txt", "a")]


def test_missing_project_directory_is_reported(tmp_path):
    box = Toolbox(tmp_path / "gone")
    for name, args in [("ls", {}), ("find", {"pattern": "*"}), ("bash", {"command": "true"})]:
        assert not box.call(name, args).ok


def test_concurrent_edits_of_one_file_are_all_applied(project):
    (project / "a.txt").write_text("".join(f"<{n}>\n" for n in range(40)))
    box, found = Toolbox(project), []

    def change(n):
        found.append(box.call("edit", {"path": "a.txt", "old": f"<{n}>", "new": f"[{n}]"}).ok)

    threads = [threading.Thread(target=change, args=(n,)) for n in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 40
    assert (project / "a.txt").read_text() == "".join(f"[{n}]\n" for n in range(40))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
COMMANDS = st.sampled_from(["", "\0", "\ud800", "true " + "x" * 200_000, "exit 3", "(", 5, None])


@st.composite
def calls(draw):
    """Draw arguments for a tool: usually valid names, values of any type, and commands from a fixed list."""
    name = draw(st.sampled_from([*TOOLS, "other"]))
    known = TOOLS[name].parameters["properties"] if name in TOOLS else {}
    keys = draw(st.lists(st.sampled_from([*known, "other"]), unique=True))
    texts = st.text(st.characters(codec=None)) | st.sampled_from(["a.txt", "(", "**/*", "[", "one"])
    args = {key: draw(texts | ANYTHING) for key in keys if key != "command"}
    return name, {**args, "command": draw(COMMANDS)} if "command" in keys else args


@settings(max_examples=60)
@given(call=calls())
def test_tool_call_returns_a_result_for_any_arguments(tmp_path_factory, call):
    folder = tmp_path_factory.mktemp("any")
    (folder / "a.txt").write_text("one\n")
    result = Toolbox(folder).call(*call)
    assert len(result.text) <= MAX_RESULT_CHARS
    assert escape_controls(result.text) == result.text
