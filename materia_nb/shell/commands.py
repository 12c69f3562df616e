"""The command line ``materia``: a command for each verb, and commands that exist only in a terminal.

``materia lessons``, ``gallery`` and ``cheatsheet`` copy files of the package to a folder. To offer more files, add a
:class:`Bundle` to :data:`BUNDLES`.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TextIO, cast

import click

from materia_nb import __version__
from materia_nb.cast.workbench import DryBench, Workbench
from materia_nb.errors import MateriaError, counted, usage_error
from materia_nb.file_io import read_plain, replace_file
from materia_nb.loadout.config_files import ENDINGS
from materia_nb.magics import verbs as _verbs  # noqa: F401 - importing it registers the verbs
from materia_nb.magics.registry import (
    GROUPS,
    SHELL,
    VERBS,
    Argument,
    Call,
    Verb,
    family,
    meant_by,
    parse,
    summary_of,
)
from materia_nb.shell import terminal

PACKAGE: Final = Path(__file__).resolve().parents[1]
ROOTS: Final = [PACKAGE] if (PACKAGE / "notebooks").is_dir() else [PACKAGE, PACKAGE.parent]
"""Folders to search for data files: in a wheel they are inside the package, in a checkout next to it."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files of the package that a command copies to a folder.

    Attributes:
        command: the word after ``materia``.
        about: the description in the list of commands.
        sources: folders and files, relative to one of :data:`ROOTS`. Missing sources are skipped; a command without any
            file is not offered.
        first: the file to open first.
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
    """Yield the files of a folder, except Python code and hidden files such as casts of the notebooks or caches."""
    for directory, subfolders, names in os.walk(folder):
        subfolders[:] = [name for name in subfolders if not name.startswith((".", "__"))]
        yield from (
            Path(directory, name) for name in names if not name.startswith((".", "__")) and not name.endswith(".py")
        )


BUNDLES: Final = (
    Bundle("lessons", "Copy a tour and the lessons to DIR, as notebooks", ("notebooks",), "00-quickstart.ipynb"),
    Bundle("gallery", "Copy example loadouts to DIR: patterns, and mistakes to find", ("gallery",)),
    Bundle(
        "cheatsheet",
        "Copy the cheat sheet to DIR: the rules on one page",
        ("cheatsheet", "cheatsheet.svg", "cheatsheet.pdf"),
    ),
)
"""The bundles that can be copied, in the order of the help."""


def available_bundles() -> list[Bundle]:
    """Return the bundles that have at least one file in this installation."""
    return [bundle for bundle in BUNDLES if bundle.files()]


def run_copy(bundle: Bundle, folder: Path | None, *, force: bool = False) -> str:
    """Copy a bundle to a folder and return the next steps; without a folder, return the list of its files."""
    if folder is None:
        listing = "\n".join(map(str, bundle.notebooks() or bundle.files()))
        return f"{listing}\n\nmateria {bundle.command} DIR copies them to DIR."
    written = copy_bundle(bundle, folder, force=force)
    trusted = trust_notebooks([folder / target for target in written if target.suffix == ".ipynb"])
    return "\n".join(_next_steps(bundle, folder, written, trusted=trusted))


def copy_bundle(bundle: Bundle, folder: Path, *, force: bool = False) -> list[Path]:
    """Copy the files of a bundle and return the paths of the written files, relative to the folder.

    Files with the same content are skipped. If an existing file differs, it may contain the user's work: nothing is
    written unless ``force`` is given.

    Raises:
        MateriaError: an existing file differs (``exists``), or the folder cannot be written (``not_written``).
    """
    contents = {target: content_to_copy(source) for target, source in bundle.files().items()}
    changed = {target: content for target, content in contents.items() if not _has_content(folder / target, content)}
    conflicts = [str(target) for target in changed if os.path.lexists(folder / target)]
    if conflicts and not force:
        raise MateriaError(
            f"This would overwrite {counted(len(conflicts), 'file')}, among them {conflicts[0]}. Nothing was written.",
            where=str(folder),
            hint="name another folder, or overwrite the files with --force",
            kind="exists",
        )
    try:
        for target, content in changed.items():
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            replace_file(folder / target, content)
    except OSError as error:
        raise MateriaError(
            f"The files cannot be written: {error.strerror or error}.",
            where=str(error.filename or folder),
            hint="name a folder that you may write to",
            kind="not_written",
        ) from error
    return list(changed)


def trust_notebooks(notebooks: Sequence[Path]) -> bool:
    """Sign notebooks as ``jupyter trust`` does; return False if Jupyter is missing or its signatures cannot be stored.

    Signing is safe, because the notebooks come from this package, whose code runs anyway. JupyterLab shows the stored
    tables of an untrusted notebook as HTML source.
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
    except OSError:  # the database of signatures cannot be written
        return False
    return True


def content_to_copy(source: Path) -> bytes:
    """Return the content of a file; a notebook gets the kernel and Python version that JupyterLab would write.

    Otherwise JupyterLab shows a notebook that was only opened as changed.
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
    suffix = f" ({unchanged} were there already)" if unchanged else ""
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


FINE, PROBLEMS, MISUSE = 0, 1, 2
"""Exit codes."""

_MINUS: Final = "\ue000"
"""Placeholder for the minus sign of a number, because click would parse ``-1`` as an option."""
_MINUS_SIGN: Final = re.compile(r"^-(?=\d)")


class _TextOrInteger(click.ParamType):  # type: ignore[type-arg] # generic only in the latest click
    def __init__(self, *, integer: bool) -> None:
        self.integer, self.name = integer, "integer" if integer else "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value).replace(_MINUS, "-", 1)
        if not self.integer:
            return text
        try:
            return int(text)
        except ValueError:
            self.fail(f"{text!r} is not a whole number", param, ctx)


class _Command(click.Command):
    """A command that accepts negative numbers as arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [_MINUS_SIGN.sub(_MINUS, argument) for argument in args])


class _VerbFamily(click.Group):
    """Commands that share their first word; the command named "" runs if no second word is given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "" in self.commands and (not args or args[0] not in self.commands):
            args = ["", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [name for name in self.commands if name]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-"):
            ctx.fail(f"The command {args[0]!r} does not exist: {meant_by(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


class _Program(_VerbFamily):
    """The program ``materia``, whose help lists commands in the groups of the verbs."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        groups = {title: names.split() for title, names in GROUPS.items()}
        verbs = {name for names in groups.values() for name in names}
        groups["Tools and examples"] = [name for name in self.commands if name and name not in verbs]
        for title, names in groups.items():
            rows = [(name, self.commands[name].get_short_help_str(200)) for name in names if name in self.commands]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


_FIRST_STEPS: Final = """\
Materia NB checks, explores, casts and inspects loadouts. Five commands to start with:

  materia lessons DIR                   copy the lessons to DIR; then: jupyter lab DIR/00-quickstart.ipynb
  materia list loadouts                 list your loadouts and the loadouts that come with Materia NB
  materia check FILE                    find the problems of a loadout file
  materia run REQUEST --loadout NAME    cast a request and run it
  materia steps                         show the steps of the latest cast

materia --help lists all commands, materia COMMAND --help explains a command."""


@click.group(cls=_Program, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="%(version)s")
@click.pass_context
def program(context: click.Context) -> None:
    """Materia NB: check, explore, cast and inspect loadouts. Exit codes: 0 fine, 1 problems, 2 misuse."""
    if context.invoked_subcommand is None:
        click.echo(_FIRST_STEPS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code: 0 fine, 1 problems, 2 misuse."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # the encoding may be Latin-1
    try:
        code = _run_program(list(sys.argv[1:] if arguments is None else arguments))
    except OSError as error:
        if error.filename is not None:  # not the output
            raise
        sys.stdout = io.StringIO()  # Python would fail again to flush it
        click.echo(f"The output could not be written: {error.strerror}.", err=True)
        return PROBLEMS
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted; nothing recorded is lost. Continue with materia run.", err=True)
        return PROBLEMS
    return code if isinstance(code, int) else FINE


def _run_program(arguments: list[str]) -> object:
    try:
        return program.main(arguments, "materia", standalone_mode=False)
    except click.ClickException as error:
        if "--json" not in arguments:
            error.show()
            return MISUSE
        command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "materia"
        return _report(usage_error(error.format_message(), f"{command} --help"), as_json=True)
    except MateriaError as error:
        return _report(error, as_json="--json" in arguments)


def _report(error: MateriaError, *, as_json: bool) -> int:
    if as_json:
        fields = {name: getattr(error, name) for name in ("what", "where", "hint", "kind")}
        click.echo(_json_text({"ok": False, "error": fields}))
    else:
        click.echo(str(error).replace("%materia ", "materia "), err=True)
    return MISUSE if error.kind == "usage" else PROBLEMS


def _json_text(document: object) -> str:
    """Return JSON; escape all non-ASCII characters if the standard output cannot encode some of them."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(document, indent=2)
    return text


# -- from a verb to a command ----------------------------------------------------------

_COMMON_OPTIONS: Final = (
    click.Option(
        ["--project"], type=click.Path(exists=True, file_okay=False, path_type=Path), default=".",
        help="the project directory; the current directory if left out",
    ),
    click.Option(["--file", "on_top"], help="load this file of loadouts in addition to the project's files", metavar="FILE"),
    click.Option(["--json", "as_json"], is_flag=True, help="write the result as JSON"),
)  # fmt: skip
_CAST_OPTION: Final = click.Option(
    ["--cast", "of"],
    type=_TextOrInteger(integer=False),
    help="the cast: its id, the beginning of its id, its name, or -2 for the second latest; the latest cast if left out",
)
_AGENT_OPTION: Final = click.Option(
    ["--agent"],
    multiple=True,
    metavar="NAME=WHO",
    help="the agent of a materia or socket, as for the verb agent: Build=openai:gpt-4o, '*=command:claude'; repeatable",
)
_STARTS_CASTS: Final = frozenset({"quest run", "sweep"})
"""Verbs that start and run casts; their commands have the option ``--agent``."""


def _parameter(argument: Argument, verb: Verb) -> click.Parameter:
    kind: Any = click.Choice(argument.choices) if argument.choices else _TextOrInteger(integer=argument.integer)
    if argument.kind == "flag":
        return click.Option([argument.name], is_flag=True, help=argument.help)
    if argument.kind == "option":
        return click.Option([argument.name], type=kind, help=argument.help)
    is_last = argument.kind == "rest" and any(other.kind == "words" for other in verb.arguments)
    repeated = argument.kind != "word" and not is_last
    required = argument.required or is_last
    metavar = argument.name.upper() + ("..." if repeated else "")
    return click.Argument(
        [argument.key],
        type=kind,
        nargs=-1 if repeated else 1,
        required=required,
        metavar=metavar if required else f"[{metavar}]",
    )


def _command(verb: Verb, access: str) -> click.Command:
    """Return the command for a verb; ``access`` is the verb's key in the table ``shell`` of ``words.toml``."""
    own = [_parameter(argument, verb) for argument in verb.arguments]
    if verb.cell != "never":
        body = click.Option(
            ["--body"], type=click.File(encoding="utf-8"), required=verb.cell == "must",
            help="a file with the text of the cell; - for the standard input",
        )  # fmt: skip
        own.append(body)
    if access in ("looks", "changes") and "--cast" not in verb.options:
        own.append(_CAST_OPTION)
    if access == "changes" or verb.name in _STARTS_CASTS:
        own.append(_AGENT_OPTION)
    documented = [argument for argument in verb.arguments if argument.placed and argument.help]
    argument_help = [f"{argument.name.upper()}: {argument.help}" for argument in documented]
    examples = [
        line.replace("%materia ", "materia ") for line in verb.example.splitlines() if line.startswith("%materia ")
    ]
    return _Command(
        verb.name.rpartition(" ")[2],
        params=[*own, *_COMMON_OPTIONS],
        callback=partial(_run_verb, verb, access),
        help="\n\n".join([verb.summary, *argument_help]),
        short_help=summary_of(verb.name) if " " not in verb.name else verb.summary,
        epilog="\b\nFor example:\n" + "\n".join(f"  {line}" for line in examples) if examples else None,
    )


def _run_verb(
    verb: Verb,
    access: str,
    *,
    project: Path,
    on_top: str | None,
    as_json: bool,
    of: str | None = None,
    agent: Sequence[str] = (),
    body: TextIO | None = None,
    **values: Any,
) -> int:
    """Run a verb, write its result and return the exit code."""
    with _bench(access, project, on_top, agent) as bench:
        arguments = _arguments(verb, values, bench)
        if access in ("looks", "changes"):
            (bench.open if access == "looks" else bench.resume)(of or arguments.get("cast") or "-1")
        value = verb.handler(Call(bench, arguments, None if body is None else body.read(), {}))
        return _report_result(verb, value, bench, as_json=as_json)


@contextmanager
def _bench(access: str, project: Path, on_top: str | None = None, agents: Sequence[str] = ()) -> Iterator[Workbench]:
    """Open the workbench of a command. The access ``tests`` gets a :class:`DryBench`, without agents and processes."""
    if access == "tests":
        dry = DryBench(project)
        dry.load(on_top) if on_top is not None else terminal.choose_own(dry)
        yield cast("Workbench", dry)
        return
    bench = Workbench(project)
    try:
        bench.load(on_top) if on_top is not None else terminal.choose_own(bench)
        for assignment in agents:
            name, equals, agent = assignment.partition("=")
            if not equals:
                raise usage_error(f"--agent {assignment} does not name an agent.", "write NAME=WHO")
            parsed = parse(VERBS["agent"], f'"{name}" {agent}', {})
            VERBS["agent"].handler(Call(bench, parsed, None, {}))
        yield bench
    finally:
        bench.close()


def _arguments(verb: Verb, values: dict[str, Any], bench: Workbench) -> dict[str, Any]:
    """Convert command-line values to the arguments of a verb; load a file that is given as a loadout."""
    arguments: dict[str, Any] = {}
    for argument in verb.arguments:
        value = values.get(argument.key)
        if value in (None, (), False):
            continue
        if isinstance(value, tuple):
            value = list(value) if argument.kind == "words" else " ".join(map(str, value))
        if argument.completes == "loadout" and Path(str(value)).suffix in ENDINGS:
            value = bench.load(str(value)).name
        arguments[argument.key] = value
    return arguments


def _report_result(verb: Verb, value: object, bench: Workbench, *, as_json: bool) -> int:
    """Write the result of a verb and return the exit code."""
    fine = terminal.is_fine(verb.name, value, bench)
    if as_json:
        click.echo(_json_text({"ok": fine, **terminal.data_of(verb.name, value, bench)}))
    elif value is not None:
        click.echo(terminal.text_of(value, shutil.get_terminal_size((100, 0)).columns))
    return FINE if fine else PROBLEMS


# -- commands without a verb ------------------------------------------------------------


def _check(
    *, names: Sequence[str], strict: bool, form: str, project: Path, on_top: str | None, as_json: bool, **fixes: bool
) -> int:
    """Check loadout files, loadouts and saved tests; the help of the command describes the arguments."""
    with _bench("tests", project, on_top) as bench:
        if not fixes["fix"]:
            checked = terminal.findings_of(bench, names, strict=strict)
            click.echo(terminal.findings_text(checked, "json" if as_json else form))
            return FINE if checked.ok else PROBLEMS
        if len(names) > 1:
            raise usage_error("Only one loadout can be fixed at a time.", "name one loadout")
        verb = VERBS["check"]
        arguments = _arguments(verb, {"loadout": tuple(names), **fixes}, bench)
        return _report_result(verb, verb.handler(Call(bench, arguments, None, {})), bench, as_json=as_json)


def _run(
    *, request: Sequence[str], loadout: str | None, project: Path, on_top: str | None, as_json: bool,
    of: str | None, agent: Sequence[str], **values: Any,
) -> int:  # fmt: skip
    """Cast a request, or continue a cast, until it ends or must wait; ask a person who sits at the terminal."""
    run = VERBS["run"]
    with _bench("changes", project, on_top, agent) as bench:
        if request:
            if of is not None:
                raise usage_error("A request starts a new cast.", "leave out --cast or the request")
            bench.cast(**_arguments(VERBS["cast"], {"request": request, "loadout": loadout}, bench))
        elif loadout is not None:
            raise usage_error("The request is missing.", "run REQUEST --loadout NAME")
        else:
            bench.resume(of or "-1")
        call = Call(bench, _arguments(run, values, bench), None, {})
        value = run.handler(call)
        while terminal.can_ask(as_json=as_json) and terminal.ask_person(bench.current):
            value = run.handler(call) if bench.current.status in ("ready", "waiting") else VERBS["status"].handler(call)
        return _report_result(run, value, bench, as_json=as_json)


def _mcp(*, project: Path) -> None:
    from materia_nb.shell.mcp_server import serve

    serve(project)


def _copy(bundle: Bundle, *, folder: Path | None, force: bool) -> None:
    click.echo(run_copy(bundle, folder, force=force))


def _schema(*, arguments: Sequence[str]) -> int:
    from materia_nb.loadout.json_schema import main as print_schema

    return print_schema(arguments)


def _add_commands() -> None:
    """Add every command to the program; group two-word commands under their first word."""
    access_by_verb = {name: access for access, names in SHELL.items() for name in names if access != "notebook"}
    commands = {name: _command(VERBS[name], access) for name, access in access_by_verb.items()}
    check, run = commands["check"], commands["run"]
    check.callback, run.callback = _check, _run
    names = click.Argument(["names"], nargs=-1, metavar="[FILE|LOADOUT]...")
    check.params = [names, *(parameter for parameter in check.params if parameter.name != "loadout")]
    check.params.append(click.Option(["--format", "form"], type=click.Choice(terminal.FORMATS), default="text", help="the output format of the findings"))  # fmt: skip
    check.help = (
        f"{VERBS['check'].summary}\n\nFILE: check all loadouts of this file, or replay this saved test "
        "(*.materia-case.json). LOADOUT: check this loadout of the project. Without arguments, check all loadouts that "
        "the project's files define."
    )
    start = [option for option in commands["cast"].params if option.name in ("request", "loadout")]
    run.params = [*start, *run.params]
    run.help = f"Cast a request and run it; without REQUEST, continue a cast.\n\n{run.help}"
    for name, command in commands.items():
        first, _, second = name.partition(" ")
        if not family(first):
            program.add_command(command, first)
            continue
        group = program.commands.get(first)
        if not isinstance(group, _VerbFamily):
            about = summary_of(first)
            group = _VerbFamily(first, help=about, invoke_without_command=False, no_args_is_help=first not in commands)
            program.add_command(group)
        group.commands[second] = command
    for bundle in available_bundles():
        folder = click.Argument(["folder"], required=False, type=click.Path(path_type=Path), metavar="DIR")
        force = click.Option(["--force"], is_flag=True, help="overwrite files that differ")
        program.add_command(
            click.Command(
                bundle.command, params=[folder, force], callback=partial(_copy, bundle), help=f"{bundle.about}."
            )
        )
    project = next(option for option in _COMMON_OPTIONS if option.name == "project")
    about = "Serve MCP on stdin and stdout: a coding agent designs loadouts, and you review each step in the designer."
    program.add_command(click.Command("mcp", params=[project], callback=_mcp, help=about))
    rest = click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)
    settings: dict[str, Any] = {"ignore_unknown_options": True}
    about = "Print the JSON Schema of a file of loadouts, for editors."
    program.add_command(click.Command("schema", settings, _schema, [rest], help=about, add_help_option=False))


_add_commands()
