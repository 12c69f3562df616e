"""Test the file tools: limits, binary files, line endings, ambiguous edits and atomic writes."""

from __future__ import annotations

import os
import stat
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from materia_nb.agents.tools import MAX_RESULT_CHARS, file_tools
from materia_nb.agents.tools.file_tools import Toolbox


@pytest.fixture
def box(project):
    return Toolbox(project)


def sparse(path, start: bytes, size: int) -> None:
    """Create a sparse file, whose size is far larger than the disk space that it uses."""
    path.write_bytes(start)
    os.truncate(path, size)


# -- read -------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["one\ntwo\n", "one\ntwo", "\n\n", "ä € 😀\n\tx", "(lines 1-2; the file ends here)"])
def test_small_file_is_returned_unchanged(box, project, text):
    (project / "a.txt").write_text(text)
    result = box.call("read", {"path": "a.txt"})
    assert (result.ok, result.text) == (True, text.removesuffix("\n"))


def test_empty_file_is_reported(box, project):
    (project / "a.txt").touch()
    assert box.call("read", {"path": "a.txt"}).text == "a.txt is empty."


def test_parts_of_a_long_file_combine_into_the_complete_file(box, project):
    lines = [f"line {n}" for n in range(1, 2_501)]
    (project / "a.txt").write_text("\n".join(lines))
    first = box.call("read", {"path": "a.txt", "limit": 400}).text
    assert first == "\n".join([*lines[:400], "(lines 1-400; continue with offset 401)"])
    whole, offset = [], 1
    while offset:
        *part, note = box.call("read", {"path": "a.txt", "offset": offset}).text.split("\n")
        whole += part
        offset = int(note.partition("continue with offset ")[2].rstrip(")") or 0)
    assert note == "(lines 2,001-2,500; the file ends here)"
    assert whole == lines


def test_parts_of_a_file_with_long_lines_combine_into_the_complete_file(box, project):
    lines = [f"{n} " + "x" * 1_500 for n in range(1, 101)]
    (project / "a.txt").write_text("\n".join(lines))
    whole, offset = [], 1
    while offset:
        text = box.call("read", {"path": "a.txt", "offset": offset}).text
        assert len(text) <= MAX_RESULT_CHARS
        *part, note = text.split("\n")
        whole += part
        offset = int(note.partition("continue with offset ")[2].rstrip(")") or 0)
    assert whole == lines


def test_overlong_line_is_truncated_and_its_size_is_reported(box, project):
    (project / "a.txt").write_text("x" * 300_000 + "\nlast\n")
    long, last = box.call("read", {"path": "a.txt"}).text.split("\n")
    assert long == "x" * 2_000 + "… [a line of 300,001 bytes; the rest is omitted]"
    assert last == "last"


def test_offset_beyond_the_end_of_the_file_is_reported(box, project):
    (project / "a.txt").write_text("one\ntwo\n")
    result = box.call("read", {"path": "a.txt", "offset": 3})
    assert (result.ok, result.text) == (False, "a.txt has only 2 lines; line 3 does not exist.")


def test_first_lines_of_a_huge_file_can_be_read(box, project):
    sparse(project / "a.txt", b"one\ntwo\n", 1 << 40)
    result = box.call("read", {"path": "a.txt", "limit": 2})
    assert result.text == "one\ntwo\n(lines 1-2; continue with offset 3)"
    assert "binary (1,099,511,627,776 bytes)" in box.call("read", {"path": "a.txt"}).text


def test_line_beyond_the_scan_limit_is_refused(box, project, monkeypatch):
    monkeypatch.setattr(file_tools, "MAX_SCANNED_BYTES", 1_000)
    (project / "a.txt").write_text("line\n" * 10_000)
    assert "is more than 1,000 bytes into the file" in box.call("read", {"path": "a.txt", "offset": 900}).text
    assert box.call("read", {"path": "a.txt", "limit": 1}).text.startswith("line\n(lines 1-1; continue with offset 2")


@pytest.mark.parametrize("data", [b"\0", b"text\nPK\x03\x04\0\0", "text".encode("utf-16"), b"\x7fELF\0"])
def test_binary_file_is_reported_with_its_size(box, project, data):
    (project / "a.bin").write_bytes(data)
    for tool, args in {"read": {}, "edit": {"old": "a", "new": "b"}}.items():
        result = box.call(tool, {"path": "a.bin", **args})
        assert not result.ok
        assert f"a.bin is binary ({len(data)} bytes)" in result.text
    assert (project / "a.bin").read_bytes() == data


def test_invalid_utf8_and_control_characters_are_escaped(box, project):
    (project / "a.txt").write_bytes(b"caf\xe9 \x1b[31mred\x07\n")
    assert box.call("read", {"path": "a.txt"}).text == "caf\\xe9 \\x1b[31mred\\x07"


@pytest.mark.parametrize("data", [b"a\r\nb\r\n", b"a\r\nb\nc"])
def test_cr_lf_line_endings_are_read_as_lf(box, project, data):
    (project / "a.txt").write_bytes(data)
    assert box.call("read", {"path": "a.txt"}).text == "\n".join(data.decode().split())


def test_non_utf8_file_name_is_escaped(box, project):
    name = b"caf\xe9.txt"
    try:
        (project / os.fsdecode(name)).write_text("in it")
    except OSError:
        pytest.skip("this disk takes UTF-8 names only")
    assert box.call("ls", {}).text == "caf\\xe9.txt (5 bytes)"
    assert box.call("find", {"pattern": "*.txt"}).text == "caf\\xe9.txt"
    assert box.call("grep", {"pattern": "in"}).text == "caf\\xe9.txt:1: in it"
    assert box.call("read", {"path": os.fsdecode(name)}).text == "in it"


# -- ls ---------------------------------------------------------------------------------


def test_directory_listing_is_sorted_and_shows_entry_types(box, project):
    (project / "b.txt").write_text("x" * 1_234)
    (project / "a").mkdir()
    (project / "c").symlink_to("b.txt")
    (project / "new\nline").touch()
    assert box.call("ls", {}).text == "a/\nb.txt (1,234 bytes)\nc -> b.txt\nnew\\nline (0 bytes)"
    assert box.call("ls", {"path": "a"}).text == "(empty)"


def test_long_listing_reports_the_number_of_omitted_entries(box, project, monkeypatch):
    for n in range(1_000):
        (project / f"{n:04} a file with a name that takes some room").touch()
    text = box.call("ls", {}).text
    *shown, note = text.split("\n")
    assert len(text) <= MAX_RESULT_CHARS
    assert note == f"(and {1_000 - len(shown)} more; use find to list names that match a pattern)"
    monkeypatch.setattr(file_tools, "_MAX_ENTRIES", 10)
    assert box.call("ls", {}).text.split("\n")[10:] == ["(and many more; use find to list names that match a pattern)"]


# -- write ------------------------------------------------------------------------------


def test_write_creates_file_and_parent_folders(box, project):
    result = box.call("write", {"path": "a/b/c.txt", "content": "ä\r\n"})
    assert (result.ok, result.text) == (True, "Wrote a/b/c.txt: 4 bytes (new).")
    assert (project / "a" / "b" / "c.txt").read_bytes() == "ä\r\n".encode()


def test_existing_file_is_replaced_and_keeps_its_mode(box, project):
    path = project / "run.sh"
    path.write_text("old one")
    path.chmod(0o750)
    assert box.call("write", {"path": "run.sh", "content": "new"}).text == "Wrote run.sh: 3 bytes (7 bytes before)."
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o750)
    assert [entry.name for entry in project.iterdir()] == ["run.sh"]


def test_writing_a_file_does_not_change_other_hard_links_to_it(box, project, tmp_path):
    (tmp_path / "other.txt").write_text("other")
    os.link(tmp_path / "other.txt", project / "a.txt")
    assert box.call("write", {"path": "a.txt", "content": "new"}).ok
    assert (tmp_path / "other.txt").read_text() == "other"


@pytest.mark.parametrize(
    "content", ["\ud800", "x" * (file_tools.MAX_WRITTEN_BYTES + 1)], ids=["half a pair", "too long"]
)
def test_failed_write_creates_nothing(box, project, content):
    assert not box.call("write", {"path": "a/b.txt", "content": content}).ok
    assert list(project.iterdir()) == []


def test_path_with_a_trailing_slash_is_not_a_file(box, project):
    assert "ends with a slash" in box.call("write", {"path": "a/", "content": ""}).text
    assert list(project.iterdir()) == []


def test_write_protected_file_is_not_changed(box, project):
    (project / "a.txt").write_text("keep")
    (project / "a.txt").chmod(0o444)
    for tool, args in {"write": {"content": "x"}, "edit": {"old": "keep", "new": "x"}}.items():
        assert box.call(tool, {"path": "a.txt", **args}).text == "a.txt is write-protected."
    assert (project / "a.txt").read_text() == "keep"


@pytest.mark.parametrize("tool, args", [("write", {"content": "x"}), ("edit", {"old": "old", "new": "x"})])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=str)
def test_failed_write_leaves_only_the_old_file(box, project, monkeypatch, tool, args, error):
    (project / "a.txt").write_text("old")

    def fail(_):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            box.call(tool, {"path": "a.txt", **args})
    else:
        assert box.call(tool, {"path": "a.txt", **args}).text == "a.txt cannot be used: No space left on device."
    assert [(path.name, path.read_text()) for path in project.iterdir()] == [("a.txt", "old")]


# -- edit -------------------------------------------------------------------------------


def edited(box, project, text: str, old: str, new: str, **more):
    path = project / "a.txt"
    path.write_bytes(text.encode())
    result = box.call("edit", {"path": "a.txt", "old": old, "new": new, **more})
    return result, path.read_bytes().decode()


def test_edit_replaces_the_specified_text(box, project):
    text = "".join(f"{n}\n" for n in range(1, 21))
    result, now = edited(box, project, text, "10\n11\n", "ten\n")
    assert now == text.replace("10\n11\n", "ten\n")
    assert result.text == "Changed a.txt."


@pytest.mark.parametrize(
    "old, said",
    [
        ("x = 1", "`old` occurs 2 times in a.txt: include more of the surrounding lines"),
        ("gone", "`old` does not occur in a.txt: read the file again"),
        ("", "`old` is empty"),
        ("aba", "`old` occurs 2 times"),
    ],
)
def test_text_to_replace_must_occur_exactly_once(box, project, old, said):
    text = "x = 1\nx = 1\nababa\n"
    result, now = edited(box, project, text, old, "y")
    assert not result.ok
    assert said in result.text
    assert now == text


def test_edit_with_all_replaces_every_occurrence(box, project):
    result, now = edited(box, project, "a b a\na\n", "a", "c", all=True)
    assert (result.ok, now) == (True, "c b c\nc\n")
    assert result.text == "Changed a.txt in 3 places."
    assert edited(box, project, "one\n", "one", "two", all=True)[1] == "two\n"
    assert not edited(box, project, "one\n", "gone", "two", all=True)[0].ok


def test_edit_without_a_change_is_refused(box, project):
    result, _ = edited(box, project, "a\n", "a", "a")
    assert (result.ok, result.text) == (False, "`old` and `new` are the same, so there is nothing to change.")


@pytest.mark.parametrize(
    "text, old, new, then",
    [
        ("a\r\nb\r\nc\r\n", "a\nb", "A\nB\nB", "A\r\nB\r\nB\r\nc\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "x\r\ny\nz", "x\r\ny\r\nz\r\n"),
        ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
        ("a\nb\n", "a", "x\r\ny", "x\r\ny\nb\n"),
        ("a\r\nb\nc\n", "b\nc", "x\ny", "a\r\nx\ny\n"),
        ("a\r\nb\r\nc\n", "a\nb", "A\nB", "A\r\nB\r\nc\n"),
        ("a\r\nb\nc\r\nd\n", "a\nb\nc", "A\nB\nC\nD", "A\r\nB\nC\nD\r\nd\n"),
        ("a\r\nb\nc\n", "a", "x\ny", "x\r\ny\r\nb\nc\n"),
        ("a\nb\r\nc", "c", "x\ny", "a\nb\r\nx\r\ny"),
        ("a\nb\nc\r\n", "a\r\nb", "A\r\nB", "A\r\nB\nc\r\n"),
        ("a\r\nb\r\nc\n", "a\nb\n", "", "c\n"),
        ("a\nb\r\nc\n", "a\n", "a\r\n", "a\r\nb\r\nc\n"),
        ("a\rb\r\nc\n", "b\nc", "x", "a\rx\n"),
        ("\ufeffa\n", "a", "b", "\ufeffb\n"),
    ],
)
def test_edit_preserves_line_endings(box, project, text, old, new, then):
    result, now = edited(box, project, text, old, new)
    assert result.ok
    assert now == then


DEFAULT_LINES = st.lists(st.sampled_from(["a", "b", "ab", ""]), min_size=1, max_size=8)
FEW = st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=2)


@given(lines=DEFAULT_LINES, old=FEW, new=DEFAULT_LINES, end=st.sampled_from(["\n", "\r\n"]), every=st.booleans())
def test_edit_finds_its_text_regardless_of_line_endings(tmp_path_factory, lines, old, new, end, every):
    folder = tmp_path_factory.mktemp("edit")
    plain, old_text, new_text = "\n".join(["z", *lines, "z"]), "\n".join(old), "\n".join(new)
    (folder / "a.txt").write_bytes(plain.replace("\n", end).encode())
    args = {"path": "a.txt", "old": old_text, "new": new_text, "all": every}
    ok = Toolbox(folder).call("edit", args).ok
    places = [n for n in range(len(plain)) if old_text and plain.startswith(old_text, n)]
    assert ok == (old_text != new_text and (len(places) == 1 or (every and len(places) > 1)))
    expected = plain.replace(old_text, new_text) if ok else plain
    assert (folder / "a.txt").read_bytes() == expected.replace("\n", end).encode()


@given(
    lines=DEFAULT_LINES,
    new=DEFAULT_LINES,
    crlf=st.lists(st.booleans(), min_size=8, max_size=8),
    place=st.integers(0, 7),
)
def test_lines_outside_an_edit_keep_their_line_endings(tmp_path_factory, lines, new, crlf, place):
    folder = tmp_path_factory.mktemp("edit")
    place %= len(lines)
    written = [line + ("\r\n" if end else "\n") for line, end in zip(lines, crlf, strict=False)]
    before, here, after = "".join(written[:place]), f"x\n{lines[place]}\ny", "".join(written[place:])
    ends = "\r\n" if crlf[place] else "\n"
    (folder / "a.txt").write_bytes((before + here.replace("\n", ends) + after).encode())
    args = {"path": "a.txt", "old": here, "new": "\n".join(["X", *new])}
    assert Toolbox(folder).call("edit", args).ok
    changed = (folder / "a.txt").read_bytes().decode()
    assert changed == before + ends.join(["X", *new]) + after


def test_non_utf8_file_is_not_edited(box, project):
    (project / "a.txt").write_bytes(b"caf\xe9 one")
    result = box.call("edit", {"path": "a.txt", "old": "one", "new": "two"})
    assert (result.ok, result.text) == (
        False,
        "a.txt is not UTF-8 (byte 3), so it cannot be edited.",
    )
    assert (project / "a.txt").read_bytes() == b"caf\xe9 one"


def test_file_over_the_size_limit_is_not_edited(box, project):
    sparse(project / "a.txt", b"one", 1 << 40)
    assert "1,099,511,627,776 bytes" in box.call("edit", {"path": "a.txt", "old": "one", "new": "two"}).text


def test_edit_cannot_exceed_the_size_limit(box, project):
    result, now = edited(box, project, "a" * 10_000, "a", "b" * 1_000, all=True)
    assert not result.ok
    assert "more than 8,388,608" in result.text
    assert now == "a" * 10_000


def test_edit_of_a_missing_file_creates_neither_file_nor_folder(box, project):
    assert not box.call("edit", {"path": "new/a.txt", "old": "a", "new": "b"}).ok
    assert list(project.iterdir()) == []


def test_stop_request_ends_a_file_read(project):
    """The file is read line by line, so the read ends before the end of the file."""

    class Soon(threading.Event):
        looks = 0

        def is_set(self):
            self.looks += 1
            return self.looks > 3

    (project / "a.txt").write_text("line\n" * 100)
    stop = Soon()
    assert Toolbox(project, stop).call("read", {"path": "a.txt"}).text == "The cast was stopped."
    assert stop.looks < 10


@pytest.mark.parametrize(
    "path", ["a/b/c/../../../../x", "q/" * 101 + "x", "a/b/" + "v" * 256, "kept/a/.git/x", "a/b/.."]
)
def test_refused_write_creates_no_directories(box, project, path):
    (project / "kept").mkdir()
    before = sorted(project.rglob("*"))
    assert not box.call("write", {"path": path, "content": "x"}).ok
    assert sorted(project.rglob("*")) == before


def test_write_creates_only_the_directories_of_its_final_path(box, project):
    assert box.call("write", {"path": "a/../b/c/x", "content": "x"}).ok
    assert [str(path.relative_to(project)) for path in sorted(project.rglob("*"))] == ["b", "b/c", "b/c/x"]


@pytest.mark.parametrize("name", ["v" * 255, "ä" * 127])
def test_file_name_may_be_as_long_as_the_file_system_allows(box, project, name):
    for text in ("one", "two"):
        assert box.call("write", {"path": name, "content": text}).ok
    assert [(path.name, path.read_text()) for path in project.iterdir()] == [(name, "two")]


@pytest.mark.parametrize(
    "before, content, after",
    [
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nc\n", b"a\r\nc\r\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        (b"a\r\nb\n", "a\nc\n", b"a\nc\n"),
        (b"a\n", "a\r\nc\n", b"a\r\nc\n"),
        (b"\0\r\n", "a\n", b"a\n"),
    ],
)
def test_write_keeps_line_endings_and_byte_order_mark(box, project, before, content, after):
    (project / "a.txt").write_bytes(before)
    assert box.call("write", {"path": "a.txt", "content": content}).ok
    assert (project / "a.txt").read_bytes() == after
