"""Test listing casts, which reads only the ends of journals, and finding casts by id or name."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.agents.interface import Reply, Usage
from materia_nb.cast import open_cast, resume_cast
from materia_nb.errors import MateriaError
from materia_nb.store import catalogue
from materia_nb.store.catalogue import Catalogue, find_cast, list_casts
from materia_nb.store.rundir import new_run_dir, recorded_order

RECORDED = Path(__file__).parents[1] / "data" / "recorded-casts"


@pytest.fixture
def root(tmp_path):
    return tmp_path / "casts"


def only(root: Path) -> catalogue.CastEntry:
    (entry,) = list_casts(root)
    return entry


def stages(tmp_path):
    """Yield a cast in each status, together with the status that the list must show."""
    cast = h.start(tmp_path, h.chain_config(2) | {"budget": {"maxTokens": 9}}, lambda: Reply("x", Usage(5, 0)))
    yield cast, "ready"
    cast.step(ask=False)
    yield cast, "waiting"
    cast.step()
    yield cast, "ready"
    cast.abort("no")
    yield cast, "aborted"
    cast.retry(limit=True)
    yield cast, "failed"
    cast.edit.budget(None)
    yield cast, "failed"
    cast.retry(limit=True)
    yield cast, "complete"


def test_status_and_step_count_are_the_same_with_and_without_a_manifest(tmp_path, root):
    for cast, status in stages(tmp_path):
        assert cast.status == status
        for derived in (True, False):
            cast.export.derived_files() if derived else (cast.run_dir / "manifest.json").unlink()
            entry = only(root)
            assert (entry.status, entry.steps) == (status, len(cast.steps)), derived


def test_manifest_older_than_the_journal_is_ignored(tmp_path, root):
    cast = h.start(tmp_path, h.chain_config(3), lambda: "x")
    cast.run(steps=1)
    cast.step()
    os.utime(cast.run_dir / "manifest.json", (2**31, 2**31))  # a copy may give files any time
    assert only(root).steps == 2


def test_list_entry_describes_its_cast(tmp_path, root):
    cast = h.start(tmp_path, h.chain_config(1), lambda: "x", request="make\n  it " + "long " * 100)
    entry = only(root)
    lines = h.lines_of(cast)
    assert (entry.id, entry.path, entry.loadout, entry.ours) == (cast.id, cast.run_dir, "T", True)
    assert entry.request.startswith("make / it long long")
    assert len(entry.request) == 200
    assert (entry.started, entry.last_event) == (catalogue.creation_time(cast.id), lines[-1]["ts"])
    assert lines[0]["ts"] <= entry.started, "the id names the first free millisecond after the start"
    assert entry.locked_by.startswith("this kernel")
    cast.run()
    cast.close()
    entry = only(root)
    assert entry.locked_by is None
    assert entry.last_event == h.lines_of(cast)[-1]["ts"]


def test_casts_are_listed_newest_first_regardless_of_their_names(tmp_path, root):
    root.mkdir()
    for name in ("loop-retry", "foreach-advance"):
        shutil.copytree(RECORDED / name, root / name)
    own_entry = [h.start(tmp_path, h.chain_config(1), request=str(n)).id for n in range(3)]
    starts = {name: h.lines_of(root / name)[0]["ts"] for name in ("loop-retry", "foreach-advance", *own_entry)}
    assert [entry.id for entry in list_casts(root)] == sorted(
        starts, key=lambda name: (starts[name], name), reverse=True
    ), "casts of one millisecond go by their ids"


@pytest.mark.parametrize("name", sorted(p.name for p in RECORDED.iterdir() if p.is_dir()))
def test_recordings_of_the_reference_engine_are_listed(name):
    entry = next(cast for cast in list_casts(RECORDED) if cast.id == name)
    end = h.lines_of(RECORDED / name)[-1]
    assert entry.status == ("complete" if end["data"]["ok"] else "failed")
    request = "go" if name.startswith("not-castable") else "ship the widget"
    assert (entry.ours, entry.loadout, entry.request) == (False, "T", request)
    assert entry.last_event == end["ts"]
    assert entry.steps in {None, len(open_cast(RECORDED / name).steps)}


def test_only_the_beginning_and_end_of_a_journal_are_read(tmp_path, root, monkeypatch):
    cast = h.start(tmp_path, h.chain_config(1), lambda: "x")
    cast.close()
    line = '{"ts":5,"type":"note","data":{"text":"' + "n" * 900 + '"}}\n'
    with (cast.run_dir / "events.jsonl").open("a") as file:
        file.write(line * 5_000)
        file.write('{"ts":6,"type":"socket_start","data":{"socket":"Socket-1","step":77}}\n')
    read = []
    real = Path.open

    def counting(self, *args, **kwargs):
        file = real(self, *args, **kwargs)

        class Counted:
            def __enter__(self):
                return self

            def __exit__(self, *exc):
                file.close()

            def read(self, size=-1):
                content = file.read(size)
                read.append(len(content))
                return content

            def __getattr__(self, name):
                return getattr(file, name)

        return Counted()

    monkeypatch.setattr(Path, "open", counting)
    entry = only(root)
    assert (entry.status, entry.steps, entry.last_event) == ("waiting", 77, 6)
    assert sum(read) < 30_000


def test_long_lines_at_both_ends_of_a_journal_are_read(tmp_path, root):
    cast = h.start(tmp_path, h.chain_config(1), lambda: "x", request="r" * 50_000)
    cast.run()
    with (cast.run_dir / "events.jsonl").open("a") as file:
        file.write(json.dumps({"ts": 9, "type": "cast_end", "data": {"ok": True, "usage": ["u" * 100_000]}}) + "\n")
    entry = only(root)
    assert (entry.status, entry.last_event, len(entry.request)) == ("complete", 9, 200)


BROKEN = {
    "empty": lambda path: (path / "events.jsonl").write_bytes(b""),
    "binary": lambda path: (path / "events.jsonl").write_bytes(os.urandom(50_000)),
    "other": lambda path: (path / "events.jsonl").write_bytes(b'{"type":"socket_start"}\n'),
    "torn": lambda path: (path / "events.jsonl").write_bytes(b'{"ts":1,"type":"cast_st'),
    "folder": lambda path: (path / "events.jsonl").mkdir(),
    "pipe": lambda path: os.mkfifo(path / "events.jsonl"),
    "deep": lambda path: (path / "events.jsonl").write_bytes(b"[" * 100_000),
}


@pytest.mark.parametrize("how", BROKEN)
def test_damaged_run_directories_are_listed_as_broken(tmp_path, root, how):
    broken = root / "2026-01-01T00-00-00-000Z"
    broken.mkdir(parents=True)
    BROKEN[how](broken)
    cast = h.start(tmp_path, h.chain_config(1))
    own_entry, other = list_casts(root)
    assert (own_entry.id, own_entry.status) == (cast.id, "ready")
    assert (other.id, other.status) == (broken.name, "broken")
    assert other.problem
    assert find_cast(root, "latest") == cast.run_dir.resolve()


def test_hostile_fields_do_not_break_the_list(root):
    path = root / "2026-01-01T00-00-00-000Z"
    path.mkdir(parents=True)
    data = {"request": ["x"], "loadout": {"a": 1}, "engine": None}
    lines = [
        {"ts": "soon", "type": "cast_start", "data": data},
        {"ts": True, "type": "cast_end", "data": [1]},
        {"ts": None, "type": "socket_start", "data": {"step": "many"}},
    ]
    (path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (path / "manifest.json").write_text('{\n  "status": "great",\n  "steps": 99,\n  "journalBytes": x\n}')
    entry = only(root)
    assert (entry.status, entry.steps, entry.request, entry.loadout) == ("waiting", 1, None, None)


def test_folders_and_files_that_are_not_casts_are_not_listed(root):
    (root / "notes").mkdir(parents=True)
    (root / ".hidden").mkdir()
    (root / ".hidden" / "events.jsonl").write_text("")
    (root / "2026-01-01T00-00-00-000Z").write_text("a file")
    assert list_casts(root) == []
    assert list_casts(root / "nowhere") == []


def test_cast_is_found_by_id_prefix_or_label(tmp_path, root, monkeypatch):
    casts = [h.start(tmp_path, h.chain_config(1)) for _ in range(3)]
    paths = [cast.run_dir.resolve() for cast in casts]
    assert find_cast(root, "latest") == find_cast(root, " -1 ") == paths[2]
    assert find_cast(root, "-3") == paths[0]
    assert find_cast(root, casts[1].id) == paths[1]
    assert find_cast(root, str(casts[1].run_dir)) == paths[1]
    assert find_cast(root, str(casts[1].run_dir / "events.jsonl")) == paths[1]
    (root / "zebra").mkdir()
    (root / "zebra" / "events.jsonl").write_text("")
    assert find_cast(root, "zeb") == (root / "zebra").resolve()
    monkeypatch.chdir(root)
    assert find_cast(tmp_path / "elsewhere", "zebra") == (root / "zebra").resolve()
    with pytest.raises(MateriaError, match="3 casts begin with '20'") as caught:
        find_cast(root, "20")
    assert casts[2].id in caught.value.hint
    assert caught.value.kind == "ambiguous_cast"


@pytest.mark.parametrize("reference", ["zebr_", "-9", "", "..", "../casts/x", "/etc", "a\0b", "-0", "x" * 5000])
def test_missing_cast_error_suggests_a_next_step(root, reference):
    (root / "zebra").mkdir(parents=True)
    (root / "zebra" / "events.jsonl").write_text("")
    if reference in {"..", "/etc"}:
        cast = find_cast(root, reference)  # a path is a path; opening it says that no cast is there
        with pytest.raises(MateriaError, match="journal cannot be read"):
            open_cast(cast)
        return
    with pytest.raises(MateriaError) as caught:
        find_cast(root, reference)
    assert caught.value.kind == "no_cast"
    assert (caught.value.hint == "did you mean 'zebra'?") is (reference == "zebr_")
    assert caught.value.hint
    if reference == "zebr_":
        assert "zebra" in caught.value.hint


def test_start_time_of_a_fork_is_the_time_when_it_was_forked(tmp_path, root):
    cast = h.start(tmp_path, h.chain_config(2), lambda: "x")
    cast.run()
    between = h.start(tmp_path, h.chain_config(2), lambda: "y")
    fork = cast.fork(1)
    latest, *earlier = list_casts(root)
    assert latest.id == fork.id
    assert latest.started > catalogue.cast_entry(between.run_dir).started >= earlier[-1].started


def test_casts_are_filtered_by_all_criteria(tmp_path):
    def entry(id_, **fields):
        return catalogue.CastEntry(id_, tmp_path / id_, **fields)

    entries = [
        entry("a", name="first", tags=("x", "y"), verdict="good", loadout="T", status="complete"),
        entry("b", tags=("x",), verdict="bad", loadout="T", status="failed", warnings=()),
        entry("c", loadout="U", status="complete", warnings=("odd", "late")),
    ]

    def ids(**expected):
        return "".join(cast.id for cast in catalogue.filter_casts(entries, **expected))

    assert ids() == "abc"
    assert ids(tag="x") == "ab"
    assert ids(tag=("x", "y")) == "a"
    assert ids(name="first") == "a"
    assert ids(verdict="bad") == "b"
    assert ids(loadout="T", status="complete") == "a"
    assert ids(status="complete") == "ac"
    assert [one.outcome for one in entries] == ["complete", "failed", "complete, with warnings: odd, late"]


def test_only_changed_casts_are_read_again(tmp_path, root):
    h.start(tmp_path, h.one_config(), lambda: "done").close()
    known = catalogue.Catalogue(root)
    ((first, count),) = known.read()
    assert (len(first), count) == (1, 1)
    ((again, _),) = known.read()
    assert again[0] is first[0]
    h.start(tmp_path, h.one_config(), lambda: "done").close()
    ((both, _),) = known.read()
    assert len(both) == 2
    assert both[1] is first[0]
    resumed = resume_cast(first[0].path)
    resumed.step()
    resumed.close()
    ((then, _),) = known.read()
    assert [one.status for one in then] == ["ready", "waiting"], "nobody answers here"


def test_r69_latest_cast_is_the_one_most_recently_begun_or_continued(tmp_path, monkeypatch):
    bench = Workbench(tmp_path)
    bench.load({**h.chain_config(2), "artifactDir": "casts"})
    now = [1_700_000_000_000_000_000]
    monkeypatch.setattr("materia_nb.store.rundir.time.time_ns", lambda: now[0])
    monkeypatch.setattr("materia_nb.cast.work.time.time_ns", lambda: now[0])
    ids = []
    for _ in range(3):
        cast = bench.cast("a request")
        ids.append(cast.id)
        cast.close()
        now[0] -= 86_400_000_000_000  # the clock is set back by a day
    assert sorted(ids, reverse=True) == ids
    assert [entry.id for entry in list_casts(bench.casts.root)] == ids[::-1]
    other = Workbench(tmp_path)
    other.load({**h.chain_config(2), "artifactDir": "casts"})
    assert other.open("-1").id == ids[2]
    other.resume(ids[1]).close()
    assert [entry.id for entry in list_casts(bench.casts.root)] == [ids[1], ids[2], ids[0]]
    other.casts.label(ids[0], name="old")
    assert other.open("latest").id == ids[1]
    (entries, _), *_ = Catalogue(bench.casts.root).read()
    assert [entry.id for entry in entries] == [ids[1], ids[2], ids[0]]


@pytest.mark.parametrize("files", [(), ("cast.lock",), ("cast.lock", "config.resolved.json")])
def test_cast_that_was_killed_before_it_began_is_not_listed(tmp_path, root, files):
    killed = root / "2026-01-01T00-00-00-000Z"
    killed.mkdir(parents=True)
    for name in files:
        (killed / name).write_text("{}")
    assert list_casts(root) == []
    (killed / "manifest.json").write_text("{}")
    assert [entry.status for entry in list_casts(root)] == ["broken"]


def _begins_casts(root: Path, count: int) -> None:
    for _ in range(count):
        new_run_dir(root)


def test_casts_started_by_parallel_processes_are_all_recorded(root):
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=_begins_casts, args=(root, 50)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert set(recorded_order(root)) - {""} == {path.name for path in root.glob("2*Z")}
    assert len(recorded_order(root)) == 201


def test_cast_does_not_start_if_it_cannot_be_added_to_the_list_of_casts(root):
    (root / "order.txt").mkdir(parents=True)
    with pytest.raises(MateriaError, match="directory"):
        new_run_dir(root)
    assert list(root.glob("2*Z")) == []
