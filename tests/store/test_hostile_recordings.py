"""Test recordings with every kind of end that the reference engine has, and forged recordings."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb.cast import Cast, open_cast
from materia_nb.errors import MateriaError


class Recording:
    """Writes a run directory in the format of the reference engine."""

    def __init__(self, path: Path, document: h.Json, **start) -> None:
        self.path, self.visits = path, {}
        path.mkdir(parents=True)
        (path / "config.resolved.json").write_text(json.dumps(document))
        self.event("cast_start", request="r", loadout="T", nativeSession=True, **start)

    def event(self, kind: str, /, **data) -> Recording:
        with (self.path / "events.jsonl").open("a") as file:
            file.write(json.dumps({"ts": 1_700_000_000_000, "type": kind, "data": data}) + "\n")
        return self

    def start(self, socket: str, **data) -> Recording:
        self.visits[socket] = self.visits.get(socket, 0) + 1
        return self.event("socket_start", socket=socket, materia="M", visit=self.visits[socket], **data)

    def file(self, socket: str, text: str | bytes, suffix: str = "") -> str:
        name = f"sockets/{socket}/{self.visits.get(socket, 1)}{suffix}.md"
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    def done(self, socket: str, text: str | bytes, **data) -> Recording:
        key = data.get("itemKey")
        artifact = self.file(socket, text, f"-{key}" if key else "")
        return self.event("socket_complete", socket=socket, materia="M", artifact=artifact, entryId="e", **data)

    def end(self, error: str | None = None, **data) -> Recording:
        return self.event("cast_end", **({"ok": True} if error is None else {"ok": False, "error": error}), **data)

    def open(self) -> Cast:
        cast = open_cast(self.path)
        assert [visit[:2] for visit in cast.route] == [
            (line["data"]["socket"], line["data"]["visit"])
            for line in h.lines_of(self.path)
            if line["type"] == "socket_start"
        ]
        return cast


@pytest.fixture
def text(tmp_path):
    return Recording(tmp_path / "run", h.chain_config(3))


@pytest.fixture
def judged(tmp_path):
    document = h.config(
        {"Socket-1": h.at("M", ("satisfied", "Socket-2"), parse="json"), "Socket-2": h.at("M")},
        {"M": h.agent()},
    )
    return Recording(tmp_path / "run", document)


def utility(tmp_path) -> Recording:
    return Recording(tmp_path / "run", h.one_config(h.python("pass", parse="json"))).start("Socket-1")


RECOVERY = {"reason": "turn_failure", "key": "k", "attempt": 1, "maxAttempts": 1, "socket": "Socket-1"}
REPAIR = {**RECOVERY, "recoveryKind": "json_output_repair", "validationKind": "json_parse"}


@pytest.mark.parametrize(
    "command, kind",
    [
        ({"code": None, "signal": "SIGTERM", "timedOut": True}, "utility_timeout"),
        ({"code": 3, "signal": None, "timedOut": False}, "utility_exit"),
        ({"code": None, "signal": "SIGKILL", "timedOut": False}, "utility_exit"),
        ({"code": 0, "signal": None, "timedOut": False}, "invalid_output"),
    ],
)
def test_r23_failed_utility_has_its_failure_kind(tmp_path, command, kind):
    recording = utility(tmp_path).event("utility_command", socket="Socket-1", command=["x"], **command)
    if kind == "invalid_output":
        recording.file("Socket-1", "no json")
    cast = recording.end("it failed so").open()
    assert (cast.status, cast.failure.kind, cast.failure.message) == ("failed", kind, "it failed so")
    assert cast.now.differences == ()
    assert cast.steps[0].output == ("no json" if kind == "invalid_output" else None)


def test_failed_agent_is_read_from_a_recording(text):
    cast = text.start("Socket-1").end("provider outage", entryId="e", socket="Socket-1").open()
    assert (cast.status, cast.failure.kind, cast.failure.socket) == ("failed", "recorded_failure", "Socket-1")
    assert cast.now.differences == ()


def test_recording_of_a_recovery_after_two_failures_is_read(text):
    text.start("Socket-1").event("same_socket_recovery_start", **RECOVERY, error="outage")
    text.event("same_socket_recovery_retry", **RECOVERY).event("same_socket_recovery_exhausted", **RECOVERY)
    cast = text.end("Same-socket recovery exhausted").open()
    assert (cast.failure.kind, cast.now.differences) == ("agent_error", ())


def test_r19_stored_refused_answers_are_read(judged):
    judged.start("Socket-1").file("Socket-1", "still no json")
    judged.event("same_socket_recovery_start", **REPAIR, error="No JSON found").event(
        "same_socket_recovery_exhausted", **REPAIR
    )
    cast = judged.end("Recovery exhausted").open()
    assert (cast.failure.kind, cast.failure.message) == ("repair_exhausted", "Recovery exhausted")
    assert cast.steps[0].output == "still no json"
    assert cast.steps[0].reading.issues
    assert cast.now.differences == ()


def test_answer_refused_only_in_the_recording_is_reported_as_a_difference(judged):
    judged.start("Socket-1").file("Socket-1", h.YES)
    cast = judged.end("Invalid JSON").open()
    (difference,) = cast.now.differences
    assert (difference.step, difference.recorded) == (1, "failed (Invalid JSON)")
    assert difference.ours == "continues to Socket-2"
    assert cast.status == "failed"


@pytest.mark.parametrize("error", ["aborted", "Aborted"])
def test_aborted_recording_is_read(text, error):
    cast = text.start("Socket-1").done("Socket-1", "x").start("Socket-2").end(error).open()
    assert (cast.status, cast.now.differences) == ("aborted", ())


def test_r20_budget_stop_without_usage_per_output_is_read(tmp_path):
    recording = Recording(tmp_path / "run", h.chain_config(3) | {"budget": {"maxTokens": 100}})
    recording.start("Socket-1").done("Socket-1", "x").event("budget_warning", tokens=80)
    recording.event("budget_limit", tokens=130, maxTokens=100)
    cast = recording.end(
        "Budget exceeded", usage={"tokens": {"input": 90, "output": 40}, "cost": {"total": 0.5}}
    ).open()
    assert (cast.status, cast.failure.kind, cast.now.differences) == ("failed", "budget", ())
    assert cast.now.engine.usage[:3] == (90, 40, 0.5)


def test_recorded_retry_of_an_agent_stays_in_the_same_visit(text):
    text.start("Socket-1").end("outage").event("cast_recast", socket="Socket-1", visit=1, previousFailure="outage")
    cast = text.done("Socket-1", "x").start("Socket-2").open()
    assert (cast.status, cast.now.differences, cast.runner.messages) == ("waiting", (), [])
    assert cast.steps[0].output == "x"


def test_recorded_retry_of_a_utility_starts_a_new_visit(tmp_path):
    recording = utility(tmp_path).end("no").event("cast_recast", socket="Socket-1", visit=1)
    cast = recording.start("Socket-1").done("Socket-1", "{}").end().open()
    assert (cast.status, cast.now.differences) == ("complete", ())
    assert [visit[1] for visit in cast.route] == [1, 2]


def test_recorded_retry_after_a_limit_continues_at_the_blocked_socket(tmp_path):
    document = h.config({"Socket-1": h.at("M", ("always", "Socket-1", 1))}, {"M": h.agent()})
    recording = Recording(tmp_path / "run", document)
    recording.start("Socket-1").done("Socket-1", "a").start("Socket-1").done("Socket-1", "b")
    recording.end("Materia edge traversal limit exceeded for Socket-1->Socket-1 (2/1).")
    assert recording.open().failure.kind == "edge_traversals_exhausted"
    recording.event("cast_revive", castId="c", traversalContext={"from": "Socket-1", "to": "Socket-1"})
    cast = recording.start("Socket-1").open()
    assert (cast.status, cast.now.differences) == ("waiting", ())


def test_recording_in_which_a_retry_restarts_a_socket_is_read(judged):
    judged.start("Socket-1").file("Socket-1", "nothing")
    judged.event("same_socket_recovery_exhausted", **REPAIR).end("exhausted")
    judged.event("cast_revive", castId="c", recoveryContext={"socket": "Socket-1"})
    judged.event("cast_recast", socket="Socket-1", visit=1)
    cast = judged.done("Socket-1", h.YES).start("Socket-2").done("Socket-2", "x").end().open()
    assert (cast.status, cast.now.differences) == ("complete", ())


def test_refinements_and_a_repaired_final_result_are_read(tmp_path):
    recording = Recording(tmp_path / "run", h.one_config(h.agent("D", multiTurn=True), parse="json"))
    recording.start("Socket-1")
    for turn in (1, 2, 3):
        name = recording.file("Socket-1", f"draft {turn}", f".refinement-{turn}-entry")
        recording.event("socket_refinement", socket="Socket-1", artifact=name, refinementTurn=turn)
    recording.event("same_socket_recovery_start", **{**REPAIR, "mode": "finalization"}, error="no JSON")
    recording.event("same_socket_recovery_retry", **REPAIR)
    cast = recording.done("Socket-1", '{"context": "c"}', finalizedRefinement=True, refinementTurn=3).end().open()
    assert [turn.text for turn in cast.steps[0].turns] == [
        "draft 1",
        "draft 2",
        "draft 3",
        '{"context": "c"}',
    ]
    assert [turn.mode for turn in cast.steps[0].turns] == ["draft"] * 3 + ["final"]
    assert (cast.status, cast.now.differences, len(cast.now.messages)) == ("complete", (), 1)


def test_final_result_without_a_draft_is_read(tmp_path):
    recording = Recording(tmp_path / "run", h.one_config(h.agent("D", multiTurn=True)))
    cast = recording.start("Socket-1").done("Socket-1", "x").end().open()
    assert (cast.status, cast.now.differences) == ("complete", ())


def test_r21_visit_limit_in_a_recording_is_explained(tmp_path):
    document = h.config({"Socket-1": h.at("M", ("always", "Socket-1"))}, {"M": h.agent()})
    recording = Recording(tmp_path / "run", document).start("Socket-1").done("Socket-1", "a")
    cast = recording.end("Materia socket visit limit exceeded for Socket-1 (2/1).").open()
    assert "this engine counts visits but does not limit them" in cast.now.differences[0].why


def test_recording_with_another_entry_socket_is_reported_as_a_difference(text):
    cast = text.start("Socket-2").done("Socket-2", "x").start("Socket-3").open()
    (difference,) = cast.now.differences
    assert (difference.step, difference.recorded, difference.ours) == (
        1,
        "went to Socket-2",
        "continues to Socket-1",
    )
    assert "entry socket" in difference.why


@pytest.mark.parametrize("status", ["early", "late"])
def test_recording_with_a_different_end_is_reported_as_a_difference(text, status):
    text.start("Socket-1")
    cast = (text.done("Socket-1", "x") if status == "late" else text).end().open()
    (difference,) = cast.now.differences
    assert (difference.step, difference.recorded) == (1, "ended")
    assert cast.status == "complete"


# -- recordings that lie -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "artifact",
    [
        "../../../../../../etc/passwd", "/etc/passwd", "sockets/../../config", "a\0b", "", ".", "sockets", "x" * 5000,
        None, 7, ["x"], {"a": 1}, "link", "pipe", "/dev/zero",
    ],
)  # fmt: skip
def test_invalid_artifacts_become_messages(text, artifact):
    secret = text.path.parent / "config"
    secret.write_text("secret")
    (text.path / "link").symlink_to("/etc/passwd")
    os.mkfifo(text.path / "pipe")
    text.start("Socket-1").event("socket_complete", socket="Socket-1", artifact=artifact)
    cast = text.start("Socket-2").done("Socket-2", "y").open()
    assert len(cast.runner.messages) == 1
    assert "Step 1" in cast.runner.messages[0]
    assert cast.steps[0].output == ""
    assert cast.now.differences == ()
    assert "root:" not in repr(h.facts(cast))


def test_binary_artifact_is_read(judged):
    judged.start("Socket-1").done("Socket-1", bytes(range(256)))
    cast = judged.start("Socket-2").done("Socket-2", b"\xff\xfe").open()
    assert cast.now.differences[0].step == 1
    assert "cannot be used" in cast.now.differences[0].why
    assert cast.steps[1].output == "\ufffd\ufffd"


@pytest.mark.parametrize("socket", ["Socket-9", None, 5, ["Socket-1"], {}, "__proto__"])
def test_unknown_socket_in_a_recording_raises_an_error(text, socket):
    text.event("socket_start", socket=socket, visit=1)
    with pytest.raises(MateriaError, match="which is not in the recorded loadout") as caught:
        open_cast(text.path)
    assert caught.value.kind == "damaged_journal"


def test_missing_or_invalid_config_of_a_recording_raises_an_error(text):
    config = text.path / "config.resolved.json"
    for content in (b"{", b"\xff", b"[" * 100_000):
        config.write_bytes(content)
        with pytest.raises(MateriaError, match="config of the cast") as caught:
            open_cast(text.path)
        assert caught.value.kind == "no_config"
    for content in (
        b"[]",
        b"null",
        b'{"loadouts": 3}',
        b'{"loadouts": {"T": {"entry": "X", "sockets": {}}}}',
    ):
        config.write_bytes(content)
        assert open_cast(text.path).now.problems, "shown as recorded (R41)"
    config.unlink()
    with pytest.raises(MateriaError, match="cannot be read"):
        open_cast(text.path)


def test_folder_without_a_cast_is_refused(tmp_path):
    with pytest.raises(MateriaError, match="run directory does not exist"):
        open_cast(tmp_path / "nowhere")
    with pytest.raises(MateriaError, match="journal cannot be read") as caught:
        open_cast(tmp_path)
    assert caught.value.hint


WILD = [None, True, -1, 2**70, float("inf"), "x", [], {}, {"input": "many", "cost": []}]


KINDS = [
    "cast_start", "socket_start", "socket_complete", "cast_end", "cast_recast", "budget_updated", "budget_set",
    "same_socket_recovery_start", "same_socket_recovery_exhausted", "refinement_message", "utility_command",
]  # fmt: skip


@pytest.mark.parametrize("value", WILD)
@pytest.mark.parametrize("kind", KINDS)
def test_recording_with_fields_of_any_type_never_raises(tmp_path, kind, value):
    """Each field of each event is replaced separately by values of other types."""
    names = (
        "itemKey", "itemLabel", "visit", "usage", "error", "ok", "kind", "text", "maxTokens", "request", "owners",
        "project", "pipeline", "loadout", "engine", "code", "validationKind", "recoveryKind", "next", "hint", "step",
    )  # fmt: skip
    opened = 0
    names = names[(KINDS.index(kind) + WILD.index(value)) % 3 :: 3]
    for name in names:
        recording = Recording(tmp_path / name, h.loop_config())
        recording.event("cast_start", **{name: value}) if kind == "cast_start" else None
        recording.start("Socket-1")
        recording.event(kind, **({"socket": "Socket-2"} | {name: value}))
        recording.done("Socket-1", json.dumps({"workItems": h.items("a")}))
        recording.event("socket_start", socket="Socket-2", **{name: value})
        recording.event(kind, **({"socket": "Socket-2", "artifact": "sockets/Socket-1/1.md"} | {name: value}))
        recording.end("no").event("cast_revive", **{name: value})
        with contextlib.suppress(MateriaError):
            cast = open_cast(recording.path)
            assert len(cast.steps) >= 2
            opened += 1
    assert opened > len(names) / 2


def test_recorded_outputs_of_sockets_that_were_not_started_are_ignored(text):
    text.done("Socket-1", "early").start("Socket-1").done("Socket-3", "of another").done("Socket-1", "x")
    cast = text.done("Socket-1", "twice").start("Socket-2").open()
    assert [step.output for step in cast.steps] == ["twice", None]  # one file: the last one written
    assert len(cast.runner.messages) == 3
    assert cast.now.differences == ()
