"""Runs a utility: resolves its command, writes a JSON document to its stdin, and returns its output (R23-R25).

The shipped scripts are copied to the user's profile, where a person can read and change them. For each script, a
manifest in the same folder records the name of the copy and the hash of the packaged script that was copied.
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
from typing import Final, Literal, NamedTuple

from materia_nb.errors import MateriaError, did_you_mean, redact, redact_bytes, secret_arguments
from materia_nb.file_io import read_plain, replace_file
from materia_nb.jsonvalue import JSON, Object, as_list, as_object
from materia_nb.loadout.config_files import read_config, write_config
from materia_nb.loadout.graph import Materia
from materia_nb.loadout.topology import SHIPPED_SCRIPTS, script_file
from materia_nb.utilities.process import MAX_CAPTURED_BYTES, STDERR_CHARS, ProcessResult, run_process, summarize

PACKAGED_FOLDER: Final = Path(__file__).with_name("shipped")
SCRIPT_FOLDER: Final = "utilities"
"""The directory in a user's profile that contains the copies of the shipped scripts."""

MANIFEST: Final = ".materia-shipped-utilities.json"

_DIGEST_CHARS: Final = 8


class ScriptCopy(NamedTuple):
    """The copy of a shipped script in a user's profile.

    Attributes:
        script: the name of the shipped script.
        path: the path of the copy.
        status: the status of the copy. ``set aside`` means that a person had changed the copy when the package was
            updated. The new version was then written to a separate file, which is used instead.
    """

    script: str
    path: Path
    status: Literal["as shipped", "changed", "of another version", "not there", "set aside"]


def find_script(name: str, folders: Sequence[Path] = ()) -> Path | None:
    """Return the path of the file to run for a shipped script, or None if the script is unknown.

    The folders are searched in order. If no folder contains a usable file, the script in the package is used. In a
    folder with a manifest, only a copy of the current version is usable, so that an outdated copy never runs. In any
    other folder, every file with the name of the script is usable.

    Args:
        name: the file name of the script.
        folders: the folders to search before the package.
    """
    for folder in folders:
        path: Path | None = folder / name
        if name in SHIPPED_SCRIPTS and (folder / MANIFEST).exists():
            path = _copy_path(folder, _read_manifest(folder).get(name), _digest(_read_packaged(name)))
        if path is not None and path.is_file():
            return path.absolute()
    return PACKAGED_FOLDER / name if name in SHIPPED_SCRIPTS else None


def list_copies(folder: Path) -> list[ScriptCopy]:
    """Return the path and the status of each shipped script's copy in ``folder``, without changing any files."""
    entries = _read_manifest(folder)
    return [_read_copy(folder, name, entries.get(name)) for name in SHIPPED_SCRIPTS]


def _read_copy(folder: Path, name: str, entry: JSON) -> ScriptCopy:
    packaged_digest = _digest(_read_packaged(name))
    original = as_object(entry).get("sha256")
    path = _copy_path(folder, entry, original) or folder / name
    try:
        current_digest = _digest(read_plain(path, follow=True))
    except OSError:
        return ScriptCopy(name, path, "not there")
    if current_digest == packaged_digest:
        is_set_aside = path.name != name and (folder / name).is_file()
        return ScriptCopy(name, folder / name, "set aside") if is_set_aside else ScriptCopy(name, path, "as shipped")
    return ScriptCopy(name, path, "of another version" if current_digest == original else "changed")


def synchronize(folder: Path) -> bool:
    """Update the copies of the shipped scripts in ``folder``.

    An unchanged copy is replaced. A copy that a person changed is kept, and the new script is written next to it, with
    the beginning of its hash in the file name. Files are replaced atomically, so several kernels can synchronize at the
    same time.

    Returns:
        False if a file cannot be written. In this case, :func:`find_script` returns the packaged scripts.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        entries = _read_manifest(folder)
        updated_entries = {name: _write_copy(folder, name, entries.get(name)) for name in SHIPPED_SCRIPTS}
        if {**entries, **updated_entries} != entries:
            write_config(folder / MANIFEST, {"scripts": {**entries, **updated_entries}})
    except (OSError, MateriaError):
        return False
    return True


def _write_copy(folder: Path, name: str, entry: JSON) -> JSON:
    """Copy the current version of a script to ``folder``, unless it exists there; return its manifest entry."""
    content = _read_packaged(name)
    digest = _digest(content)
    copy_path = _copy_path(folder, entry, digest)
    if copy_path is not None and copy_path.is_file():
        return entry
    path = folder / name
    if path.exists() and _digest(read_plain(path, follow=True)) not in {digest, as_object(entry).get("sha256")}:
        path = folder / f"{PurePath(name).stem}.{digest[:_DIGEST_CHARS]}.py"
    # A file with the hash in its name is an earlier copy of this version, which a person may have changed.
    if path.name == name or not path.exists():
        replace_file(path, content)
    return {"file": path.name, "sha256": digest}


def _copy_path(folder: Path, entry: JSON, digest: JSON) -> Path | None:
    """Return the path of the copy in a manifest entry, or None if the script that was copied has another hash."""
    fields = as_object(entry)
    name = fields.get("file")
    if not isinstance(name, str) or PurePath(name).name != name or fields.get("sha256") != digest:
        return None
    return folder / name


def _read_manifest(folder: Path) -> Object:
    """Return the entries of the manifest in ``folder``, or an empty dict if the manifest is missing or damaged."""
    try:
        return as_object(as_object(read_config(folder / MANIFEST)).get("scripts"))
    except MateriaError:
        return {}


def _read_packaged(name: str) -> bytes:
    return read_plain(PACKAGED_FOLDER / name, follow=True)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


INTERPRETERS: Final = frozenset({"python", "python3", "node", "bash", "sh", "ruby", "perl", "deno", "bun"})
"""Programs whose first argument that is not an option is a script (R24)."""

_SHIPPED_KIND: Final = "shippedUtility"

# The argument after one of these options is code, a module or a mode, but not a script file.
_CODE_OPTIONS: Final = frozenset({"-", "-c", "-e", "-m", "-p", "-s", "--eval", "--print", "eval"})


def resolve_command(materia: Materia, *, utilities: Sequence[Path] = ()) -> list[str]:
    """Return the command line of a utility: its ``command``, or the command that runs its shipped script.

    The path of a program, or of a script that an interpreter runs, is made absolute if the file exists relative to the
    directory of the utility's config file. All other arguments remain unchanged (R24).

    Args:
        materia: the utility. ``materia.folder`` is the directory of the utility's config file.
        utilities: the directories that :func:`find_script` searches before the package (R25).

    Raises:
        MateriaError: the utility has neither a command nor a script, or the script does not exist
            (``utility_not_started``).
    """
    if materia.command:
        return _with_absolute_paths(materia.command, materia.folder)
    if materia.script is not None:
        return _shipped_command(materia, utilities)
    raise _command_error(materia, "has neither a command nor a script", 'add "command": ["program", "argument"]')


def moved_definition(definition: Mapping[str, JSON], config_folder: Path | None, folder: Path) -> dict[str, JSON]:
    """Return the definition of a utility for a config file in another directory.

    Relative paths in the command are changed so that they still refer to the files in ``config_folder`` (R24).

    Args:
        definition: the definition of the utility.
        config_folder: the directory of the config file that contains the definition; None if there is no config file.
        folder: the directory of the other config file.
    """
    command = _program_arguments(definition)
    if config_folder == folder or not command:
        return dict(definition)
    pairs = zip(command, _with_absolute_paths(command, config_folder), strict=True)
    argv = [os.path.relpath(new, folder.absolute()) if new != old else old for old, new in pairs]
    return {**definition, "command": argv}


def with_absolute_paths(definition: Mapping[str, JSON], config_folder: Path | None) -> dict[str, JSON]:
    """Return the definition of a utility in which paths relative to its config file are made absolute (R24)."""
    command = _program_arguments(definition)
    return {**definition, "command": _with_absolute_paths(command, config_folder)} if command else dict(definition)


def missing_program(definition: Mapping[str, JSON], config_folder: Path | None, project: Path) -> str | None:
    """Return the name of a utility's program or script if it does not exist on this machine, or None if both exist.

    Args:
        definition: the definition of the utility.
        config_folder: the directory of the utility's config file, which is searched first (R24).
        project: the working directory of the utility.
    """
    argv = _program_arguments(with_absolute_paths(definition, config_folder))
    if not argv:
        return None
    program = argv[0]
    try:
        if not ((project / program).is_file() if os.sep in program else shutil.which(program)):
            return program
        index = _script_index(argv)
        if index is not None and PurePath(argv[index]).suffix and not (project / argv[index]).exists():
            return argv[index]
    except (OSError, ValueError):  # an invalid file name is reported when the command runs
        return None
    return None


def _program_arguments(definition: Mapping[str, JSON]) -> list[str]:
    """Return the command in the definition of a utility, or an empty list if the command is missing or invalid."""
    command = as_list(definition.get("command"))
    return command if all(isinstance(argument, str) for argument in command) else []


def _with_absolute_paths(command: Sequence[str], config_folder: Path | None) -> list[str]:
    argv = list(command)
    if config_folder is None:
        return argv
    for index in (0, _script_index(argv)):
        if index is not None and (path := _existing_file(config_folder, argv[index])):
            argv[index] = str(path)
    return argv


def _script_index(argv: Sequence[str]) -> int | None:
    """Return the index of the script that an interpreter runs, or None if the command line does not run a script."""
    if PurePath(argv[0]).name not in INTERPRETERS:
        return None
    for index, argument in enumerate(argv[1:], start=1):
        if argument in _CODE_OPTIONS:
            return None
        if not argument.startswith("-") and argument != "run":  # as in "deno run x.ts"
            return index
    return None


def _existing_file(config_folder: Path, name: str) -> Path | None:
    if not name or PurePath(name).is_absolute():
        return None
    path = config_folder.absolute() / name
    try:
        return path if path.is_file() else None
    except (OSError, ValueError):  # the argument may be code, which is rarely a valid file name
        return None


def _shipped_command(materia: Materia, utilities: Sequence[Path]) -> list[str]:
    script = materia.script or {}
    kind, name = script.get("kind"), script.get("name")
    if kind != _SHIPPED_KIND:
        raise _command_error(materia, f"has a script of an unknown kind: {kind!r}", f'use the kind "{_SHIPPED_KIND}"')
    # Only a file name is allowed, so that a config cannot name files outside the script directories.
    file_name = script_file(name)
    if file_name is None:
        raise _command_error(materia, f"names the invalid script {name!r}", 'use a file name such as "detect-vcs.py"')
    path = find_script(file_name, utilities)
    if path is None:
        names = {path.name for folder in utilities if folder.is_dir() for path in folder.glob("*.py")}
        message = f"names the shipped script {file_name!r}, which does not exist"
        raise _command_error(materia, message, did_you_mean(file_name, sorted({*SHIPPED_SCRIPTS, *names})))
    return [sys.executable or "python3", str(path)]


def _command_error(materia: Materia, reason: str, hint: str) -> MateriaError:
    return MateriaError(
        f"Utility {materia.id!r} {reason}", where=f"materia.{materia.id}", hint=hint, kind="utility_not_started"
    )


@dataclass(frozen=True, slots=True)
class UtilityResult:
    """The result of running a utility.

    Attributes:
        process: the result of the process, in which secrets are redacted.
        stdout: the decoded stdout, with U+FFFD instead of invalid bytes. If the utility succeeded, this is its output.
        failure: the kind of failure: ``utility_exit``, ``utility_timeout``, ``utility_not_started`` or ``interrupted``;
            None if the utility succeeded.
        summary: a description of how the process ended, for messages about a failure or a refused output.
    """

    process: ProcessResult
    stdout: str
    failure: str | None
    summary: str


def run_utility(
    materia: Materia,
    document: Mapping[str, JSON],
    *,
    cwd: Path,
    utilities: Sequence[Path] = (),
    artifacts: tuple[str, str] = ("", ""),
    stop: threading.Event | None = None,
) -> UtilityResult:
    """Run a utility with a JSON document on its stdin (R23, P8).

    A command that cannot be resolved or started is reported as a failure in the result. The output in stdout is not
    checked.

    Args:
        materia: the utility.
        document: the input of the utility, which contains for example ``castId`` and ``state``.
        cwd: the working directory.
        utilities: the directories of shipped scripts (see :func:`resolve_command`).
        artifacts: the names of the files in which stdout and stderr are saved, for messages about a failure.
        stop: an event that stops the utility when it is set; the failure is then ``interrupted``.

    Raises:
        KeyboardInterrupt: the main thread was interrupted. The process group has already ended.
        MateriaError: the document cannot be serialized as JSON (``invalid_document``).
    """
    stdin = _encode_document(document)
    timeout_ms = materia.timeout_ms
    try:
        argv = resolve_command(materia, utilities=utilities)
    except MateriaError as error:
        process = ProcessResult.not_started(materia.command, error.what + (f" ({error.hint})" if error.hint else ""))
    else:
        process = _redact(run_process(argv, stdin=stdin, cwd=cwd, timeout_s=timeout_ms / 1000, stop=stop))
    kind, ending = process.failure("utility", f"{timeout_ms} ms") or (None, f"exited with {process.ending}")
    subject = "The command" if kind is None else f"The command of {document.get('socketId') or 'the utility'}"
    summary = "; ".join([f"{subject} {ending}: {process.command or '(none)'}", *_output_notes(process, artifacts)])
    return UtilityResult(process, process.stdout.decode(errors="replace"), kind, summary)


def command_record(materia: Materia, result: UtilityResult, artifacts: tuple[str, str]) -> dict[str, JSON]:
    """Return the record of a utility's run for ``<visit>.command.json`` and the event ``utility_command`` (R29).

    ``artifacts`` contains the names of the files in which stdout and stderr are saved.
    """
    process = result.process
    record: dict[str, JSON] = {
        "materia": materia.id,
        "materiaLabel": materia.label,
        "command": list(process.argv),
        "code": process.code,
        "signal": process.signal,
        "timedOut": process.timed_out,
        "timeoutMs": None if process.ran_in_process else materia.timeout_ms,
        "stdoutArtifact": artifacts[0],
        "stderrArtifact": artifacts[1],
        "stdoutTruncated": process.stdout_truncated,
        "stderrTruncated": process.stderr_truncated,
        "maxBytes": MAX_CAPTURED_BYTES,
        "seconds": round(process.seconds, 6),
    }
    if process.start_error is not None:
        record["startError"] = process.start_error
    return record


def _redact(process: ProcessResult) -> ProcessResult:
    """Return a copy of a process result in which secrets in the command and the output are redacted."""
    secrets = secret_arguments(process.argv)
    return replace(
        process,
        argv=tuple(redact(part, *secrets) for part in process.argv),
        start_error=process.start_error and redact(process.start_error, *secrets),
        stdout=redact_bytes(process.stdout, *secrets, end=process.stdout_truncated),
        stderr=redact_bytes(process.stderr, *secrets, end=process.stderr_truncated),
    )


def _output_notes(process: ProcessResult, artifacts: tuple[str, str]) -> list[str]:
    """Return phrases for a failure message: a summary of stderr, and the names of the output files (R23)."""
    if not process.started:
        return []
    files = zip(("stdout", "stderr"), artifacts, strict=True)
    return [
        *(["it ran inside this kernel, without a time limit"] if process.ran_in_process else []),
        f"stderr: {summarize(process.stderr.decode(errors='replace'), STDERR_CHARS) or '(empty)'}",
        *(f"{name} saved in {path}" for name, path in files if path),
    ]


def _encode_document(document: Mapping[str, JSON]) -> bytes:
    try:
        return json.dumps(document, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise MateriaError(
            f"The input of a utility cannot be written as JSON: {error}",
            hint="check the values assigned to the state",
            kind="invalid_document",
        ) from error
