"""Store the results, including errors, of reading the files of casts, projects and boards."""

from __future__ import annotations

import errno
import json
import os
import shutil
from contextlib import suppress
from types import SimpleNamespace

import pytest

import cast_helpers as h
import shown_texts
from materia_nb import Workbench
from materia_nb.errors import MateriaError
from materia_nb.store import file_snapshots, files
from materia_nb.store.catalogue import (
    Catalogue,
    cast_entry,
    delete_cast,
    filter_casts,
    find_cast,
    last_events,
    list_casts,
)
from materia_nb.store.design_autosave import change_board, list_drafts, read_board
from materia_nb.store.file_snapshots import FileSnapshots
from materia_nb.store.files import CastLock, FileFormat, disk_errors, json_bytes, lock_owner, to_bytes
from materia_nb.store.journal import Journal, JournalLine, read_journal
from materia_nb.store.opening import check_resumable, verify, with_definition
from materia_nb.store.rundir import (
    RunDir,
    change_context,
    creation_time,
    file_within,
    find_evidence,
    is_cast_id,
    is_item_key,
    manifest_head,
    missing_evidence,
    read_context,
    recorded_journal_end,
    step_names,
)


def results_of(*steps):
    """Return the result or error of each step, which is a tuple of a title and an action."""
    for words, act in steps:
        try:
            gave = act()
        except MateriaError as error:
            yield words, f"{error.kind}: {error}"
        except Exception as error:  # noqa: BLE001 - which one is what is to be stored
            yield words, f"{type(error).__name__}: {error}"
        else:
            yield words, gave if isinstance(gave, str | list | dict) else repr(gave)


def raises(error):
    with disk_errors("/casts/x", "do it"):
        raise error


# -- one file ----------------------------------------------------------------------------------------

FAULTS = [errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.EINVAL, errno.ELOOP, errno.EISDIR, errno.EACCES]
DEEP = json.loads("[" * 900 + "]" * 900)


def test_writes_and_disk_errors_match_the_snapshot(tmp_path):
    own = FileFormat("case", "materia-nb case 1", "make one")
    given = {
        "none.json": None,
        "bad.json": "{",
        "list.json": "[]",
        "other.json": '{"format": "x"}',
        "good.json": '{"format": "materia-nb case 1", "a": 1}',
    }
    root = tmp_path / "casts"
    root.mkdir()
    for name, text in given.items():
        if text is not None:
            (root / name).write_text(text)
    values = (
        [],
        {},
        [1],
        {"a": {"b": [1, {"c": None}], "d": {}}, "e": "ü\u2028"},
        {"half": "\ud800"},
        [["\ud800"]],
        (1, 2),
    )
    steps = [(errno.errorcode[one], lambda one=one: raises(OSError(one, os.strerror(one)))) for one in FAULTS]
    steps += [
        (f"{one!r}", lambda one=one: raises(one))
        for one in (
            OSError("odd"),
            ValueError("embedded null byte"),
            ValueError("other"),
            KeyError("k"),
            "\ud800".encode,
        )
        if isinstance(one, Exception)
    ]
    steps += [("no file name", lambda: raises(UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no")))]
    steps += [
        (f"bytes of {one!r}", lambda one=one: to_bytes(one)) for one in ("a", "a\ud800b", "\ud83d\ude00", 7, None)
    ]
    for value in values:
        steps += [
            (f"json {value!r}", lambda value=value: json_bytes(value)),
            ("indented", lambda value=value: json_bytes(value, indented=True)),
        ]
    # A later Python can indent what is so deep.
    steps += [("deep", lambda: len(b"".join(json_bytes(DEEP, indented=True).split())))]
    names = (*given, "null\0.json", "")
    steps += [(name.replace("\0", "NUL"), lambda name=name: own.read(root / name)) for name in names]
    shown_texts.matches("store-files", results_of(*steps))


def test_project_changes_match_the_snapshot(tmp_path, monkeypatch):
    project = tmp_path / "project"
    casts = project / "casts"
    for name in (
        "a.txt",
        "in/b.txt",
        "in/deep/c.txt",
        ".git/config",
        "node_modules/x/y",
        "__pycache__/z",
        "venv/v",
        "casts/one/events.jsonl",
        ".hidden",
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(name)
    (project / "link").symlink_to(project / "in")
    (project / "file-link").symlink_to(project / "a.txt")
    before = files.read_file_stamps(project, casts)
    (project / "a.txt").write_text("another")
    (project / "in/new.txt").write_text("new")
    (project / "in/b.txt").unlink()
    after = files.read_file_stamps(project, casts)
    shown = [
        ("seen", sorted(before)),
        ("then", sorted(after)),
        ("changed", files.changed_files(before, after)),
        ("unknown", files.changed_files(None, after)),
        ("unknown too", files.changed_files(before, None)),
        ("nowhere", files.read_file_stamps(tmp_path / "nowhere", casts)),
    ]
    for most in range(10, 18):
        monkeypatch.setattr(files, "MAX_PROJECT_FILES", most)
        seen = files.read_file_stamps(project, casts)
        shown.append((f"at most {most}", seen if seen is None else str(len(seen))))
    monkeypatch.setattr(files, "MAX_CHANGED_FILES", 1)
    shown.append(("named", files.changed_files({}, before)))
    shown_texts.matches("store-project", shown)


def test_lock_and_journal_match_the_snapshot(tmp_path):
    run = tmp_path / "casts" / "one"
    run.mkdir(parents=True)
    line = JournalLine(1, "one", {"n": 1})
    shown = list(
        results_of(
            ("nobody", lambda: lock_owner(run)),
            ("nowhere", lambda: lock_owner(tmp_path / "none")),
            ("no journal", lambda: read_journal(run / "events.jsonl")),
        )
    )
    journal = Journal(run / "events.jsonl", CastLock(run))
    odd = {"set": {1}, "key": {(1, 2): 3}, "half": "\ud800", "number": float("nan"), "deep": DEEP * 3}
    shown += results_of(
        ("ours", lambda: lock_owner(run)),
        ("twice", lambda: CastLock(run)),
        *(
            (f"append {name}", lambda value=value: journal.append([JournalLine(1, "odd", {"v": value})]))
            for name, value in odd.items()
        ),
        (
            "labelled",
            lambda: journal.append([JournalLine(2, "two", {}, status="ready", steps=3, label={"name": "n"}), line]),
        ),
        ("mark", lambda: journal.end.size),
        ("rest", journal.release),
        ("released", lambda: journal.is_released),
        ("nobody now", lambda: lock_owner(run)),
        ("wake", journal.reacquire),
        ("awake", lambda: journal.is_released),
        ("close", journal.close),
        ("closed", lambda: journal.append([line])),
        ("read", lambda: [str(one) for one in read_journal(run / "events.jsonl").lines]),
        ("up to", lambda: [one.type for one in read_journal(run / "events.jsonl", "two").lines]),
    )
    content = (run / "events.jsonl").read_bytes()
    ends = {
        "blank": b"\n\n",
        "torn": b'{"type": "x',
        "unended": b'{"type": "x"}',
        "no event": b'{"type": 7}\n',
        "list": b"[]\n",
        "spaces": b"  ",
    }
    for title, more in ends.items():
        for behind in (b"", content):
            (run / "events.jsonl").write_bytes(content + more + behind)
            for lenient in (False, True):

                def read(lenient=lenient):
                    found = read_journal(run / "events.jsonl", lenient=lenient)
                    return [str(len(found.lines)), *map(str, found[1:4]), *map(str, found[5:])]

                shown += results_of((f"{title}, {len(behind) > 0}, {lenient}", read))
    for title, more in ends.items():
        (run / "events.jsonl").write_bytes(content + more)
        contents = read_journal(run / "events.jsonl", lenient=True)
        mended = Journal(run / "events.jsonl", CastLock(run), contents=contents)
        aside = mended.repair_end(contents)
        mended.append([line])
        mended.close()
        found = read_journal(run / "events.jsonl", lenient=True)
        shown.append(
            (
                f"mended {title}",
                [str(aside and aside.name), *(one.type for one in found.lines), str(found.first_broken_line)],
            )
        )
    shown_texts.matches("store-journal", shown)


# -- the list of casts ---------------------------------------------------------------------------------


def test_status_after_each_event_matches_the_snapshot(tmp_path):
    kinds = [
        "cast_start",
        "socket_start",
        "utility_input",
        "socket_refinement",
        "same_socket_recovery_exhausted",
        "socket_refused",
        "budget_limit",
        "cast_recast",
        "socket_held",
        "hold_answered",
        "hold_decided",
        "socket_complete",
        "labelled",
        "unknown",
    ]
    ends = [
        {"ok": True},
        {"ok": False, "error": "why\nmore"},
        {"ok": False, "kind": "aborted", "error": " Aborted "},
        {"ok": True, "warnings": [{"code": "a"}, {"code": "a"}, {"code": 7}, "x", {"code": "b" * 80}]},
        {"ok": 1},
        {"warnings": {}},
    ]
    events = [(kind, {}) for kind in kinds] + [("cast_end", end) for end in ends]
    events += [("cast_revive", {"kind": kind}) for kind in ("budget", "edge_traversals_exhausted", "other")]
    events += [("socket_start", {"step": step}) for step in (3, "x", None)]
    shown = []
    for request in ("one\n two\r\n\n three", "x" * 201, "x" * 200, "a " * 500, 7):
        for place, (kind, data) in enumerate(events if request == "one\n two\r\n\n three" else events[:1]):
            path = tmp_path / f"{len(shown)}-{place}"
            path.mkdir()
            start = {
                "ts": 5,
                "type": "cast_start",
                "data": {"request": request, "loadout": "T" if place else 7},
            }
            lines = [
                start,
                {"ts": 6, "type": "socket_start", "data": {"step": 1}},
                {"ts": "no", "type": kind, "data": data},
            ]
            (path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            said = str(
                cast_entry(path)._replace(path=None)
                if hasattr(cast_entry(path), "_replace")
                else {
                    name: getattr(cast_entry(path), name)
                    for name in (
                        "status",
                        "steps",
                        "request",
                        "loadout",
                        "started",
                        "last_event",
                        "warnings",
                        "failure",
                        "ours",
                        "outcome",
                    )
                }
            )
            shown.append((f"{kind} {json.dumps(data)}", [said]))
            said_by_us = {
                **lines[2],
                "status": "held",
                "steps": 9,
                "label": {"name": "n", "tags": ["t", 7], "verdict": "good", "note": "n" * 300},
            }
            (path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [*lines[:2], said_by_us]))
            entry = cast_entry(path)
            shown.append(
                (
                    "said by us",
                    [entry.status, str(entry.steps), entry.name, str(entry.tags), entry.verdict, entry.note],
                )
            )
    shown_texts.matches("store-entries", shown)


def test_fields_read_from_a_manifest_match_the_snapshot(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(2))
    cast.run()
    cast.close()
    path = cast.run_dir / "manifest.json"
    content = path.read_text()
    shown = []
    for name, value in {
        "status": '"done"',
        "steps": "x",
        "journalBytes": "1",
        "journalLink": '"0"',
        "cost": '"much"',
        "unpriced": '"x"',
        "castId": '"x"',
    }.items():
        old = next(line for line in content.splitlines() if f'"{name}"' in line)
        for how, new in (("without", ""), ("another", f'  "{name}": {value},')):
            path.write_text(content.replace(old, new))
            entry = cast_entry(cast.run_dir)
            mark = recorded_journal_end(cast.run_dir)
            shown.append(
                (
                    f"{how} {name}",
                    [
                        entry.status,
                        str(entry.steps),
                        str(entry.cost),
                        str(entry.unpriced),
                        str(mark is None),
                        ", ".join(manifest_head(cast.run_dir)),
                        *str(verify(RunDir(cast.run_dir))).splitlines(),
                    ],
                )
            )
    path.unlink()
    shown.append(
        (
            "gone",
            [
                str(cast_entry(cast.run_dir).cost),
                str(recorded_journal_end(cast.run_dir)),
                *str(verify(RunDir(cast.run_dir))).splitlines(),
            ],
        )
    )
    shown_texts.matches("store-manifest", shown)


def test_find_delete_and_list_match_the_snapshot(tmp_path, monkeypatch):
    bench = Workbench(tmp_path / "project", bundled=False)
    bench.load(h.loop_config(artifactDir="casts"))
    root = tmp_path / "project" / "casts"
    shown = list(
        results_of(
            ("none at all", lambda: find_cast(root, "-1")),
            ("none", lambda: find_cast(root, "x")),
            ("no list", lambda: list_casts(root)),
        )
    )
    made = [bench.cast(f"request {n}\nmore", agents=h.loop_agents(1)) for n in range(3)]
    made[0].run()
    for cast, name in zip(made, ("alpha", "beta", "beta"), strict=True):
        cast.labels.add(name=name, tag=name)
    ids = [cast.id for cast in made]
    names = {id_: f"cast {n}" for n, id_ in enumerate(ids)}
    monkeypatch.chdir(root)
    (root / "plain").mkdir()
    (root / "plain-file").write_text("x")
    references = [
        "latest",
        "-1",
        "-2",
        "-3",
        "-4",
        "-0",
        "alpha",
        " alpha ",
        "alphx",
        "beta",
        "nothing",
        "",
        "2",
        ids[0][:-1],
        ids[1],
        str(made[2].run_dir),
        f"{made[2].run_dir}/events.jsonl",
        ".",
        "plain",
        "./plain",
        "~nobody/x",
        "a\0b",
        "../casts",
        "x" * 5000,
        "\ud800",
    ]
    for number, reference in enumerate(references):

        def find(reference=reference):
            found = find_cast(root, reference)
            return names.get(found.name, found.name)

        shown += [(f"find reference {number}", said) for _, said in results_of(("", find))]
    entries = list_casts(root)
    for given in (
        {"name": "beta"},
        {"tag": "alpha"},
        {"tag": ["alpha", "beta"]},
        {"status": "complete"},
        {"loadout": "T"},
        {"loadout": "U"},
        {"verdict": "good"},
        {},
    ):
        shown.append((f"filter {given}", [names[one.id] for one in filter_casts(entries, **given)]))
    catalogue = Catalogue(root)
    shown += [(f"read {n}", [f"{len(found)} of {of}" for found, of in catalogue.read()]) for n in range(2)]
    shown += results_of(
        ("delete elsewhere", lambda: delete_cast(tmp_path, made[0].run_dir)),
        ("delete no cast", lambda: delete_cast(root, root / "plain")),
        ("delete open", lambda: delete_cast(root, made[1].run_dir)),
        ("last events", lambda: [event.type for event in last_events(made[0].run_dir)]),
    )
    bench.close()
    shown += results_of(
        ("delete", lambda: delete_cast(root, made[1].run_dir)),
        ("left", lambda: [names[one.id] for one in list_casts(root)]),
    )
    (root / "link").symlink_to(made[0].run_dir)
    shown += results_of(("delete a link", lambda: delete_cast(root, root / "link")))
    shown_texts.matches("store-finding", shown)


def test_long_cast_lists_are_paged(tmp_path):
    line = json.dumps({"ts": 1, "type": "cast_start", "data": {"request": "r"}}) + "\n"
    for n in range(41):
        (tmp_path / f"cast-{n:03}").mkdir()
        (tmp_path / f"cast-{n:03}" / "events.jsonl").write_text(line)
    catalogue = Catalogue(tmp_path)
    assert [(len(found), of) for found, of in catalogue.read()] == [(40, 41), (41, 41)]
    assert [(len(found), of) for found, of in catalogue.read()] == [(41, 41)]
    shutil.rmtree(tmp_path / "cast-000")
    (tmp_path / "cast-001" / "manifest.json").write_text("{}")
    assert [(len(found), of) for found, of in catalogue.read()] == [(40, 40)]


# -- what a run directory is asked ---------------------------------------------------------------------


def test_project_data_matches_the_snapshot(tmp_path):
    root = tmp_path / "casts"
    run, project = root / "one", tmp_path / "project"
    for folder in (run / "sockets", project / "in"):
        folder.mkdir(parents=True)
    (project / "in" / "a.py").write_text("a")
    (tmp_path / "outside").write_text("o")
    (project / "out").symlink_to(tmp_path / "outside")
    (project / "circle").symlink_to(project / "circle")
    (run / "sockets" / "o.md").write_bytes(b"\xff text")
    (run / "link").symlink_to(tmp_path)
    run_dir = RunDir(run)
    paths = [
        "in/a.py",
        " in/a.py ",
        "in",
        "out",
        "circle",
        "../outside",
        "",
        " ",
        "x" * 1001,
        "a\0b",
        str(project / "in" / "a.py"),
        "sockets/o.md",
        "nothing",
    ]
    shown = [
        (
            f"evidence {number}",
            [
                str((found := find_evidence(one, (project, run))) and found.name),
                str(file_within(one, project, run)),
            ],
        )
        for number, one in enumerate(paths)
    ]
    shown += results_of(
        *(
            (f"read {one[:30]!r}", lambda one=one: run_dir.read_text(one))
            for one in (
                "sockets/o.md",
                "sockets",
                "none.md",
                "../two",
                "/etc/passwd",
                "link/outside",
                "a\0b",
                "x" * 5000,
            )
        )
    )
    shown += results_of(
        *(
            (f"write {one}", lambda one=one: run_dir.write(one, b"x"))
            for one in ("a.md", "sockets/new/b.md", "../c.md", "link/d.md", "sockets/../e.md")
        )
    )
    for key in ("WI-1", "1", "a/b", "a..b", "", "x" * 300, "-", "ü"):
        shown.append((f"key {key[:20]!r}", str(is_item_key(key))))
    for id_ in ("2026-01-01T00-00-00-000Z", "2026-13-01T00-00-00-000Z", "x", "../x", "a/b", "..", ""):
        shown.append((f"id {id_!r}", [str(is_cast_id(id_)), str(creation_time(id_))]))
    shown.append(("names", dict(step_names(("A-b", "A_b", "a_B", "ü", "x" * 120, "Socket-1", "end")))))
    shown += results_of(("no context", lambda: read_context(root)))
    change_context(root, lambda known: {**known, "a": 1})
    shown += results_of(("context", lambda: read_context(root)))
    for text in ("[]", "{", "7"):
        (root / "project-context.json").write_text(text)
        shown += results_of(
            (f"context {text}", lambda: read_context(root)),
            ("changed", lambda: change_context(root, lambda known: known)),
        )
    shown += results_of(
        ("no directory", lambda: check_resumable(RunDir(root / "none"))),
        ("nothing recorded", lambda: check_resumable(RunDir(run))),
        ("with", lambda: with_definition({"materia": {"A": 1}}, "A", 2)),
        ("without", lambda: with_definition({"materia": {"A": 1}}, "B", 2)),
        ("odd", lambda: with_definition({"materia": []}, "A", 2)),
        ("odder", lambda: with_definition([], "A", 2)),
    )
    shown_texts.matches("store-places", shown)


def test_quest_boards_match_the_snapshot(tmp_path):
    path = tmp_path / "casts" / "quests.json"
    path.parent.mkdir()
    quest = {"id": "Q-1", "title": "r", "prompt": "r"}
    texts = [
        "{",
        "[]",
        "{}",
        '{"version": 2}',
        '{"next": 0}',
        json.dumps({"quests": [quest, quest]}),
        json.dumps({"quests": [{**quest, "status": "x"}]}),
        json.dumps({"quests": [{**quest, "id": ""}]}),
        json.dumps({"quests": [quest], "next": 9, "more": 1}),
        "[" * 2000,
    ]
    shown = list(results_of(("none", lambda: read_board(path))))
    for text in texts:
        path.write_text(text)
        shown += results_of(
            (f"board {text[:60]}", lambda: read_board(path)),
            ("more", lambda: change_board(path, lambda board: board.with_quest("s", "T"))),
        )
        with suppress(OSError):
            shown.append(("kept", path.read_text()[:2000]))
    shown_texts.matches("store-boards", shown)


# -- drafts, kept files ----------------------------------------------------------------------------------


def test_autosaves_match_the_snapshot(project):
    bench = Workbench(project)
    bench.use("Plan-Build-Eval")
    design = bench.design()
    for act in (
        lambda: design.add_socket("Build"),
        lambda: design.set_materia("Build", "prompt", "b"),
        design.undo,
        design.redo,
        design.undo,
        lambda: design.add_edge("Socket-6", "end", "always"),
    ):
        act()
    design = None
    root = bench.loadouts.casts_root
    [draft] = list_drafts(root)
    whole = draft.path.read_bytes().splitlines(keepends=True)

    def told():
        return [
            f"{one.name} {len(one.steps)} {len(one.undone)} {one.home} {one.by!r}: {', '.join(step.summary for step in one.steps)}"
            for one in list_drafts(root)
        ]

    shown = [
        ("as it is", told()),
        ("of another", [str(len(list_drafts(root, "Other"))), str(len(list_drafts(root, "Plan-Build-Eval")))]),
    ]
    shown.append(("lines", [json.dumps({**json.loads(line), "ts": 0}) for line in whole[1:]]))
    for place, line in enumerate(whole):
        given = json.loads(line)
        for name in given:
            for how, changed in (
                ("without", {k: v for k, v in given.items() if k != name}),
                ("odd", {**given, name: 7}),
                ("null", {**given, name: None}),
            ):
                draft.path.write_bytes(
                    b"".join([*whole[:place], json.dumps(changed).encode() + b"\n", *whole[place + 1 :]])
                )
                shown.append((f"{how} {name} of {place}", told()))
        draft.path.write_bytes(b"".join([*whole[:place], line[:10] + b"\n", *whole[place + 1 :]]))
        shown.append((f"torn {place}", told()))
    draft.path.write_bytes(b"".join(whole))
    onto = bench.design()
    shown += results_of(
        ("news", lambda: draft.has_changes(onto)),
    )
    taken = bench.design()
    shown += results_of(
        ("taken", lambda: draft.continue_in(taken).replace(str(draft), "DRAFT")),
        ("gone", draft.path.exists),
    )
    bench.close()
    shown_texts.matches("store-drafts", shown)


def test_file_snapshots_match_the_stored_records(tmp_path, monkeypatch):  # noqa: PLR0915 - one thing after the other
    project, casts = tmp_path / "project", tmp_path / "project" / "casts"
    for name, text in {
        "a.txt": "1\n2\n3\n",
        "in/b.py": "b\n",
        "in/deep/c": "c\n",
        'odd "ü\n': "odd\n",
        "gone": "gone\n",
        "casts/x": "x",
        "ignored/y": "y",
        ".gitignore": "ignored/\n",
    }.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    (project / "in/b.py").chmod(0o755)
    (project / "link").symlink_to("a.txt")
    snapshots = FileSnapshots(project, casts, "one")
    first = snapshots.take(None)

    def there():
        found = []
        for path in sorted(project.rglob("*")):
            if path.is_symlink():
                found.append(f"{path.relative_to(project)} -> {path.readlink()}")
            elif path.is_file() and not path.is_relative_to(casts):
                found.append(f"{path.relative_to(project)} {path.stat().st_mode & 0o100:o} {path.read_text()!r}")
        return found

    shown = [("there", there()), ("changed", list(first.changed)), ("left out", list(first.left_out))]
    again = snapshots.take(first.commit)
    shown.append(("nothing changed", [str(again.commit == first.commit), *again.changed]))
    (project / "a.txt").write_text("1\n2\nthree\n4\n")
    (project / "in/b.py").chmod(0o644)
    (project / "in/deep/c").rename(project / "moved")
    (project / "gone").unlink()
    (project / "link").unlink()
    (project / "link").write_text("a file now\n")
    (project / "bytes").write_bytes(b"\0\xff")
    (project / "long").write_bytes(b"x" * 100)
    monkeypatch.setattr(file_snapshots, "MAX_FILE_BYTES", 99)
    second = snapshots.take(first.commit)
    shown += [("then", list(second.changed)), ("too long", list(second.left_out))]
    shown.append(
        ("changes", [str(change) for change in file_snapshots.changes(snapshots.git_dir, first.commit, second.commit)])
    )
    shown.append(("one file", file_snapshots.difference(snapshots.git_dir, first.commit, second.commit, "a.txt")))
    shown.append(("all", file_snapshots.difference(snapshots.git_dir, first.commit, second.commit)))
    shown += results_of(
        ("no commit", lambda: file_snapshots.difference(snapshots.git_dir, first.commit, "x" * 40)),
        ("long", lambda: file_snapshots.difference(snapshots.git_dir, first.commit, "x" * 100)),
        ("short", lambda: file_snapshots.difference(snapshots.git_dir, first.commit, "a" * 39)),
        (
            "tree",
            lambda: file_snapshots.git(snapshots.git_dir, "ls-tree", "-r", second.commit).decode(),
        ),
    )
    (project / "gone").write_text("not kept")
    shown += results_of(("in the way", lambda: snapshots.restore(second.commit, first.commit)))
    (project / "gone").unlink()
    shown += results_of(("put", lambda: snapshots.restore(second.commit, first.commit)), ("as before", there))
    third = snapshots.take(second.commit)
    (project / "a.txt").write_text("changed since")
    shown += results_of(("changed since", lambda: snapshots.restore(third.commit, second.commit)))
    (project / "a.txt").write_text("1\n2\n3\n")
    (project / "moved").mkdir()
    shown += results_of(("an empty folder", lambda: snapshots.restore(third.commit, second.commit)), ("as then", there))
    fourth = snapshots.take(third.commit)
    (project / "in").rename(project / "other")
    (project / "in").write_text("a file where a folder was")
    fifth = snapshots.take(fourth.commit)
    shown += results_of(
        ("a file in the way of a folder", lambda: snapshots.restore(fifth.commit, first.commit)),
        ("as at first", there),
    )
    out = FileSnapshots(tmp_path / "casts-out", casts, "two", own=True)
    shown += results_of(
        ("check out", lambda: out.check_out(second.commit)),
        ("twice", lambda: out.check_out(second.commit)),
        (
            "checked out",
            lambda: sorted(
                str(one.relative_to(out.folder)) for one in out.folder.rglob("*") if ".git" not in one.parts
            ),
        ),
    )
    whole = FileSnapshots(project, casts, "three", ignored=True)
    shown.append(("ignored too", sorted(file.decode() for file in whole.walk_files())))
    monkeypatch.setattr(file_snapshots, "MAX_FILES", 3)
    shown += results_of(("too many", lambda: whole.take(None)))
    monkeypatch.setattr(file_snapshots, "MAX_FILES", 99)
    monkeypatch.setattr(file_snapshots, "MAX_BYTES", 3)
    shown += results_of(("too much", lambda: whole.take(None)))
    shown += results_of(
        ("forget", lambda: file_snapshots.delete_snapshots(casts, "one")),
        ("gone", snapshots.git_dir.exists),
        ("forget all", lambda: file_snapshots.delete_snapshots(casts, "two")),
        ("none", lambda: file_snapshots.delete_snapshots(tmp_path, "one")),
    )
    shown_texts.matches("store-kept", shown)


def test_folder_is_not_restored_over_an_unsaved_file(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("a file")
    snapshots = FileSnapshots(project, tmp_path / "casts", "one")
    first = snapshots.take(None)
    (project / "a").unlink()
    (project / "a").mkdir()
    (project / "a" / "kept").write_text("kept")
    second = snapshots.take(first.commit)
    (project / "a" / "new").write_text("nobody kept this")
    with pytest.raises(MateriaError, match="would overwrite 1 file without a saved copy: a"):
        snapshots.restore(second.commit, first.commit)
    assert (project / "a" / "new").read_text() == "nobody kept this"
    (project / "a" / "new").unlink()
    snapshots.restore(second.commit, first.commit)
    assert (project / "a").read_text() == "a file"


class Naming:
    """A protocol whose outputs name files."""

    def artifacts(self, value):
        return value["files"]


def test_missing_output_files_match_the_snapshot(tmp_path):
    run, project = tmp_path / "run", tmp_path / "project"
    for folder in (run, project):
        folder.mkdir()
        (folder / f"{folder.name}.txt").write_text("x")
    named = [
        "run.txt",
        " project.txt ",
        "none.txt",
        "none.txt",
        " ",
        "https://a.b/c",
        "/nowhere/at/all",
        str(project / "project.txt"),
        "a\0b",
    ]
    reading = SimpleNamespace(accepted=True, value={"files": named})
    found = missing_evidence(Naming(), reading, project, run)
    assert found == ["none.txt", "/nowhere/at/all", "a\0b"]
    for other in (
        None,
        SimpleNamespace(accepted=False, value=reading.value),
        SimpleNamespace(accepted=True, value=[1]),
    ):
        assert missing_evidence(Naming(), other, project, run) == []


def test_cast_built_from_events_can_be_resumed(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(2))
    cast.run()
    made = cast.replay(h.loop_config()).continue_cast()
    assert json.loads((made.run_dir / "config.resolved.json").read_text()) == h.loop_config()
    assert made.run_dir.parent == cast.run_dir.parent
    assert (made.status, made.route) == (cast.status, cast.route)
    made.close()


def test_file_snapshot_omits_folders_and_pipes(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("a")
    os.mkfifo(project / "pipe")
    (project / "z").write_text("z")
    snapshots = FileSnapshots(project, tmp_path / "casts", "one")
    assert (snapshots.take(None).changed, snapshots.take(None).left_out) == (("a", "z"), ())


def test_stored_files_stay_within_the_size_limit(tmp_path, monkeypatch):
    project = tmp_path / "project"
    project.mkdir()
    for name in ("a", "b"):
        (project / name).write_text("12")
    monkeypatch.setattr(file_snapshots, "MAX_FILES", 2)
    monkeypatch.setattr(file_snapshots, "MAX_BYTES", 4)
    monkeypatch.setattr(file_snapshots, "MAX_FILE_BYTES", 2)
    snapshots = FileSnapshots(project, tmp_path / "casts", "one")
    assert snapshots.take(None).changed == ("a", "b")
    (project / "b").write_text("123")
    assert snapshots.take(None).left_out == ("b",)


def test_newest_autosave_is_listed_first(project):
    bench = Workbench(project)
    bench.use("Plan-Build-Eval")
    design = bench.design()
    design.add_socket("Build")
    design = None
    root = bench.loadouts.casts_root
    [draft] = list_drafts(root)
    lines = [json.loads(line) for line in draft.path.read_bytes().splitlines()]
    for digits, more in (("00000001", 5), ("00000002", -5)):
        name = f"{draft.path.name.rsplit('.', 2)[0]}.{digits}.jsonl"
        later = [{**line, "ts": line["ts"] + more} for line in lines]
        draft.path.with_name(name).write_text("".join(json.dumps(line) + "\n" for line in later))
    assert [one.saved_at - draft.saved_at for one in list_drafts(root)] == [5, 0, -5]
    bench.close()
