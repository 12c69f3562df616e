"""Test the files of a run directory (R29) and the storage that they use (R30)."""

from __future__ import annotations

import json
import re

import pytest

import cast_helpers as h
from materia_nb.agents.interface import Reply, Usage
from materia_nb.cast import Cast, resume_cast
from materia_nb.errors import MateriaError
from materia_nb.store.rundir import new_run_dir


def files(cast: Cast) -> set[str]:
    return {str(path.relative_to(cast.run_dir)) for path in cast.run_dir.rglob("*") if path.is_file()}


ALWAYS = {"config.resolved.json", "events.jsonl", "manifest.json", "usage.json", "cast.lock"}


def read(cast: Cast, name: str):
    return json.loads((cast.run_dir / name).read_text())


def test_r29_cast_id_is_a_timestamp_and_its_folder_is_in_the_artifact_directory(tmp_path):
    cast = h.start(tmp_path, h.chain_config(1))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z", cast.id)
    assert cast.run_dir == tmp_path / "casts" / cast.id
    start = h.lines_of(cast)[0]
    assert start["type"] == "cast_start"
    assert start["data"]["request"] == "the widget"
    assert start["data"]["loadout"] == "T"
    assert start["data"]["configSource"] == "test"
    assert start["data"]["artifactRoot"] == str(tmp_path / "casts")
    assert read(cast, "config.resolved.json") == h.chain_config(1)


def test_r29_files_of_a_utility_are_written(tmp_path):
    code = (
        "import json, sys; d = json.load(sys.stdin); print('note', file=sys.stderr); "
        "print(json.dumps({'state': {'saw': sorted(d)}}))"
    )
    cast = h.start(tmp_path, h.one_config(h.python(code, parse="json")))
    assert cast.run() == "complete"
    base = "sockets/Socket-1/1"
    assert files(cast) == ALWAYS | {
        f"{base}.input.json", f"{base}.command.stdout.txt", f"{base}.command.stderr.txt", f"{base}.command.json",
        f"{base}.md", f"{base}.json",
    }  # fmt: skip
    assert read(cast, f"{base}.input.json")["socketId"] == "Socket-1"
    assert (cast.run_dir / f"{base}.command.stderr.txt").read_text() == "note\n"
    stdout = (cast.run_dir / f"{base}.command.stdout.txt").read_bytes()
    assert (cast.run_dir / f"{base}.md").read_bytes() == stdout
    assert read(cast, f"{base}.json") == json.loads(stdout)
    command = read(cast, f"{base}.command.json")
    assert (command["code"], command["signal"], command["timedOut"]) == (0, None, False)
    lines = h.lines_of(cast)
    assert [line["type"] for line in lines] == [
        "cast_start", "socket_start", "utility_input", "utility_command", "socket_complete", "cast_end",
    ]  # fmt: skip
    assert all(set(line) == {"ts", "type", "v", "status", "steps", "data", "link"} for line in lines)
    assert {line["v"] for line in lines} == {2}
    about = {"socket": "Socket-1", "materia": "M", "materiaLabel": "M"}
    assert lines[1]["data"] == {**about, "visit": 1, "step": 1}
    assert lines[2]["data"] == {**about, "visit": 1, "artifact": f"{base}.input.json"}
    assert lines[3]["data"]["stdoutArtifact"] == f"{base}.command.stdout.txt"
    text = stdout.decode()
    worked = lines[4]["data"]["worked"]
    assert isinstance(worked, int)
    assert lines[4]["data"] == {
        **about, "visit": 1, "worked": worked, "parsed": True, "artifact": f"{base}.md", "next": "end", "text": text,
    }  # fmt: skip
    assert lines[5]["data"]["ok"] is True


def test_r23_output_of_a_failed_utility_is_kept(tmp_path):
    cast = h.start(tmp_path, h.one_config(h.python("import sys; print('part'); sys.exit('boom')", parse="json")))
    assert cast.run() == "failed"
    base = "sockets/Socket-1/1"
    assert files(cast) == ALWAYS | {f"{base}.{end}" for end in (
        "input.json", "command.stdout.txt", "command.stderr.txt", "command.json",
    )}  # fmt: skip
    assert f"{base}.command.stderr.txt" in cast.failure.message
    end = h.lines_of(cast)[-1]
    assert end["data"]["ok"] is False
    assert end["data"]["kind"] == "utility_exit"
    assert end["data"]["error"] == cast.failure.message
    manifest = read(cast, "manifest.json")
    assert manifest["failure"]["kind"] == "utility_exit"
    assert manifest["status"] == "failed"


def test_r29_files_of_a_loop_are_named_after_the_work_item(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(2, refuse=[1]))
    cast.run()
    keys = ["1-WI-1", "2-WI-1", "3-WI-2"]
    assert files(cast) == ALWAYS | {
        "sockets/Socket-1/1.md", "sockets/Socket-1/1.json",
        *[f"sockets/Socket-{n}/{key}.md" for n in (2, 3) for key in keys],
        *[f"sockets/Socket-3/{n}.json" for n in (1, 2, 3)],
        "sockets/Socket-4/1.md",
    }  # fmt: skip
    start = next(line["data"] for line in h.lines_of(cast) if line["data"].get("itemKey") == "WI-1")
    assert start["itemLabel"] == start["itemLabelShort"] == "Part 1"
    before = files(cast)
    assert cast.export.contexts() == cast.run_dir / "contexts"
    assert files(cast) - before == {
        "contexts/Socket-1-1.md", "contexts/Socket-4-1.md",
        *[f"contexts/Socket-{n}-{key[2:]}-{key[0]}.md" for n in (2, 3) for key in keys],
    }  # fmt: skip
    context = (cast.run_dir / "contexts/Socket-2-WI-1-2.md").read_text()
    assert "once more" in context  # the follow-up is part of the prompt
    assert all(part.text in context for part in cast.steps[3].prompt.parts)


def test_r29_files_of_an_item_without_a_key_are_named_after_its_index(tmp_path):
    document = h.config(
        {"Socket-1": h.at("Each", ("always", "Socket-1"), foreach={"items": "state.list", "as": "n"}, advance={})},
        {"Each": h.agent("{{item}}")},
    )
    document["loadouts"]["T"]["sockets"]["Socket-0"] = h.at("Give", ("always", "Socket-1"))
    document["loadouts"]["T"]["entry"] = "Socket-0"
    document["materia"]["Give"] = h.python('print(\'{"state": {"list": [7, 8]}}\')', parse="json")
    cast = h.start(tmp_path, document, lambda: "x")
    assert cast.run() == "complete"
    assert {"sockets/Socket-1/1-0.md", "sockets/Socket-1/2-1.md"} <= files(cast)
    cast.export.contexts()
    assert "contexts/Socket-1-1-2.md" in files(cast)


def test_r29_refused_answers_and_drafts_are_kept(tmp_path):
    document = h.one_config(h.agent("D", multiTurn=True), parse="json")
    cast = h.start(tmp_path, document, h.Until("no json", kinds=["finalize"]))
    cast.run()
    for go_on in (
        lambda: cast.reply("draft one"),
        lambda: cast.refine("shorter"),
        lambda: cast.reply("draft two"),
        cast.accept,
        lambda: cast.reply('{"context": "c"}'),
        cast.run,
    ):
        go_on()
    base = "sockets/Socket-1/1"
    assert files(cast) == ALWAYS | {
        f"{base}.refinement-1.md", f"{base}.refinement-2.md", f"{base}.refused-3.md", f"{base}.md", f"{base}.json",
    }  # fmt: skip
    assert h.types_of(cast) == [
        "cast_start", "socket_start", "socket_refinement", "refinement_message", "socket_refinement",
        "refinement_final", "same_socket_recovery_start", "same_socket_recovery_retry", "socket_complete", "cast_end",
    ]  # fmt: skip
    by_type = {line["type"]: line["data"] for line in h.lines_of(cast)}
    assert by_type["socket_refinement"]["refinementTurn"] == 2
    assert by_type["same_socket_recovery_start"]["validationKind"] == "json_parse"
    assert by_type["same_socket_recovery_start"]["artifact"] == f"{base}.refused-3.md"
    kinds = [entry["kind"] for entry in read(cast, "manifest.json")["entries"]]
    assert kinds == ["socket_refinement", "socket_refinement", "socket_output", "socket_output"]


def test_r30_manifest_and_usage_file_agree_with_the_journal(tmp_path):
    usage = {"Plan": Usage(10, 5, 0.5), "Build": Usage(3, 2, 0.25), "Check": None}
    texts = h.loop_agents(2)

    class Counting:
        name = "counting"

        def answer(self, turn):
            text = {"Plan": texts["Plan"](), "Build": "b", "Check": h.YES, "Tell": "t"}[turn.materia_id]
            return Reply(text, usage.get(turn.materia_id))

    cast = h.start(tmp_path, h.loop_config(artifacts="all"), Counting())  # R63
    assert not (cast.run_dir / "manifest.json").exists()
    cast.run()
    manifest, report = read(cast, "manifest.json"), read(cast, "usage.json")
    assert manifest["castId"] == cast.id
    assert manifest["steps"] == len(cast.steps) == 6
    assert manifest["visits"] == {"Socket-1": 1, "Socket-2": 2, "Socket-3": 2, "Socket-4": 1}
    assert manifest["cursors"] == {"workItemIndex": 2}
    assert manifest["edgeTraversals"]["Socket-1->Socket-2"] == 1
    assert manifest["journalBytes"] == (cast.run_dir / "events.jsonl").stat().st_size
    named = {entry["artifact"] for entry in manifest["entries"]}
    assert named == {name for name in files(cast) if name.endswith(".md")}
    build = next(entry for entry in manifest["entries"] if entry["kind"] == "socket_output" and entry["visit"] == 2)
    assert build["itemKey"] == "WI-2"
    assert report["tokens"] == {"input": 16, "output": 9, "total": 25}
    assert report["cost"] == {"total": 1.0}
    assert report["bySocket"]["Socket-2"] == {"input": 6, "output": 4, "total": 10, "cost": 0.5}
    assert report["byMateria"]["Plan"]["total"] == 15
    assert report["byTask"]["WI-1"]["total"] == 5
    before = {name: (cast.run_dir / name).read_bytes() for name in files(cast) - {"cast.lock"}}
    cast.close()
    for name in ("manifest.json", "usage.json", "contexts/Socket-4-1.md"):
        (cast.run_dir / name).unlink()
    resumed = resume_cast(cast.run_dir)
    resumed.export.derived_files()
    assert {name: (cast.run_dir / name).read_bytes() for name in files(cast) - {"cast.lock"}} == before


def test_r30_derived_files_are_written_only_at_pauses(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(2))
    for _ in range(3):
        cast.step()
    assert not (cast.run_dir / "manifest.json").exists()
    cast.run(steps=1)
    assert read(cast, "manifest.json")["status"] == "ready"
    person = h.start(tmp_path, h.chain_config(1))
    person.step()
    assert read(person, "manifest.json")["status"] == "waiting"


def sizes(tmp_path, count: int) -> tuple[int, int, int]:
    """Return the number of visits of a finished cast, and the sizes of its outputs and of all other files, in bytes."""
    cast = h.start(tmp_path, h.loop_config(limits={"maxEdgeTraversals": 10**6}), h.loop_agents(count))
    assert cast.run() == "complete"
    outputs = {turn.artifact for step in cast.steps for turn in step.turns}
    inside = {name: (cast.run_dir / name).stat().st_size for name in files(cast)}
    content = sum(size for name, size in inside.items() if name in outputs)
    return len(cast.steps), content, sum(inside.values()) - content


@pytest.mark.parametrize("count", [40])
def test_r30_storage_overhead_of_a_visit_does_not_grow(tmp_path, count):
    """Prompts repeat outputs because they show the growing context, so each prompt may contain only a part of the
    state.
    """
    visits, _, overhead = sizes(tmp_path, count)
    twice, _, overhead_twice = sizes(tmp_path, 2 * count)
    assert overhead / visits < 5_000
    assert overhead_twice / twice < 5_000
    assert overhead_twice < 2.2 * overhead


def test_r29_new_directories_are_unique_even_if_the_clock_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr("materia_nb.store.rundir.time.time_ns", lambda: 1_700_000_000_999_000_000)
    names = [new_run_dir(tmp_path).name for _ in range(3)]
    assert names == ["2023-11-14T22-13-20-999Z", "2023-11-14T22-13-21-000Z", "2023-11-14T22-13-21-001Z"]


@pytest.mark.parametrize("place", ["the casts directory is a file", "the config cannot be written"])
def test_disk_error_before_a_cast_begins_does_not_suggest_a_resume(tmp_path, monkeypatch, place):
    if place == "the config cannot be written":

        def refused(*_, **__):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("materia_nb.store.rundir.replace_file", refused)
    else:
        (tmp_path / "casts").write_text("")
    with pytest.raises(MateriaError) as caught:
        h.start(tmp_path, h.chain_config(1))
    assert caught.value.kind == "disk"
    assert caught.value.where.startswith(str(tmp_path / "casts"))
    assert "resume" not in caught.value.hint
    assert "nothing was recorded" in caught.value.hint


def test_r43_outputs_of_a_discarded_branch_are_written(tmp_path):
    cast = h.start(tmp_path, h.chain_config(5), lambda turn: f"{turn.socket_id} {turn.visit}")
    for _ in range(3):
        cast.step()
    cast.back(1)
    cast.run()
    named = {line["data"]["artifact"] for line in h.lines_of(cast) if "artifact" in line["data"]}
    assert len(named) == 7
    assert named <= files(cast)
