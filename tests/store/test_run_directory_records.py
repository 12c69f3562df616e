"""Store the contents of cast files, and the results of reading damaged journals."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import cast_helpers as h
import shown_texts
from builders import at, config
from materia_nb.agents.interface import AgentError, Reply, Usage
from materia_nb.cast import open_cast
from materia_nb.errors import MateriaError
from materia_nb.store.catalogue import cast_entry
from materia_nb.store.opening import verify
from materia_nb.store.rundir import RunDir
from protocol_helpers import cast_asking_for_approval, contract, envelope
from protocol_helpers import start as start_protocol

RECORDED = Path(__file__).parents[1] / "data" / "recorded-casts"


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Replace the clock by one that advances by one second with each answer of an agent."""
    now = [1_700_000_000_000]
    monkeypatch.setattr("materia_nb.cast.work.time.time_ns", lambda: now[0] * 1_000_000)

    def ticks():
        now[0] += 1000

    return ticks


def files_of(cast):
    """Return each file of a run directory except its config, as a list of lines."""
    for path in sorted(cast.run_dir.rglob("*")):
        if path.is_file() and path.name not in ("cast.lock", "config.resolved.json"):
            lines = path.read_text("utf-8", "replace").splitlines()
            yield path.relative_to(cast.run_dir).as_posix(), lines


def in_a_loop(tmp_path, clock):
    answers = iter(["no object", h.YES, h.NO, h.YES])

    def check():
        clock()
        return Reply(next(answers), Usage(1100, 70, 0.25, cached=100, reasoning=20), meta={"model": "m-1"})

    agents = {**h.loop_agents(long="\ud800"), "Check": check}
    cast = h.start(tmp_path, h.loop_config(artifacts="all"), agents)
    cast.run(steps=3)
    cast.labels.add(name="named", tag="t", verdict="good", note="n")
    cast.edit.set("note", "by hand")
    cast.run()
    return cast


def gone_back(tmp_path, clock):
    cast = h.start(tmp_path, h.chain_config(3), {"*": lambda visit: f"said {visit}"})
    cast.run()
    cast.back(1)
    cast.agents.set("*", lambda: Reply("otherwise", Usage(None, None)))
    cast.run()
    return cast


def failed(tmp_path, clock):
    def fails():
        raise AgentError("The server is gone", kind="transport", hint="resend")

    cast = h.start(tmp_path, h.loop_config(), {**h.loop_agents(), "Check": fails})
    cast.run()
    return cast


def with_a_draft(tmp_path, clock):
    document = h.one_config(h.agent("Write {{request}}", multiTurn=True))
    cast = h.start(tmp_path, document, h.Until("a first draft", "a second", "final"))
    cast.run()
    cast.refine("shorter")
    cast.accept()
    cast.run()
    return cast


def utilities(tmp_path, clock):
    said = """import sys; sys.stderr.write("hm"); print('{"satisfied": true, "state": {"x": 1}}')"""
    sockets = {"Socket-1": at("U", ("always", "Socket-2"), parse="json"), "Socket-2": at("T")}
    materia = {"U": h.python(said, parse="json"), "T": h.python("print('x'); raise SystemExit(3)")}
    cast = h.start(tmp_path, config(sockets, materia=materia))
    cast.run()
    return cast


def envelopes(tmp_path, clock):
    routing = {"recommendation": "CONTINUE", "reason": "all done"}
    cast = start_protocol(tmp_path, "envelope", [json.dumps(envelope(status="VERIFIED", routing=routing))])
    cast.run()
    return cast


def contracts(tmp_path, clock):
    cast = start_protocol(tmp_path, "agent-contract", [json.dumps(contract())])
    cast.run()
    return cast


SCENES = (in_a_loop, gone_back, failed, with_a_draft, utilities, envelopes, contracts)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_run_directory_has_the_documented_files(tmp_path, clock, scene):
    cast = scene(tmp_path, clock)
    cast.export.derived_files()
    cast.close()
    shown_texts.matches(f"left-{scene.__name__}", files_of(cast))


# -- journals that lack a line ---------------------------------------------------------------------


def reading_result(path):
    """Return the route and status of a cast, or the error raised by an unreadable run directory."""
    try:
        cast = open_cast(path)
    except MateriaError as error:
        return [f"refused: {error}"]
    now = cast.now
    route = " ".join(
        f"{step.socket}.{step.visit}" + (f"[{step.item_key}]" if step.item_key else "") for step in now.steps
    )
    failure = "" if now.failure is None else f" ({now.failure.kind}: {now.failure.message[:60]})"
    said = [*map(str, now.differences), *now.messages, *now.notes]
    return [f"{now.status}{failure}, next {now.next_socket}, {now.usage.tokens} tokens: {route}", *said]


def without_each_line(path):
    """Yield the result of reading the journal without each line in turn, and without the data of each line."""
    lines = (path / "events.jsonl").read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines):
        event = json.loads(line)
        bare = json.dumps({**event, "data": {}, "link": ""}).encode() + b"\n"
        for variant, replacement in (("without", b""), ("bare", bare)):
            (path / "events.jsonl").write_bytes(b"".join([*lines[:number], replacement, *lines[number + 1 :]]))
            listed = cast_entry(path)
            yield f"{variant} {number}, {event['type']}", reading_result(path), listed
    (path / "events.jsonl").write_bytes(b"".join(lines))


ODD = (None, 7, "x")


def with_each_field_changed(path):
    """Yield the result of reading the journal with each field in turn removed or given a wrong type."""
    lines = (path / "events.jsonl").read_bytes().splitlines(keepends=True)
    seen = set()
    for number, line in reversed(list(enumerate(lines))):
        event = json.loads(line)
        for name, value in event["data"].items():
            if (event["type"], name) in seen:
                continue
            seen.add((event["type"], name))
            rest = {key: entry for key, entry in event["data"].items() if key != name}
            odd = [(f"{value!r} as", {**rest, name: wrong}) for wrong in ODD if wrong != value]
            for variant, data in (("without", rest), *odd):
                changed = json.dumps({**event, "data": data, "link": ""}).encode() + b"\n"
                (path / "events.jsonl").write_bytes(b"".join([*lines[:number], changed, *lines[number + 1 :]]))
                yield f"{variant} {name} of {event['type']}", reading_result(path), cast_entry(path)
    (path / "events.jsonl").write_bytes(b"".join(lines))


def recorded(tmp_path, name):
    return Path(shutil.copytree(RECORDED / name, tmp_path / "recorded-casts" / name))


def is_clear(reading_result, listed):
    """Return True if a journal is refused with one clear error or is shown as far as it can be read."""
    return bool(reading_result[0]) and (listed.outcome is not None or listed.problem)


@pytest.mark.parametrize("variants", [without_each_line, with_each_field_changed])
@pytest.mark.parametrize("name", ["loop-retry", "mt-json-refine", "util-exit-nonzero"])
def test_damaged_recording_of_another_engine_is_shown_or_clearly_refused(tmp_path, name, variants):
    for variant, reading_result, listed in variants(recorded(tmp_path, name)):
        assert is_clear(reading_result, listed), variant


@pytest.mark.parametrize("variants", [without_each_line, with_each_field_changed])
def test_recording_whose_loadout_cannot_be_cast_is_shown_or_clearly_refused(tmp_path, variants):
    path = recorded(tmp_path, "parse-repair-then-ok")
    document = json.loads((path / "config.resolved.json").read_text())
    for loadout in document["loadouts"].values():
        loadout["sockets"]["Broken"] = {
            "materia": "Nobody",
            "edges": [{"when": "sometimes", "to": "Nowhere"}],
        }
    (path / "config.resolved.json").write_text(json.dumps(document))
    for variant, reading_result, listed in variants(path):
        assert is_clear(reading_result, listed), variant


@pytest.mark.parametrize("variants", [without_each_line, with_each_field_changed])
@pytest.mark.parametrize("scene", [in_a_loop, gone_back, failed, with_a_draft], ids=lambda scene: scene.__name__)
def test_every_kind_of_damage_to_a_journal_is_reported(tmp_path, clock, scene, variants):
    cast = scene(tmp_path, clock)
    cast.close()
    last = sum(1 for _ in (cast.run_dir / "events.jsonl").open("rb")) - 1
    for variant, reading_result, listed in variants(cast.run_dir):
        assert is_clear(reading_result, listed), variant
        if not variant.startswith(f"without {last},"):  # a journal without its last line is one that was killed
            assert reading_result[0].startswith("refused: ") or "The journal was changed" in "\n".join(
                reading_result
            ), variant


@pytest.mark.parametrize("name", ["mt-json-refine", "parse-repair-then-ok"])
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe{"], ids=["gone", "empty", "no text"])
def test_recording_with_a_damaged_artifact_is_shown_or_clearly_refused(tmp_path, name, content):
    path = recorded(tmp_path, name)
    for artifact in sorted(path.rglob("*.md")):
        artifact.unlink() if content is None else artifact.write_bytes(content)
        assert is_clear(reading_result(path), cast_entry(path)), artifact.name


def with_an_approval(tmp_path, clock):
    cast, _ = cast_asking_for_approval(tmp_path)
    cast.agents.set("Check", "person")
    cast.approvals.approve()
    return cast


@pytest.mark.parametrize(
    "scene", [in_a_loop, gone_back, with_a_draft, utilities, with_an_approval], ids=lambda scene: scene.__name__
)
def test_fork_begins_with_copied_events(tmp_path, clock, scene):
    cast = scene(tmp_path, clock)
    shown = []
    for number in (0, 1, None):
        fork = cast.fork(number)
        fork.close()
        names = sorted(path.relative_to(fork.run_dir).as_posix() for path in fork.run_dir.rglob("*") if path.is_file())
        lines = (fork.run_dir / "events.jsonl").read_text("utf-8").splitlines()
        shown += [(f"files of fork {number}", names), ("its journal", lines)]
    shown_texts.matches(f"forked-{scene.__name__}", shown)


@pytest.mark.parametrize("torn", [0, 20], ids=["cut off before", "torn in"])
def test_truncated_journal_is_verified_up_to_its_end_or_refused(tmp_path, clock, torn):
    cast = in_a_loop(tmp_path, clock)
    cast.close()
    path = cast.run_dir / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for number in range(1, len(lines)):
        path.write_bytes(b"".join(lines[:number]) + lines[number][:torn])
        report = str(verify(RunDir(cast.run_dir)))
        assert "changed" not in report, number
        assert cast_entry(cast.run_dir).outcome is not None, number
