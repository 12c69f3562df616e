"""The program ``materia``: the verbs of ``%materia`` as commands, and commands that exist only in a terminal.

``materia lessons``, ``gallery`` and ``cheatsheet`` copy files of the package to a folder. To offer more files, add a
:class:`Bundle` to :data:`BUNDLES`.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from materia_nb import __version__
from materia_nb.cast.workbench import DryBench, Workbench
from materia_nb.errors import MateriaError, counted, usage_error
from materia_nb.file_io import read_plain, replace_file
from materia_nb.loadout.config_files import EXTENSIONS
from materia_nb.magics import verbs as _verbs  # noqa: F401 - importing it registers the verbs
from materia_nb.magics.registry import SHELL, VERBS, Argument, Call, Verb, find_verb, help_text, parse, subverbs
from materia_nb.shell import terminal
from materia_nb.shell.terminal import ExitCode

PACKAGE: Final = Path(__file__).resolve().parents[1]
ROOTS: Final = [PACKAGE] if (PACKAGE / "notebooks").is_dir() else [PACKAGE, PACKAGE.parent]
"""Folders with data files: inside the package in a wheel, or next to the package in a checkout."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files of the package that a command copies to a folder.

    Attributes:
        command: the word after ``materia``.
        about: the description in the list of commands.
        sources: folders and files, relative to one of :data:`ROOTS`. Missing sources are skipped. If all are missing,
            the command is not offered.
        first: the file that the user should open first.
    """

    command: str
    about: str
    sources: tuple[str, ...]
    first: str = ""

    def files(self) -> dict[Path, Path]:
        """Return the source path of each file, by its path in the target folder."""
        sources: dict[Path, Path] = {}
        for source in (root / name for root in ROOTS for name in self.sources):
            if source.is_file():
                sources.setdefault(Path(source.name), source)
            for path in sorted(_visible_files(source)):
                sources.setdefault(path.relative_to(source), path)
        return sources

    def notebooks(self) -> dict[Path, Path]:
        """Return the source path of each notebook, by its path in the target folder."""
        return {target: source for target, source in self.files().items() if target.suffix == ".ipynb"}


def _visible_files(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders, except hidden files, caches, and names that begin with ``__``."""
    for directory, subfolders, names in os.walk(folder):
        subfolders[:] = [name for name in subfolders if not name.startswith((".", "__"))]
        yield from (Path(directory, name) for name in names if not name.startswith((".", "__")))


BUNDLES: Final = (
    Bundle("lessons", "Copy a tour and the lessons to DIR, as notebooks", ("notebooks",), "00-quickstart.ipynb"),
    Bundle("gallery", "Copy example loadouts to DIR: patterns, and loadouts with mistakes to find", ("gallery",)),
    Bundle(
        "cheatsheet",
        "Copy the cheat sheet to DIR: the rules on one page",
        ("cheatsheet", "cheatsheet.svg", "cheatsheet.pdf"),
    ),
)
"""The bundles of files that users can copy, in the order of the help."""


def available_bundles() -> list[Bundle]:
    """Return the bundles that have at least one file in this installation."""
    return [bundle for bundle in BUNDLES if bundle.files()]


def copy_bundle(bundle: Bundle, folder: Path, *, force: bool = False) -> list[Path]:
    """Copy the files of a bundle and return the paths of the written files, relative to the folder.

    Files whose content is already the same are skipped. An existing file with different content may contain the user's
    work, so nothing is written in this case unless ``force`` is true.

    Raises:
        MateriaError: an existing file differs (``exists``), or the folder is not writable (``not_written``).
    """
    contents = {target: content_to_copy(source) for target, source in bundle.files().items()}
    changed = {target: content for target, content in contents.items() if not _has_content(folder / target, content)}
    conflicts = [str(target) for target in changed if os.path.lexists(folder / target)]
    if conflicts and not force:
        message = (
            f"This would overwrite {counted(len(conflicts), 'file')}, among them {conflicts[0]}. Nothing was written."
        )
        hint = "specify another folder, or use `--force` to overwrite the files"
        raise MateriaError(message, where=str(folder), hint=hint, kind="exists")
    try:
        for target, content in changed.items():
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            replace_file(folder / target, content)
    except OSError as error:
        message, where = f"The files cannot be written: {error.strerror or error}.", str(error.filename or folder)
        hint = "name a folder to which you can write"
        raise MateriaError(message, where=where, hint=hint, kind="not_written") from error
    return list(changed)


def trust_notebooks(notebooks: Sequence[Path]) -> bool:
    """Sign notebooks as ``jupyter trust`` does; return False if Jupyter is missing or cannot store the signatures.

    Signing is safe, because the notebooks come from this package, whose code the user runs anyway. If a notebook is not
    trusted, JupyterLab shows its stored tables as HTML source.
    """
    try:
        import nbformat
        from nbformat.sign import NotebookNotary
    except ImportError:
        return False
    try:
        notary = NotebookNotary()
        for path in notebooks:
            notary.sign(nbformat.read(path, as_version=4))
    except OSError:  # The database of signatures is not writable.
        return False
    return True


def content_to_copy(source: Path) -> bytes:
    """Return the content of a file, with the kernel and the Python version added if the file is a notebook.

    Without these fields, JupyterLab would mark the notebook as changed as soon as a user opens it.
    """
    content = read_plain(source, follow=True)
    if source.suffix != ".ipynb" or find_spec("ipykernel") is None:
        return content
    from ipykernel.ipkernel import IPythonKernel
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    notebook = json.loads(content)
    notebook.setdefault("metadata", {})["language_info"] = IPythonKernel.language_info
    with suppress(NoSuchKernel):
        spec = KernelSpecManager().get_kernel_spec("python3")
        notebook["metadata"]["kernelspec"] = {
            "display_name": spec.display_name,
            "language": spec.language,
            "name": "python3",
        }
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode()


def _has_content(target: Path, content: bytes) -> bool:
    return target.is_file() and read_plain(target, follow=True) == content


def _next_steps(bundle: Bundle, folder: Path, written: Sequence[Path], *, trusted: bool) -> Iterator[str]:
    unchanged = len(bundle.files()) - len(written)
    suffix = f" ({unchanged} already existed)" if unchanged else ""
    yield f"{counted(len(written), 'file')} written to {folder}{os.sep}{suffix}"
    notebooks = list(bundle.notebooks())
    if not notebooks:
        yield from (f"  {name}" for name in dict.fromkeys(target.parts[0] for target in bundle.files()))
        return
    first = Path(bundle.first) if Path(bundle.first) in notebooks else notebooks[0]
    yield from ("", "Open the first notebook with", f"  jupyter lab {shlex.quote(str(folder / first))}")
    if find_spec("jupyterlab") is None:
        yield "JupyterLab is not installed in this environment. Install it with"
        yield f'  {shlex.quote(sys.executable)} -m pip install "materia-nb[lab]"'
    elif not trusted:
        yield "First trust the notebooks, so that JupyterLab shows their stored tables:"
        yield f"  jupyter trust {shlex.quote(str(folder))}{os.sep}*.ipynb"


_FIRST_STEPS: Final = """\
Materia NB checks, explores, casts and inspects loadouts. Five commands to start with:

  materia lessons DIR                   copy the lessons to DIR; then: jupyter lab DIR/00-quickstart.ipynb
  materia list loadouts                 list your loadouts and the loadouts that come with Materia NB
  materia check FILE                    find the problems of a loadout file
  materia run REQUEST --loadout NAME    cast a request and run it
  materia steps                         show the steps of the latest cast

materia --help lists all commands, materia COMMAND --help explains a command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with these arguments, and return its :class:`~materia_nb.shell.terminal.ExitCode`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # The encoding of the stream may be Latin-1.
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:  # The process belongs to this program. Otherwise, child processes would outlive it.
        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup lets a program ignore SIGHUP
                signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        code = _run_command_line(words)
        sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:  # The error concerns a file and not the output.
            raise
        sys.stdout = io.StringIO()  # At exit, Python would try to flush the stream again.
        if not isinstance(error, BrokenPipeError):
            terminal.print_error(f"The output could not be written: {error.strerror}.")
        return ExitCode.PROBLEMS
    except KeyboardInterrupt:
        terminal.print_error(
            "The command was interrupted. No recorded data is lost. Continue with `materia run` and the same `--agent`."
        )
        return ExitCode.INTERRUPTED
    return int(code)


def _run_command_line(words: list[str]) -> int:
    try:
        if not words:
            terminal.echo(_FIRST_STEPS)
        elif words[0] in ("-V", "--version"):
            terminal.echo(__version__)
        elif (topic := _help_topic(words)) is not None:
            terminal.echo(terminal.as_commands(help_text(topic or None, COMMANDS)))
        else:
            command, values = parse_command(words)
            code: int = command.handler(values)
            return code
    except MateriaError as error:
        if "--json" in words:
            fields = {name: getattr(error, name) for name in ("what", "where", "hint", "kind")}
            terminal.echo(_json_text({"ok": False, "error": fields}))
        else:
            terminal.print_error(error)
        return terminal.error_code(error)
    return ExitCode.SUCCESS


def _help_topic(words: Sequence[str]) -> str | None:
    """Return the command whose help is requested, "" for the list of commands, or None if no help is requested."""
    if words[0] in ("help", "-h", "--help"):
        return " ".join(words[1:])
    before = list(takewhile(lambda word: word not in ("-h", "--help"), words))
    if len(before) == len(words) or "--" in before:
        return None
    return _command_name(before)


def _command_name(words: Sequence[str]) -> str:
    return " ".join(words[: 2 if " ".join(words[:2]) in COMMANDS else 1])


def parse_command(words: Sequence[str]) -> tuple[Verb, dict[str, Any]]:
    """Return the command on a command line and its arguments; raise MateriaError (``usage``) if the line is invalid."""
    name = _command_name(words)
    if name not in COMMANDS and not subverbs(name, COMMANDS) and (name in SHELL["notebook"] or subverbs(name)):
        hint = "name loadouts with `--file` and agents with `--agent`; commands continue the latest cast, or the cast that `--cast` names"
        raise usage_error(f"{name} works only in a notebook.", hint)
    command = find_verb(name, COMMANDS)
    return command, parse(command, words[len(command.name.split()) :], {})


def _json_text(document: object) -> str:
    """Return a document as JSON. Non-ASCII characters are escaped if the standard output cannot encode them."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(document, indent=2)
    return text


# -- from a verb to a command ----------------------------------------------------------

_BODY: Final = Argument("--body", "the file that contains the body of the cell; - for standard input", "option")
_CAST: Final = Argument(
    "--cast",
    "the cast: its id, the beginning of its id, its name, or -2 for the second latest; defaults to the latest cast",
    "option",
)
_AGENT_OPTION: Final = Argument(
    "--agent",
    "the agent for a materia or socket, in the format of the agent verb, such as Build=openai:gpt-4o or "
    "'*=command:claude'; may be repeated",
    "options",
)
_PROJECT: Final = Argument("--project", "the project directory; defaults to the current directory", "option")
_COMMON_OPTIONS: Final = (
    _PROJECT,
    Argument("--file", "load this loadout file in addition to the project's files", "option"),
    Argument("--json", "write the result as JSON", "flag"),
)
_STARTS_CASTS: Final = frozenset({"quest run", "sweep"})
"""Verbs that start and run casts, and whose commands therefore have the option ``--agent``."""


def _command(verb: Verb, access: str) -> Verb:
    """Return the terminal command for a verb. ``access`` is the list in ``words.toml`` that contains the verb."""
    options = [_BODY] if verb.cell != "never" else []
    if access in ("reads", "changes") and "--cast" not in verb.options:
        options.append(_CAST)
    if access == "changes" or verb.name in _STARTS_CASTS:
        options.append(_AGENT_OPTION)
    example_lines = [line for line in verb.example.splitlines() if line.startswith("%materia ")]
    return replace(
        verb,
        handler=partial(_run_verb, verb, access),
        arguments=(*verb.arguments, *options, *_COMMON_OPTIONS),
        cell="never",
        example="\n".join(example_lines),
    )


def _run_verb(verb: Verb, access: str, values: Mapping[str, Any]) -> int:
    """Run a verb as a command: open its workbench and its cast, write its result, and return the exit code."""
    with _open_bench(access, values) as bench:
        call = _make_call(verb, bench, values)
        if access in ("reads", "changes"):
            (bench.open if access == "reads" else bench.resume)(values.get("cast", "-1"))
        return _report_result(verb, verb.handler(call), bench, values)


@contextmanager
def _open_bench(access: str, values: Mapping[str, Any]) -> Iterator[Any]:
    """Open the workbench of a command: a :class:`DryBench`, which cannot run casts, if ``access`` is ``tests``."""
    project = Path(values.get("project", "."))
    if not project.is_dir():
        raise usage_error(f"The project directory {project} does not exist.", "name a directory after `--project`")
    bench: Any = DryBench(project) if access == "tests" else Workbench(project)
    with nullcontext() if access == "tests" else closing(bench):
        bench.load(values["file"]) if "file" in values else terminal.select_own_loadout(bench)
        for assignment in values.get("agent", ()):
            name, equals, agent = assignment.partition("=")
            if not equals:
                raise usage_error(f"--agent {assignment} does not name an agent.", "write `--agent NAME=AGENT`")
            parsed = parse(VERBS["agent"], f'"{name}" {agent}', {})
            VERBS["agent"].handler(Call(bench, parsed, None, {}))
        yield bench


def _make_call(verb: Verb, bench: Workbench, values: Mapping[str, Any]) -> Call:
    """Return the call for a verb, after loading the loadout file and reading the file after ``--body``."""
    arguments = dict(values)
    for argument in verb.arguments:
        if argument.completes == "loadout" and Path(str(values.get(argument.key))).suffix in EXTENSIONS:
            arguments[argument.key] = bench.load(values[argument.key]).name
    body = arguments.pop("body", None)
    if body is None and verb.cell == "must":
        raise usage_error(f"{verb.name} requires a cell body.", "write `--body FILE`, or `--body -` for stdin")
    return Call(bench, arguments, None if body is None else _body_text(body), {})


def _body_text(name: str) -> str:
    if name == "-":
        return sys.stdin.read()
    try:
        return read_plain(name, follow=True).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise usage_error(f"The file after `--body` cannot be read: {error}.", "name a text file in UTF-8") from None


def _report_result(verb: Verb, value: object, bench: Workbench, values: Mapping[str, Any]) -> int:
    """Write the result of a verb, and return the exit code."""
    code = terminal.exit_code(verb.name, value, bench)
    if "json" in values:
        terminal.echo(_json_text({"ok": code == ExitCode.SUCCESS, **terminal.data_of(verb.name, value, bench)}))
    elif value is not None:
        terminal.echo(terminal.text_of(value, shutil.get_terminal_size((100, 0)).columns))
        terminal.print_agents_note(verb.name, bench, values.get("agent", ()))
    return code


# -- commands without a verb, or with more than the verb ----------------------------------


def _run_check(values: Mapping[str, Any]) -> int:
    """Run the command ``check`` on loadout files, loadouts and saved tests, and return the exit code."""
    verb, names = VERBS["check"], values.get("names", [])
    with _open_bench("tests", values) as bench:
        if "fix" not in values:
            check_run = terminal.findings_of(bench, names, strict="strict" in values, engine=values.get("for"))
            terminal.echo(terminal.FORMATTERS["json" if "json" in values else values.get("format", "text")](check_run))
            return ExitCode.SUCCESS if check_run.ok else ExitCode.PROBLEMS
        if len(names) > 1:
            raise usage_error("Only one loadout can be fixed at a time.", "name one loadout")
        call = _make_call(verb, bench, {**values, **dict.fromkeys(["loadout"], *names)})
        return _report_result(verb, verb.handler(call), bench, values)


def _run_cast(values: Mapping[str, Any]) -> int:
    """Run the command ``run``, which starts or continues a cast. If a person must answer, ask at the terminal."""
    run, cast_verb = VERBS["run"], VERBS["cast"]
    with _open_bench("changes", values) as bench:
        if "request" in values:
            if "cast" in values:
                raise usage_error("A request starts a new cast.", "omit `--cast` or the request")
            cast_verb.handler(_make_call(cast_verb, bench, values))
        elif "loadout" in values:
            raise usage_error("The request is missing.", "write `run REQUEST --loadout NAME`")
        else:
            bench.resume(values.get("cast", "-1"))
        call = _make_call(run, bench, values)
        value = run.handler(call)
        while terminal.can_ask(as_json="json" in values) and terminal.ask_person(bench.current):
            value = run.handler(call) if bench.current.status in ("ready", "waiting") else VERBS["status"].handler(call)
        return _report_result(run, value, bench, values)


def _run_mcp(values: Mapping[str, Any]) -> int:
    from materia_nb.shell.mcp_server import serve

    serve(Path(values.get("project", ".")))
    return ExitCode.SUCCESS


def _copy(bundle: Bundle, values: Mapping[str, Any]) -> int:
    """Copy a bundle to a folder and show the next steps; if no folder is named, list the files."""
    if "dir" not in values:
        listing = "\n".join(map(str, bundle.notebooks() or bundle.files()))
        terminal.echo(f"{listing}\n\nUse `materia {bundle.command} DIR` to copy them to DIR.")
        return ExitCode.SUCCESS
    written = copy_bundle(bundle, folder := Path(values["dir"]), force="force" in values)
    trusted = trust_notebooks([folder / target for target in written if target.suffix == ".ipynb"])
    terminal.echo("\n".join(_next_steps(bundle, folder, written, trusted=trusted)))
    return ExitCode.SUCCESS


def _print_schema(values: Mapping[str, Any]) -> int:
    from materia_nb.loadout.json_schema import config_schema

    text = json.dumps(config_schema(), indent=2, ensure_ascii=False)
    if "output" not in values:
        terminal.echo(text)
        return ExitCode.SUCCESS
    try:
        replace_file(values["output"], f"{text}\n".encode())
    except OSError as error:
        message = f"The schema cannot be written: {error.strerror or error}."
        raise MateriaError(message, where=values["output"], hint="name a file in an existing folder") from None
    return ExitCode.SUCCESS


def _build_commands() -> dict[str, Verb]:
    """Return all commands by name."""
    commands = {
        name: _command(VERBS[name], access) for access, names in SHELL.items() for name in names if access != "notebook"
    }
    check, run = commands["check"], commands["run"]
    names = Argument(
        "names",
        "loadout files, saved tests (*.materia-case.json) and names of loadouts; defaults to all loadouts in the "
        "project's files",
        "words",
    )
    format_option = Argument(
        "--format", "the output format of the findings; defaults to text", "option", choices=tuple(terminal.FORMATTERS)
    )
    cast_arguments = [argument for argument in VERBS["cast"].arguments if argument.key in ("request", "loadout")]
    summary = f"Cast a request and run it; without a request, continue a cast. {run.summary}"
    options = [argument for argument in check.arguments if not argument.is_positional]
    commands["check"] = replace(check, handler=_run_check, arguments=(names, format_option, *options))
    commands["run"] = replace(run, handler=_run_cast, summary=summary, arguments=(*cast_arguments, *run.arguments))
    for bundle in available_bundles():
        folder = Argument("dir", "the target folder; without it, the files are listed")
        force = Argument("--force", "overwrite existing files that differ", "flag")
        summary = f"{bundle.about}."
        commands[bundle.command] = Verb(bundle.command, summary, partial(_copy, bundle), (folder, force), "never", "")
    output = Argument("--output", "write the schema to this file instead of printing it", "option")
    summary = "Print the JSON Schema of loadout files, which editors can use."
    commands["schema"] = Verb("schema", summary, _print_schema, (output,), "never", "")
    summary = (
        "Serve MCP on stdin and stdout: a coding agent designs loadouts, and you review each step in the designer."
    )
    commands["mcp"] = Verb("mcp", summary, _run_mcp, (_PROJECT,), "never", "")
    return commands


COMMANDS: Final = _build_commands()
"""All commands by name. A command's handler receives the parsed arguments and returns the exit code."""
