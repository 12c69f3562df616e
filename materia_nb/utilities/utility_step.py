"""A utility's step: its JSON document on stdin, its output, and how it failed if it did (R23)."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from materia_nb.errors import MateriaError
from materia_nb.handoff.protocol import BASE, Scope
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.graph import Materia
from materia_nb.secrets import scrubbed, scrubbed_bytes, secret_arguments
from materia_nb.utilities.process import KEEP_BYTES, ProcessResult, run_process
from materia_nb.utilities.scripts import resolve_command

FailureKind: TypeAlias = Literal["utility_exit", "utility_timeout", "utility_not_started", "interrupted"]


@dataclass(frozen=True, slots=True)
class UtilityFailure:
    """Why a utility's step failed. ``interrupted`` is no fault of the utility: its step may run again."""

    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True)
class UtilityResult:
    """What a utility did. ``stdout`` and ``stderr`` are text, undecodable bytes as U+FFFD.

    ``told`` is how its process ended, for the error about an output that cannot be used.
    """

    process: ProcessResult
    timeout_ms: int
    stdout: str
    stderr: str
    failure: UtilityFailure | None
    told: str = ""

    @property
    def ok(self) -> bool:
        """Whether stdout is the utility's result."""
        return self.failure is None


def stdin_document(  # noqa: PLR0913 - one argument for each key
    *,
    materia: Materia,
    project: Path,
    scope: Scope = BASE,
    run_dir: Path,
    request: str,
    cast_id: str,
    socket_id: str,
    state: Mapping[str, JSON],
    item: JSON = None,
    item_key: str | None = None,
    item_label: str | None = None,
    cursor: tuple[str, int] | None = None,
    cursors: Mapping[str, int] | None = None,
) -> dict[str, JSON]:
    """Make the object that a utility reads on stdin (R23).

    Args:
        materia: the utility; gives materiaId, materiaLabel and params.
        project: the project directory, which is the base scope.
        scope: where it works (P8).
        run_dir: the directory of this cast's artifacts.
        request: what the cast was asked to do.
        cast_id: the cast.
        socket_id: the socket.
        state: the state of the cast.
        item: the current work item; None without one.
        item_key: its key, such as ``WI-1``.
        item_label: its title.
        cursor: name and index of the cursor that moves over the items; None outside an iterator.
        cursors: all cursors.
    """
    folder = project / scope.cwd
    return {
        "cwd": str(folder),
        "runDir": str(run_dir),
        "request": request,
        "castId": cast_id,
        "socketId": socket_id,
        "materiaId": materia.id,
        "materiaLabel": materia.label,
        "params": dict(materia.params),
        "state": dict(state),
        "item": item,
        "itemKey": item_key,
        "itemLabel": item_label,
        "cursor": None if cursor is None else {"name": cursor[0], "index": cursor[1]},
        "cursors": dict(cursors or {}),
        "executionScope": scope._replace(cwd=str(folder)).as_json(),
        "baseScope": BASE._replace(cwd=str(project)).as_json(),
    }


def run_utility(
    materia: Materia,
    document: Mapping[str, JSON],
    *,
    cwd: Path,
    utilities: Sequence[Path] = (),
    artifacts: tuple[str, str] = ("", ""),
    stop: threading.Event | None = None,
) -> UtilityResult:
    """Run a utility on its stdin document, in the project directory or that of its scope (R23, P8).

    It always returns, also when the command cannot be found or started: the result says so.
    What stdout means is not decided here.

    Args:
        materia: the utility.
        document: what :func:`stdin_document` made.
        cwd: the directory to run in.
        utilities: where shipped scripts are, see :func:`resolve_command`.
        artifacts: where stdout and stderr are going to be kept, to be named in a failure.
        stop: ends the utility when set; the failure is then ``interrupted``.

    Raises:
        KeyboardInterrupt: when interrupted in the main thread, after the process group has ended.
        MateriaError: kind ``invalid_document``: the document is not JSON.
    """
    stdin = _encode(document)
    timeout_ms = materia.timeout_ms
    try:
        argv = resolve_command(materia, utilities=utilities)
    except MateriaError as error:
        process = ProcessResult.not_started(
            materia.command, error.what + (f" ({error.hint})" if error.hint else "")
        )
    else:
        process = _without_keys(
            run_process(argv, stdin=stdin, cwd=cwd, timeout_s=timeout_ms / 1000, stop=stop)
        )
    return UtilityResult(
        process=process,
        timeout_ms=timeout_ms,
        stdout=process.stdout.decode(errors="replace"),
        stderr=process.stderr.decode(errors="replace"),
        failure=_failure(str(document.get("socketId", "")), process, timeout_ms, artifacts),
        told="; ".join(
            [f"Its command ended with {process.ending}: {process.command}", *_left(process, artifacts)]
        ),
    )


def command_record(materia: Materia, result: UtilityResult, artifacts: tuple[str, str]) -> dict[str, JSON]:
    """Make what is kept of a run: the body of ``<visit>.command.json`` and of ``utility_command`` (R29)."""
    process = result.process
    record: dict[str, JSON] = {
        "materia": materia.id,
        "materiaLabel": materia.label,
        "command": list(process.argv),
        "code": process.code,
        "signal": process.signal,
        "timedOut": process.timed_out,
        "timeoutMs": None if process.in_place else result.timeout_ms,
        "stdoutArtifact": artifacts[0],
        "stderrArtifact": artifacts[1],
        "stdoutTruncated": process.stdout_truncated,
        "stderrTruncated": process.stderr_truncated,
        "maxBytes": KEEP_BYTES,
        "seconds": round(process.seconds, 6),
    }
    if process.start_error is not None:
        record["startError"] = process.start_error
    return record


def _without_keys(process: ProcessResult) -> ProcessResult:
    """Cut keys out of a command and of what it wrote, before anything is shown, kept or shortened."""
    more = secret_arguments(process.argv)
    return replace(
        process,
        argv=tuple(scrubbed(part, *more) for part in process.argv),
        start_error=process.start_error and scrubbed(process.start_error, *more),
        stdout=scrubbed_bytes(process.stdout, *more, end=process.stdout_truncated),
        stderr=scrubbed_bytes(process.stderr, *more, end=process.stderr_truncated),
    )


def _failure(
    socket: str, process: ProcessResult, timeout_ms: int, artifacts: tuple[str, str]
) -> UtilityFailure | None:
    kind: FailureKind
    if process.ok:
        return None
    if not process.started:
        kind, how = "utility_not_started", f"could not be started: {process.start_error}"
    elif process.timed_out:
        kind, how = "utility_timeout", f"took longer than {timeout_ms} ms and was ended ({process.ending})"
    elif process.stopped:
        kind, how = "interrupted", f"was interrupted ({process.ending})"
    else:
        kind, how = "utility_exit", f"ended with {process.ending}"
    first = f"Utility command of {socket or 'the socket'} {how}: {process.command or '(none)'}"
    return UtilityFailure(kind, "; ".join([first, *_left(process, artifacts)]))


def _left(process: ProcessResult, artifacts: tuple[str, str]) -> list[str]:
    """Say what a process has left behind (R23)."""
    if not process.started:
        return []
    kept = zip(("stdout", "stderr"), artifacts, strict=True)
    return [
        *(["it ran inside this kernel, where no time limit can be kept"] if process.in_place else []),
        f"stderr: {process.stderr_summary or '(empty)'}",
        *(f"{name} kept in {path}" for name, path in kept if path),
    ]


def _encode(document: Mapping[str, JSON]) -> bytes:
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise MateriaError(
            f"The input of a utility cannot be written as JSON: {error}",
            hint="look at what was assigned to the state",
            kind="invalid_document",
        ) from error
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can only escape
        return json.dumps(document).encode() + b"\n"
