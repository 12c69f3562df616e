"""Test that autosaved designs lose nothing if a kernel is killed, and that unusable drafts are left untouched."""

from __future__ import annotations

import contextlib
import gc
import json
import multiprocessing
import os
import random
import signal

import pytest

from materia_nb import MateriaError, Workbench
from materia_nb.loadout.design import Design
from materia_nb.loadout.layers import PROJECT_FILE
from materia_nb.store.design_autosave import list_drafts

KILLS = int(os.environ.get("MATERIA_DRAFT_KILLS", "25"))
MATERIA = ("Plan", "Build", "Eval", "Maintain")


def apply_random_operation(wb: Workbench, design: Design, chance: random.Random) -> None:
    """Apply one random user operation to a design; an operation that is refused changes nothing."""
    ids = [*design.document.get("sockets", {}), "Socket-1"]
    one, other = chance.choice(ids), chance.choice(ids)
    acts = {
        "add": (6, lambda: design.add_socket(chance.choice(MATERIA))),
        "connect": (6, lambda: design.add_edge(one, other, chance.choice(["always", "satisfied"]))),
        "place": (3, lambda: design.place_sockets({one: (chance.randrange(9), chance.randrange(9) / 2)})),
        "prompt": (3, lambda: design.set_materia("Build", "prompt", f"Bäue {chance.randrange(99)} \ud83d\n")),
        "make": (1, lambda: design.make_materia(f"New{chance.randrange(4)}", "agent")),
        "loop": (1, lambda: design.make_loop("L", sorted({one, other}))),
        "rename": (1, lambda: design.rename_socket(one, f"Socket-{chance.randrange(1, 30)}")),
        "remove": (1, lambda: design.remove_socket(one)),
        "undo": (5, design.undo),
        "redo": (3, design.redo),
        "save": (1, lambda: wb.loadouts.save(design, anyway=True)),
        "reload": (1, lambda: design.reload(wb.design("Mine", new="Mine" not in wb.loadouts))),
    }
    act = chance.choices([act for _, act in acts.values()], [weight for weight, _ in acts.values()])[0]
    with contextlib.suppress(MateriaError):
        act()


def state(design: Design) -> str:
    return json.dumps([design.document, sorted(design.definitions.items())])


def start_design(project) -> tuple[Workbench, Design]:
    wb = Workbench(project)
    return wb, wb.design("Mine", new=True)


def edit_until_killed(project, seed: int, told: int) -> None:
    """Apply operations one after another in the child process, and acknowledge each with one byte."""
    wb, design = start_design(project)
    chance = random.Random(seed)
    while True:
        apply_random_operation(wb, design, chance)
        os.write(told, b".")


def test_killed_kernel_loses_no_step_of_a_design(tmp_path):
    forked = multiprocessing.get_context("fork")
    kept = 0
    for seed in range(KILLS):
        project, mirror = tmp_path / f"killed-{seed}", tmp_path / f"mirror-{seed}"
        project.mkdir()
        mirror.mkdir()
        hears, told = os.pipe()
        child = forked.Process(target=edit_until_killed, args=(project, seed, told))
        child.start()
        os.close(told)
        acts = 0
        until = random.Random(-seed).randrange(1, 60)
        while acts < until:
            more = os.read(hears, until - acts)
            assert more, "the child has ended by itself"
            acts += len(more)
        os.kill(child.pid, signal.SIGKILL)
        while more := os.read(hears, 100):
            acts += len(more)
        os.close(hears)
        child.join()

        wb, design = start_design(mirror)
        chance = random.Random(seed)
        for _ in range(acts):
            apply_random_operation(wb, design, chance)
        expected = [state(design)]
        apply_random_operation(wb, design, chance)  # the one that it was killed in may have been kept
        expected.append(state(design))
        second_bench = Workbench(project)
        found = second_bench.loadouts.drafts("Mine")
        assert len(found) <= 2  # killed while one took the place of another: both are whole
        kept += bool(found)
        reopened = (
            second_bench.design("Mine", draft=True)
            if found
            else second_bench.design("Mine", new="Mine" not in second_bench.loadouts)
        )
        assert state(reopened) in expected, f"seed {seed}, {acts} acts"
    assert kept > KILLS / 2


@pytest.fixture
def closed_draft(project):
    """Return the closed draft of a design with three steps, one of which is undone, and its file."""
    _, design = start_design(project)
    for materia in ("Plan", "Build", "Eval", "Maintain"):
        design.add_socket(materia)
    design.undo()
    design.save_draft = None  # as if its kernel had gone
    [path] = (project / ".pi" / "pi-materia" / "drafts").iterdir()
    return path


def test_autosave_restores_steps_and_undone_steps(project, closed_draft):
    wb = Workbench(project)
    [draft] = wb.loadouts.drafts()
    assert (draft.name, len(draft.steps)) == ("Mine", 3)
    assert str(draft).endswith("(3 steps)")
    design = wb.design("Mine", draft=True)
    assert [*design.document["sockets"]] == ["Socket-1", "Socket-2", "Socket-3"]
    assert not closed_draft.exists()
    design.redo()
    assert design.document["sockets"]["Socket-4"] == {"materia": "Maintain"}
    for _ in range(4):
        design.undo()
    assert design.document == {}
    assert not [*closed_draft.parent.iterdir()], "nothing is left that is not saved"


def test_undone_steps_are_dropped_by_a_new_step(project):
    _, design = start_design(project)
    design.add_socket("Plan")
    design.undo()
    design.add_socket("Build")
    design.save_draft = None
    [draft] = list_drafts(project / ".pi" / "pi-materia")
    assert [step.summary for step in draft.steps] == ["added Socket-1 (Build) as the entry"]
    assert draft.undone == ()


def test_only_autosaves_of_closed_designs_are_offered(project, closed_draft):
    first, second = Workbench(project), Workbench(project)
    design = first.design("Mine", draft=True)
    assert second.loadouts.drafts() == ()
    with pytest.raises(MateriaError, match="Mine has no draft"):
        second.design("Mine", draft=True)
    assert first.loadouts.save(design).startswith("saved in ")
    assert not [*closed_draft.parent.iterdir()]


def test_partially_written_last_step_is_dropped_and_earlier_steps_are_restored(project, closed_draft):
    lines = closed_draft.read_bytes().splitlines(keepends=True)
    for torn in (b"".join(lines[:3]) + lines[3][:20], b"".join(lines[:3]), b"".join([*lines[:3], lines[4]])):
        closed_draft.write_bytes(torn)
        [draft] = list_drafts(project / ".pi" / "pi-materia")
        assert [step.summary for step in draft.steps] == [
            "added Socket-1 (Plan) as the entry",
            "added Socket-2 (Build)",
        ]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}\n", b"\xff\xfe", b'{"format": "materia-nb draft 1"}', b"[" * 100_000]
)
def test_damaged_autosaves_are_skipped(project, closed_draft, content):
    closed_draft.write_bytes(content)
    assert Workbench(project).loadouts.drafts() == ()


def test_autosaves_do_not_follow_links(project, closed_draft, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    closed_draft.parent.rename(elsewhere)
    closed_draft.parent.symlink_to(elsewhere)
    wb, design = start_design(project)
    assert wb.loadouts.drafts() == ()
    design.add_socket("Plan")
    assert "is a link" in design.draft_error
    assert "is a link" in repr(design)
    assert [path.name for path in elsewhere.iterdir()] == [closed_draft.name]
    closed_draft.parent.unlink()
    design.add_socket("Build")
    assert design.draft_error == "", "it is tried again with the next act, with all acts"
    design.save_draft = None
    [draft] = wb.loadouts.drafts()
    assert len(draft.steps) == 2


def test_autosave_reports_a_file_that_changed_after_the_save(project):
    wb, design = start_design(project)
    design.add_socket("Plan")
    wb.loadouts.save(design)
    design.add_socket("Build")
    design.save_draft = None
    file = project / PROJECT_FILE
    file.write_text(file.read_text().replace('"Plan"', '"Eval"'))
    second_bench = Workbench(project)
    fresh = second_bench.design("Mine")
    [draft] = second_bench.loadouts.drafts("Mine")
    assert draft.has_changes(fresh)
    assert "was changed in the meantime" in draft.continue_in(fresh)
    assert fresh.document["sockets"]["Socket-1"] == {"materia": "Plan"}
    fresh.undo()
    assert fresh.document["sockets"]["Socket-1"] == {"materia": "Eval"}


def test_five_newest_autosaves_of_a_loadout_are_kept(project):
    wb = Workbench(project)
    for _ in range(7):
        design = wb.design("Mine", new=True)
        design.add_socket("Plan")
        design.save_draft = None
    assert len(wb.loadouts.drafts("Mine")) == 5
    assert wb.loadouts.drafts("Other") == ()


def test_design_saved_in_a_notebook_survives_a_kernel_restart(project):
    wb = Workbench(project)
    design = wb.design("Hojo-Consult")
    design.set_loadout("label", "mine")
    wb.loadouts.save(design, "notebook")
    assert not design.changed
    design.set_loadout("label", "ours")
    wb.loadouts.save(design)
    design.save_draft = None
    [draft] = wb.loadouts.drafts()
    assert not draft.has_changes(wb.design("Hojo-Consult")), "this kernel has it"
    second_bench = Workbench(project)
    assert draft.has_changes(second_bench.design("Hojo-Consult"))
    assert second_bench.design("Hojo-Consult", draft=True).document["label"] == "ours"


def test_setting_the_clock_back_does_not_remove_the_newest_autosave(project, monkeypatch):
    now = [1_700_000_000.0]
    monkeypatch.setattr("materia_nb.store.design_autosave.time.time", lambda: now[0])
    for number in range(1, 9):
        _, design = start_design(project)
        for _ in range(number):
            design.add_socket("Plan")
        design.save_draft = None  # as a kernel leaves it that ends
        del design
        gc.collect()
        now[0] -= 60.0
    drafts = list_drafts(project / ".pi" / "pi-materia")
    assert [len(draft.steps) for draft in drafts] == [8, 7, 6, 5, 4]
