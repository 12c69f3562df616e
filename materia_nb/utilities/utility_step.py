"""A utility's step: the program that its materia names, its JSON document on stdin, its output, and how it failed (R23-R25).

The scripts that come with the package are copied into the user's profile. A person can read and change a copy. A manifest
beside the copies says which file is the copy of which script, and the hash of the packaged script that it was made from.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.errors import MateriaError, did_you_mean, scrubbed, scrubbed_bytes, secret_arguments
from materia_nb.file_io import read_plain, replace_file
from materia_nb.handoff.base import BASE, Scope
from materia_nb.jsonvalue import JSON, Object, as_list, as_object
from materia_nb.loadout.config_files import read_config, write_config
from materia_nb.loadout.graph import Materia
from materia_nb.loadout.materia import SHIPPED_SCRIPTS, script_file
from materia_nb.utilities.process import KEEP_BYTES, ProcessResult, run_process

PACKAGED: Final = Path(__file__).with_name("shipped")
SCRIPT_FOLDER: Final = "utilities"
"""The name of the directory of copies in a profile."""

MANIFEST: Final = ".materia-shipped-utilities.json"

_PI_MANIFEST: Final = ".pi-materia-shipped-utilities.json"
"""What the reference engine keeps beside its own copies, which are scripts for Node."""

_HASH_SHOWN: Final = 8


class Copy(NamedTuple):
    """The copy of a shipped script in a profile: where it is, and how it stands."""

    script: str
    path: Path
    stands: Literal["as shipped", "changed", "of another version", "not there", "set aside"]
    """``set aside``: a person changed it, and since an update the new script is run from a file beside it."""


def find_script(name: str, folders: Sequence[Path] = ()) -> Path | None:
    """Find the file to run for a shipped script, None when there is none.

    The first folder that has it provides it: a folder with a manifest by its copy, if that was made
    from the script of this package, a folder without one by the file of that name. Else the
    packaged script itself is run, so an outdated copy that could not be replaced never is.
    """
    for folder in folders:
        path: Path | None = folder / name
        if name in SHIPPED_SCRIPTS and (folder / MANIFEST).exists():
            path = _copy(folder, _manifest(folder).get(name), _hash(_packaged(name)))
        if path is not None and path.is_file():
            return path.absolute()
    return PACKAGED / name if name in SHIPPED_SCRIPTS else None


def _script_names(folders: Sequence[Path] = ()) -> list[str]:
    """List the scripts that can be named."""
    own = {path.name for folder in folders if folder.is_dir() for path in folder.glob("*.py")}
    return sorted({*SHIPPED_SCRIPTS, *own})


def copies(folder: Path) -> list[Copy]:
    """Tell how the copies of the shipped scripts in ``folder`` stand; nothing is changed."""
    entries = _manifest(folder)
    return [_stands(folder, name, entries.get(name)) for name in SHIPPED_SCRIPTS]


def _stands(folder: Path, name: str, entry: JSON) -> Copy:
    new = _hash(_packaged(name))
    made_from = as_object(entry).get("sha256")
    path = _copy(folder, entry, made_from) if isinstance(made_from, str) else None
    path = path or folder / name
    try:
        now = _hash(read_plain(path, follow=True))
    except OSError:
        return Copy(name, path, "not there")
    if now == new:
        aside = path.name != name and (folder / name).is_file()
        return Copy(name, folder / name, "set aside") if aside else Copy(name, path, "as shipped")
    return Copy(name, path, "of another version" if now == made_from else "changed")


def foreign_scripts(folder: Path) -> list[str]:
    """List the scripts that a profile of the reference engine has copies of."""
    try:
        document = as_object(read_config(folder / SCRIPT_FOLDER / _PI_MANIFEST))
    except MateriaError:
        return []
    listed = document.get("scripts", document)
    return sorted(listed) if isinstance(listed, dict) else []


def synchronize(folder: Path) -> bool:
    """Bring the copies of the shipped scripts in ``folder`` up to date; whether that was possible.

    A copy that is as it was made is replaced. One that a person changed stays as it is, and the new
    script is written beside it with a part of its hash in its name. Every file is replaced as a whole, so
    kernels that do this at the same time come to the same result. Where the folder cannot be
    written nothing is raised: :func:`find_script` then gives the packaged scripts.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before = _manifest(folder)
        after = {**before, **{name: _place(folder, name, before.get(name)) for name in SHIPPED_SCRIPTS}}
        if after != before:
            write_config(folder / MANIFEST, {"scripts": after})
    except (OSError, MateriaError):
        return False
    return True


def _place(folder: Path, name: str, entry: JSON) -> JSON:
    """Make sure that there is a copy of a packaged script, and return its entry in the manifest."""
    content = _packaged(name)
    new = _hash(content)
    copy = _copy(folder, entry, new)
    if copy is not None and copy.is_file():
        return entry
    path = folder / name
    if path.exists() and _hash(read_plain(path, follow=True)) not in {new, as_object(entry).get("sha256")}:
        path = folder / f"{PurePath(name).stem}.{new[:_HASH_SHOWN]}.py"
    # A file that has the hash of this script in its name was made from it, and may have been changed since.
    if path.name == name or not path.exists():
        replace_file(path, content)
    return {"file": path.name, "sha256": new}


def _copy(folder: Path, entry: JSON, current: str) -> Path | None:
    """Return the copy that an entry of the manifest names, None when it is of another script than ``current``."""
    fields = as_object(entry)
    name = fields.get("file")
    if not isinstance(name, str) or PurePath(name).name != name or fields.get("sha256") != current:
        return None
    return folder / name


def _manifest(folder: Path) -> Object:
    """Read which copies there are; nothing is known when the manifest is missing or damaged."""
    try:
        return as_object(as_object(read_config(folder / MANIFEST)).get("scripts"))
    except MateriaError:
        return {}


def _packaged(name: str) -> bytes:
    return read_plain(PACKAGED / name, follow=True)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


INTERPRETERS: Final = frozenset({"python", "python3", "node", "bash", "sh", "ruby", "perl", "deno", "bun"})
"""Programs whose first argument is a script (R24)."""

_SHIPPED_KIND: Final = "shippedUtility"

# After one of these the next argument is not a script file but code, a module or a mode.
_CODE_FOLLOWS: Final = frozenset({"-", "-c", "-e", "-m", "-p", "-s", "--eval", "--print", "eval"})


def resolve_command(materia: Materia, *, utilities: Sequence[Path] = ()) -> list[str]:
    """Say what to run for a utility materia: its command, or the shipped script that it names.

    A relative program, or a relative script after an interpreter name (options between them are
    skipped), that exists beside the owning config file is made absolute; everything else is
    left as written (R24). ``command`` wins over ``script``.

    Args:
        materia: the utility; ``materia.owner`` is the directory of its config file.
        utilities: directories to look for a shipped script in before the package, see
            :func:`~materia_nb.utilities.utility_step.find_script` (R25).

    Raises:
        MateriaError: kind ``utility_not_started``: neither command nor script, or no such script.
    """
    if materia.command:
        return _beside_config(materia.command, materia.owner)
    if materia.script is not None:
        return _shipped(materia, utilities)
    raise _refused(
        materia, "has neither a command nor a script", 'give it "command": ["program", "argument"]'
    )


def moved(definition: Mapping[str, JSON], owner: Path | None, folder: Path) -> dict[str, JSON]:
    """Return the definition of a utility so that a config in ``folder`` runs the same as one in ``owner`` (R24)."""
    command = _argv(definition)
    if owner == folder or not command:
        return dict(definition)
    places = zip(command, _beside_config(command, owner), strict=True)
    argv = [os.path.relpath(now, folder.absolute()) if now != was else was for was, now in places]
    return {**definition, "command": argv}


def beside_config(definition: Mapping[str, JSON], owner: Path | None) -> dict[str, JSON]:
    """Return the definition of a utility with what lies beside its config named by whole paths (R24)."""
    command = _argv(definition)
    return {**definition, "command": _beside_config(command, owner)} if command else dict(definition)


def missing_program(definition: Mapping[str, JSON], owner: Path | None, project: Path) -> str | None:
    """Return the program or script that a utility names and that is not on this machine; None when all is there.

    Args:
        definition: the materia as written.
        owner: the directory of its config file, where they are looked for first (R24).
        project: the directory that the utility works in.
    """
    argv = _argv(beside_config(definition, owner))
    if not argv:
        return None
    program = argv[0]
    try:
        there = (project / program).is_file() if os.sep in program else shutil.which(program) is not None
        if not there:
            return program
        place = _script_place(argv) if PurePath(program).name in INTERPRETERS else None
        if place is not None and PurePath(argv[place]).suffix and not (project / argv[place]).exists():
            return argv[place]
    except (OSError, ValueError):  # what can be the name of no file is left to the run to tell
        return None
    return None


def _argv(definition: Mapping[str, JSON]) -> list[str]:
    """The command of a definition; empty when there is none, or none that could be run."""
    command = as_list(definition.get("command"))
    return command if all(isinstance(one, str) for one in command) else []


def _beside_config(command: Sequence[str], owner: Path | None) -> list[str]:
    argv = list(command)
    if owner is None:
        return argv
    place = _script_place(argv) if PurePath(argv[0]).name in INTERPRETERS else None
    for index in (0, place):
        if index is not None and (found := _file_beside(owner, argv[index])):
            argv[index] = str(found)
    return argv


def _script_place(argv: Sequence[str]) -> int | None:
    """Find the argument that an interpreter would run as a script."""
    for index, argument in enumerate(argv[1:], start=1):
        if argument in _CODE_FOLLOWS:
            return None
        if not argument.startswith("-") and argument != "run":  # deno run x.ts
            return index
    return None


def _file_beside(owner: Path, name: str) -> Path | None:
    if not name or PurePath(name).is_absolute():
        return None
    path = owner.absolute() / name
    try:
        return path if path.is_file() else None
    except (OSError, ValueError):  # code given as an argument is seldom a possible file name
        return None


def _shipped(materia: Materia, utilities: Sequence[Path]) -> list[str]:
    script = materia.script or {}
    kind, name = script.get("kind"), script.get("name")
    if kind != _SHIPPED_KIND:
        raise _refused(
            materia, f"has a script of the unknown kind {kind!r}", f'the one kind there is: "{_SHIPPED_KIND}"'
        )
    # A name, never a path: a config cannot reach out of the directories of scripts.
    wanted = script_file(name)
    if wanted is None:
        raise _refused(
            materia,
            f"names the script {name!r}",
            'a shipped script is named by its file name, as "detect-vcs.py"',
        )
    found = find_script(wanted, utilities)
    if found is None:
        raise _refused(
            materia,
            f"names the shipped script {wanted!r}, which does not exist",
            did_you_mean(wanted, _script_names(utilities)),
        )
    return [sys.executable or "python3", str(found)]


def _refused(materia: Materia, what: str, hint: str) -> MateriaError:
    return MateriaError(
        f"Utility {materia.id!r} {what}", where=f"materia.{materia.id}", hint=hint, kind="utility_not_started"
    )


_FailureKind: TypeAlias = Literal["utility_exit", "utility_timeout", "utility_not_started", "interrupted"]


@dataclass(frozen=True, slots=True)
class UtilityFailure:
    """Why a utility's step failed. ``interrupted`` is no fault of the utility: its step may run again."""

    kind: _FailureKind
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
    kind: _FailureKind
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
