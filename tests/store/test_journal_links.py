"""Test that the hash links of a journal reveal changed, missing, added and swapped lines."""

from __future__ import annotations

import json
import os
import random
import shutil

import pytest

import cast_helpers as h
from materia_nb.cast import open_cast, resume_cast
from materia_nb.errors import MateriaError
from materia_nb.store.opening import verify
from materia_nb.store.rundir import RunDir

CHANGE_COUNT = int(os.environ.get("MATERIA_FLIPS", "60"))
"""Number of random changes of each kind; 10,000 for a manual run."""


@pytest.fixture(scope="module")
def finished_cast(tmp_path_factory):
    """Return the journal lines of a finished cast, and its directory."""
    cast = h.start(tmp_path_factory.mktemp("links"), h.loop_config(), h.loop_agents(2, refuse=[1]))
    cast.run()
    cast.close()
    return (cast.run_dir / "events.jsonl").read_bytes().splitlines(keepends=True), cast.run_dir


@pytest.fixture
def changed_copy(finished_cast, tmp_path):
    """Return a function that copies the directory and replaces the lines of its journal."""

    def make(lines, *, manifest=True):
        folder = tmp_path / "run"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(finished_cast[1], folder)
        (folder / "events.jsonl").write_bytes(b"".join(lines))
        if not manifest:
            (folder / "manifest.json").unlink()
        return folder

    return make


def test_unmodified_cast_passes_verification(finished_cast):
    found = verify(RunDir(finished_cast[1]))
    assert (found.is_intact, found.steps, found.lines) == (True, 8, len(finished_cast[0]))
    assert repr(found) == f"The journal is intact up to step 8 ({len(finished_cast[0])} lines)."
    assert verify(open_cast(finished_cast[1]).runner.run_dir) == found


def test_flipped_bit_is_detected(finished_cast, changed_copy):
    lines, _ = finished_cast
    content, dice, silent = b"".join(lines), random.Random(63), []
    for _ in range(CHANGE_COUNT):
        place, bit = dice.randrange(len(content)), 1 << dice.randrange(8)
        folder = changed_copy([content[:place], bytes([content[place] ^ bit]), content[place + 1 :]])
        found = verify(RunDir(folder))
        line = content[:place].count(b"\n")
        # A line break that became another blank takes nothing away; what JSON says is the same.
        if found.is_intact and json_lines(folder) != json_lines(finished_cast[1]):
            silent.append((place, bit))
        assert found.is_intact or found.lines <= line + 1
    assert silent == []


def json_lines(folder):
    try:
        return [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]
    except ValueError:
        return None


def test_removed_added_or_swapped_lines_are_detected(finished_cast, changed_copy):
    lines, _ = finished_cast
    dice = random.Random(64)
    for _ in range(CHANGE_COUNT):
        one, other = sorted(dice.sample(range(len(lines)), 2))
        kind = dice.choice(["out", "twice", "exchanged"])
        made = list(lines)
        if kind == "out":
            del made[one:other]
        elif kind == "twice":
            made.insert(other, made[one])
        else:
            made[one], made[other] = made[other], made[one]
        found = verify(RunDir(changed_copy(made)))
        assert not found.is_intact, (kind, one, other)
        assert found.lines == (other if kind == "twice" else one), (kind, one, other)


def test_modified_output_is_reported_on_open_and_blocks_a_resume(finished_cast, changed_copy):
    lines, _ = finished_cast
    place = next(n for n, line in enumerate(lines) if b"built 2" in line)
    folder = changed_copy(
        [line.replace(b"built 2", b"BUILT 2") if n == place else line for n, line in enumerate(lines)]
    )
    opened = open_cast(folder)
    (message,) = opened.now.messages
    assert f"line {place + 1} is not the original line" in message
    assert f"intact up to step {verify(RunDir(folder)).steps}" in message
    assert len(opened.steps) == 8, "all that was recorded is shown"
    with pytest.raises(MateriaError, match="changed") as caught:
        resume_cast(folder)
    assert (caught.value.kind, caught.value.where) == (
        "damaged_journal",
        f"{folder / 'events.jsonl'}:{place + 1}",
    )
    # What the error says to do helps.
    cut = resume_cast(changed_copy(lines[:place], manifest=False), h.table(h.loop_agents(2, refuse=[1])))
    assert cut.run() == "complete"
    assert verify(cut.runner.run_dir).is_intact


def test_truncated_journal_is_distinguished_from_a_partial_last_line(finished_cast, changed_copy):
    lines, _ = finished_cast
    shorter = changed_copy(lines[:-3])
    found = verify(RunDir(shorter))
    assert (found.is_intact, found.is_torn) == (False, False)
    assert "end of the journal is missing" in found.problems[0]
    assert "end of the journal is missing" in open_cast(shorter).now.messages[0]
    gone_on = resume_cast(shorter, h.table(h.loop_agents(2, refuse=[1])))
    assert "end of the journal is missing" in gone_on.now.messages[0]
    assert gone_on.run() == "complete"
    assert verify(gone_on.runner.run_dir).is_intact, "what was found is told once"
    gone_on.close()
    torn = verify(RunDir(changed_copy([*lines[:-1], lines[-1][:-9]], manifest=False)))
    assert (torn.is_intact, torn.is_torn, torn.lines) == (True, True, len(lines) - 1)
    assert "The last line is incomplete" in repr(torn)


def test_journal_without_hash_links_continues_with_hash_links(finished_cast, changed_copy):
    early = [
        json.dumps({k: v for k, v in json.loads(line).items() if k != "link"}).encode() + b"\n"
        for line in finished_cast[0]
    ]
    folder = changed_copy(early[:-4], manifest=False)
    assert not verify(RunDir(folder)).has_links
    assert open_cast(folder).now.messages == []
    cast = resume_cast(folder, h.table(h.loop_agents(2, refuse=[1])))
    cast.run()
    cast.close()
    assert verify(RunDir(folder)).is_intact
    lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    broken = verify(RunDir(changed_copy([lines[0], *lines[2:]])))  # the links vouch for what came before them, too
    assert not broken.is_intact


def test_long_outputs_are_also_verified(tmp_path, bench):
    cast = h.start(tmp_path, h.chain_config(3), lambda visit: "x" * 70_000)
    cast.run()
    cast.close()
    (cast.run_dir / "sockets/Socket-2/1.md").write_text("y")
    found = verify(cast.runner.run_dir)
    assert (found.is_intact, found.steps) == (False, 1)
    assert "SHA-256" in found.problems[0]


def test_verify_magic_checks_casts_that_cannot_be_opened(finished_cast, changed_copy, shell):
    folder = changed_copy([*finished_cast[0][:4], b"no event\n", *finished_cast[0][4:]])
    with pytest.raises(MateriaError, match="damaged"):
        open_cast(folder)
    told = str(shell.run_line_magic("materia", f"doctor {folder}"))
    assert "The journal is intact only up to step 1 (4 lines)." in told
