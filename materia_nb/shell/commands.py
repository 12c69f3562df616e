"""The commands of ``materia``: made from the rows of the verbs, and the few words that only a terminal has.

Among these are the copies of what comes with the package, the lessons, the gallery and the cheat sheet: the notebooks are data of
the wheel. Another folder or file of it becomes a command by a line in :data:`TO_COPY`.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TextIO, cast

import click

from materia_nb import __version__
from materia_nb.cast.workbench import DryBench, Workbench
from materia_nb.errors import MateriaError, counted, usage_error
from materia_nb.file_io import read_own, read_plain, replace_file
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
"""Where the data is: a wheel has the notebooks in the package, a checkout beside it."""
_LEFT: Final = frozenset({"__pycache__"})


@dataclass(frozen=True, slots=True)
class Bundle:
    """Something of the package that is copied out by a command of its own.

    Attributes:
        command: the word behind ``materia``.
        about: what it is, in the list of commands.
        sources: its folders and files, by their place in the package. They may be missing: a command with nothing
            to copy is not offered.
        first: the file to open first, if it is there.
    """

    command: str
    about: str
    sources: tuple[str, ...]
    first: str = ""

    def files(self) -> dict[Path, Path]:
        """What is there, by the path that it gets in the folder that it is copied to."""
        found: dict[Path, Path] = {}
        for source in (root / name for root in ROOTS for name in self.sources):
            if source.is_file():
                found.setdefault(Path(source.name), source)
            for path in sorted(source.rglob("*")):
                place = path.relative_to(source)
                hidden = any(part.startswith(".") or part in _LEFT for part in place.parts)
                if path.is_file() and not hidden and path.suffix != ".py":
                    found.setdefault(place, path)
        return found

    def notebooks(self) -> dict[Path, Path]:
        """The notebooks among its files that are to be opened; what lies in a folder is opened by them."""
        return {place: path for place, path in self.files().items() if place.suffix == ".ipynb"}


TO_COPY: Final = (
    Bundle(
        "lessons", "copy the notebooks to DIR: a tour and the lessons", ("notebooks",), "00-quickstart.ipynb"
    ),
    Bundle("gallery", "copy the gallery to DIR: patterns, and mistakes to find", ("gallery",)),
    Bundle(
        "cheatsheet",
        "copy the cheat sheet to DIR: the rules on one page",
        ("cheatsheet", "cheatsheet.svg", "cheatsheet.pdf"),
    ),
)
"""What can be copied out, in the order of the help."""


def offered() -> list[Bundle]:
    """The bundles that this installation has."""
    return [bundle for bundle in TO_COPY if bundle.files()]


def title_of(notebook: Path) -> str:
    """The first heading of a notebook; its name where there is none."""
    for cell in json.loads(read_own(notebook))["cells"]:
        for line in "".join(cell["source"]).splitlines():
            if cell["cell_type"] == "markdown" and line.startswith("# "):
                return line[2:].strip()
    return notebook.stem


def _columns(rows: Sequence[tuple[str, str]]) -> str:
    wide = max((len(left) for left, _ in rows), default=0)
    return "\n".join(f"{left:<{wide}}  {right}" for left, right in rows)


def run_copy(bundle: Bundle, folder: Path | None, *, force: bool = False) -> str:
    """Copy a bundle to a folder, and say how to go on; without a folder, list what there is."""
    if folder is None:
        rows = [(str(place), title_of(path)) for place, path in bundle.notebooks().items()]
        listed = _columns(rows or [(str(place), "") for place in bundle.files()])
        return f"{listed}\n\nmateria {bundle.command} DIR copies them to DIR."
    written = copy_out(bundle, folder, force=force)
    trusted = trust([folder / place for place in written if place in bundle.notebooks()])
    return "\n".join(_copied_words(bundle, folder, written, trusted=trusted))


def copy_out(bundle: Bundle, folder: Path, *, force: bool = False) -> list[Path]:
    """Copy the files of a bundle to a folder; the paths in it that were written.

    A file that is there with the same content stays. Nothing is written when one is there with another content,
    which may be somebody's work, unless ``force`` is given.

    Raises:
        MateriaError: a file is in the way (``exists``), or the folder cannot be written (``not_written``).
    """
    files = {place: content_of(source) for place, source in bundle.files().items()}
    new = {place: content for place, content in files.items() if not _holds(folder / place, content)}
    taken = [str(place) for place in new if os.path.lexists(folder / place)]
    if taken and not force:
        raise MateriaError(
            f"{_few(taken)} would be lost: there is something else of that name. Nothing was written.",
            where=str(folder),
            hint="name another folder, or write over them with --force",
            kind="exists",
        )
    try:
        for place, content in new.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            replace_file(folder / place, content)
    except OSError as error:
        raise MateriaError(
            f"The files cannot be written: {error.strerror or error}.",
            where=str(error.filename or folder),
            hint="name a folder that you may write to",
            kind="not_written",
        ) from error
    return list(new)


def trust(notebooks: Sequence[Path]) -> bool:
    """Mark notebooks as trusted, as ``jupyter trust`` does; whether there was anything that could.

    They come from this package, whose code runs anyhow. JupyterLab shows the stored tables of one that is not
    trusted as the source of their HTML.
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
    except OSError:  # the place for signatures cannot be written
        return False
    return True


def content_of(source: Path) -> bytes:
    """What a copy of a file holds: the file, or of a notebook what JupyterLab makes of it as soon as its kernel runs.

    That is the name of the kernel, and the version of its Python: else a notebook that was only opened is shown as
    changed and not saved.
    """
    content = read_plain(source, follow=True)
    if source.suffix != ".ipynb" or find_spec("ipykernel") is None:
        return content
    from ipykernel.ipkernel import IPythonKernel
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    book = json.loads(content)
    book.setdefault("metadata", {})["language_info"] = IPythonKernel.language_info
    with contextlib.suppress(NoSuchKernel):
        spec = KernelSpecManager().get_kernel_spec("python3")
        book["metadata"]["kernelspec"] = {
            "display_name": spec.display_name,
            "language": spec.language,
            "name": "python3",
        }
    return (json.dumps(book, indent=1, ensure_ascii=False) + "\n").encode()


def _holds(target: Path, content: bytes) -> bool:
    return target.is_file() and read_plain(target, follow=True) == content


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _copied_words(bundle: Bundle, folder: Path, written: Sequence[Path], *, trusted: bool) -> Iterator[str]:
    there = len(bundle.files())
    known = f" ({there - len(written)} were there already)" if len(written) < there else ""
    yield f"{counted(len(written), 'file')} written to {folder}{os.sep}{known}"
    notebooks = list(bundle.notebooks())
    if not notebooks:
        yield from (f"  {name}" for name in dict.fromkeys(place.parts[0] for place in bundle.files()))
        return
    first = Path(bundle.first) if Path(bundle.first) in notebooks else notebooks[0]
    yield from ("", "Open the first one with", f"  jupyter lab {shlex.quote(str(folder / first))}")
    if find_spec("jupyterlab") is None:
        yield "which is not installed in this environment; it comes with"
        yield f'  {shlex.quote(sys.executable)} -m pip install "materia-nb[lab]"'
    elif not trusted:
        yield "after this, which lets JupyterLab show the tables that are stored in them:"
        yield f"  jupyter trust {shlex.quote(str(folder))}{os.sep}*.ipynb"


FINE, PROBLEMS, MISUSE = 0, 1, 2
"""The exit codes."""

_MINUS: Final = "\ue000"
"""Stands for the sign of a number, which click would take for an option."""
_SIGN: Final = re.compile(r"^-(?=\d)")
_PROGRAMS: Final = {
    "schema": ("materia_nb.loadout.json_schema", "Print the JSON Schema of a file of loadouts, for editors."),
}
"""Commands that are programs of their own: their module, and what they do."""


class _Typed(click.ParamType):  # type: ignore[type-arg] # generic in the latest click alone
    """Text, or a whole number."""

    def __init__(self, *, whole: bool) -> None:
        self.whole, self.name = whole, "integer" if whole else "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value).replace(_MINUS, "-", 1)
        if not self.whole:
            return text
        try:
            return int(text)
        except ValueError:
            self.fail(f"{text!r} is not a whole number", param, ctx)


class _Command(click.Command):
    """A command that takes negative numbers as arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [_SIGN.sub(_MINUS, one) for one in args])


class _Words(click.Group):
    """A first word with second words; what begins with none of these is the verb of the first word alone, if there is one."""

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
            ctx.fail(f"There is no command {args[0]!r}: {meant_by(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


class _Program(_Words):
    """``materia``: its commands in the groups of the verbs."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        verbs = {word for words in GROUPS.values() for word in words.split()}
        groups = {title: words.split() for title, words in GROUPS.items()}
        groups["What comes with it"] = [name for name in self.commands if name and name not in verbs]
        for title, words in groups.items():
            rows = [
                (word, self.commands[word].get_short_help_str(200)) for word in words if word in self.commands
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


_BEGIN: Final = """\b
Begin here:
  materia lessons DIR                  copy the notebooks to DIR
  jupyter lab DIR/00-quickstart.ipynb  the tour; then 01-edges, the first lesson
  materia list loadouts                the loadouts that come with it
  materia VERB --help                  more about one"""


@click.group(cls=_Program, epilog=_BEGIN, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="%(version)s")
def program() -> None:
    """Materia NB: check, explore, cast and look at loadouts. Exit codes: 0 fine, 1 problems, 2 misuse."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code: 0 fine, 1 problems, 2 misuse."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # it may be Latin-1
    try:
        code = _run_program(given or ["--help"])
    except OSError as error:
        if error.filename is not None:  # not the output
            raise
        sys.stdout = io.StringIO()  # Python would fail again to flush it
        click.echo(f"The output could not be written: {error.strerror}.", err=True)
        return PROBLEMS
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted; nothing recorded is lost: materia run goes on.", err=True)
        return PROBLEMS
    return code if isinstance(code, int) else FINE


def _run_program(arguments: list[str]) -> object:
    as_json = "--json" in arguments
    try:
        return program.main(arguments, "materia", standalone_mode=False)
    except click.ClickException as error:
        if not as_json:
            error.show()
            return MISUSE
        command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "materia"
        return _report(usage_error(error.format_message(), f"{command} --help"), as_json=True)
    except MateriaError as error:
        return _report(error, as_json=as_json)


def _report(error: MateriaError, *, as_json: bool) -> int:
    if as_json:
        fields = {"what": error.what, "where": error.where, "hint": error.hint, "kind": error.kind}
        click.echo(_json_text({"ok": False, "error": fields}))
    else:
        click.echo(str(error).replace("%materia ", "materia "), err=True)
    return MISUSE if error.kind == "usage" else PROBLEMS


def _json_text(document: object) -> str:
    """Return JSON that the standard output can encode: what it has no character for is escaped."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(document, indent=2)
    return text


# -- from a verb to a command ----------------------------------------------------------

_COMMON: Final = (
    click.Option(
        ["--project"], type=click.Path(exists=True, file_okay=False, path_type=Path), default=".",
        help="the project directory; the current one if left out",
    ),
    click.Option(["--file", "on_top"], help="a file of loadouts, read on top of the project's own", metavar="FILE"),
    click.Option(["--json", "as_json"], is_flag=True, help="write what came of it as JSON"),
)  # fmt: skip
_CAST: Final = click.Option(
    ["--cast", "of"],
    type=_Typed(whole=False),
    help="the cast: its id, the beginning of it, its name, -2 for the one before the latest; the latest if left out",
)
_AGENT: Final = click.Option(
    ["--agent"],
    multiple=True,
    metavar="NAME=WHO",
    help="who answers a materia or socket, as the verb agent takes it: Build=openai:gpt-4o, '*=command:claude'; may be repeated",
)
_ASKED: Final = frozenset({"quest run", "sweep"})
"""Verbs that begin casts and run them."""


def _parameter(argument: Argument, verb: Verb) -> click.Parameter:
    kind: Any = click.Choice(argument.choices) if argument.choices else _Typed(whole=argument.whole)
    if argument.kind == "flag":
        return click.Option([argument.name], is_flag=True, help=argument.help)
    if argument.kind == "option":
        return click.Option([argument.name], type=kind, help=argument.help)
    last = argument.kind == "rest" and any(one.kind == "words" for one in verb.arguments)
    many = argument.kind != "word" and not last
    required = argument.required or last
    shown = argument.name.upper() + ("..." if many else "")
    return click.Argument(
        [argument.key],
        type=kind,
        nargs=-1 if many else 1,
        required=required,
        metavar=shown if required else f"[{shown}]",
    )


def _command(verb: Verb, given: str) -> click.Command:
    """Make the command of a verb; ``given`` says what the verb is given, see ``words.toml``."""
    own = [_parameter(one, verb) for one in verb.arguments]
    if verb.cell != "never":
        body = click.Option(
            ["--body"], type=click.File(encoding="utf-8"), required=verb.cell == "must",
            help="a file with what a cell would hold; - for the standard input",
        )  # fmt: skip
        own.append(body)
    if given in ("looks", "changes") and "--cast" not in verb.options:
        own.append(_CAST)
    if given == "changes" or verb.name in _ASKED:
        own.append(_AGENT)
    placed = [one for one in verb.arguments if one.placed and one.help]
    told = [f"{one.name.upper()}: {one.help}" for one in placed]
    examples = [
        line.replace("%materia ", "materia ")
        for line in verb.example.splitlines()
        if line.startswith("%materia ")
    ]
    return _Command(
        verb.name.rpartition(" ")[2],
        params=[*own, *_COMMON],
        callback=partial(_act, verb, given),
        help="\n\n".join([verb.summary, *told]),
        short_help=summary_of(verb.name) if " " not in verb.name else verb.summary,
        epilog="\b\nFor example:\n" + "\n".join(f"  {line}" for line in examples) if examples else None,
    )


def _act(
    verb: Verb,
    given: str,
    *,
    project: Path,
    on_top: str | None,
    as_json: bool,
    of: str | None = None,
    agent: Sequence[str] = (),
    body: TextIO | None = None,
    **values: Any,
) -> int:
    """Do what a verb does, and write what came of it; the exit code."""
    with _bench(given, project, on_top, agent) as bench:
        arguments = _arguments(verb, values, bench)
        text = None if body is None else body.read()
        if given in ("looks", "changes"):
            (bench.open if given == "looks" else bench.resume)(of or arguments.get("cast") or "-1")
        value = verb.handler(Call(bench, arguments, text, {}))
        return _told(verb, value, bench, as_json=as_json)


@contextmanager
def _bench(
    given: str, project: Path, on_top: str | None = None, agents: Sequence[str] = ()
) -> Iterator[Workbench]:
    """Make the bench of one command: for verbs that test, one that has nobody to ask and nothing that starts a process."""
    if given == "tests":
        dry = DryBench(project)
        dry.load(on_top) if on_top is not None else terminal.choose_own(dry)
        yield cast("Workbench", dry)
        return
    bench = Workbench(project)
    try:
        bench.load(on_top) if on_top is not None else terminal.choose_own(bench)
        for one in agents:
            name, equals, who = one.partition("=")
            if not equals:
                raise usage_error(f"--agent {one} names nobody.", "write NAME=WHO")
            parsed = parse(VERBS["agent"], f'"{name}" {who}', {})
            VERBS["agent"].handler(Call(bench, parsed, None, {}))
        yield bench
    finally:
        bench.close()


def _arguments(verb: Verb, values: dict[str, Any], bench: Workbench) -> dict[str, Any]:
    """Return the arguments of a verb, as a line of a notebook would give them; a file in the place of a loadout is read."""
    made: dict[str, Any] = {}
    for one in verb.arguments:
        value = values.get(one.key)
        if value in (None, (), False):
            continue
        if isinstance(value, tuple):
            value = list(value) if one.kind == "words" else " ".join(map(str, value))
        if one.completes == "loadout" and Path(str(value)).suffix in ENDINGS:
            value = bench.load(str(value)).name
        made[one.key] = value
    return made


def _told(verb: Verb, value: object, bench: Workbench, *, as_json: bool) -> int:
    """Write what came of a verb; the exit code."""
    fine = terminal.is_fine(verb.name, value, bench)
    if as_json:
        click.echo(_json_text({"ok": fine, **terminal.data_of(verb.name, value, bench)}))
    elif value is not None:
        click.echo(terminal.text_of(value, shutil.get_terminal_size((100, 0)).columns))
    return FINE if fine else PROBLEMS


# -- commands of their own -------------------------------------------------------------


def _check(
    *,
    names: Sequence[str],
    strict: bool,
    fix: bool,
    save: bool,
    form: str,
    project: Path,
    on_top: str | None,
    as_json: bool,
) -> int:
    """Check files of loadouts, loadouts and cases; see the help of the command."""
    with _bench("tests", project, on_top) as bench:
        if not fix:
            found = terminal.findings_of(bench, names, strict=strict)
            click.echo(terminal.findings_text(found, "json" if as_json else form))
            return FINE if found.ok else PROBLEMS
        if len(names) > 1:
            raise usage_error("One loadout is fixed at a time.")
        verb = VERBS["check"]
        arguments = _arguments(verb, {"loadout": tuple(names), "fix": fix, "save": save}, bench)
        return _told(verb, verb.handler(Call(bench, arguments, None, {})), bench, as_json=as_json)


def _run(
    *, request: Sequence[str], loadout: str | None, project: Path, on_top: str | None, as_json: bool,
    of: str | None, agent: Sequence[str], **values: Any,
) -> int:  # fmt: skip
    """Cast a request, or go on with a cast, until it ends or must wait; a person at the terminal is asked."""
    run = VERBS["run"]
    with _bench("changes", project, on_top, agent) as bench:
        if request:
            if of is not None:
                what = "A request begins a cast of its own."
                raise usage_error(what, "leave --cast out")
            begun = _arguments(VERBS["cast"], {"request": request, "loadout": loadout}, bench)
            bench.cast(begun["request"], loadout=begun.get("loadout"))
        elif loadout is not None:
            raise usage_error("The request is missing.", "run REQUEST --loadout NAME")
        else:
            bench.resume(of or "-1")
        call = Call(bench, _arguments(run, values, bench), None, {})
        value = run.handler(call)
        while terminal.can_ask(as_json=as_json) and terminal.let_answer(bench.current):
            value = (
                run.handler(call)
                if bench.current.status in ("ready", "waiting")
                else VERBS["status"].handler(call)
            )
        return _told(run, value, bench, as_json=as_json)


def _copy(bundle: Bundle, *, folder: Path | None, force: bool) -> None:
    click.echo(run_copy(bundle, folder, force=force))


def _mcp(*, project: Path) -> None:
    from materia_nb.shell.mcp_server import serve

    serve(project)


def _forward(module: str, *, arguments: Sequence[str]) -> None:
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__")


def _verb_commands() -> Iterator[tuple[str, click.Command]]:
    """Yield the commands that verbs are."""
    for given, names in SHELL.items():
        for name in names if given != "notebook" else ():
            yield name, _command(VERBS[name], given)


def _add_commands() -> None:
    """Put every command in its place below its first word."""
    made = dict(_verb_commands())
    check, run = made["check"], made["run"]
    check.callback, run.callback = _check, _run
    named = click.Argument(["names"], nargs=-1, metavar="[FILE|LOADOUT]...")
    check.params = [named, *(one for one in check.params if one.name != "loadout")]
    check.params.append(click.Option(["--format", "form"], type=click.Choice(terminal.FORMATS), default="text", help="how findings are written"))  # fmt: skip
    check.help = (
        f"{VERBS['check'].summary}\n\nFILE: a file of loadouts, all of which are checked, or a case "
        "(*.materia-case.json), whose answers are sent through its loadout. LOADOUT: a loadout of the project. Left out: "
        "those that files define."
    )
    run.params = [*(one for one in made["cast"].params if one.name in ("request", "loadout")), *run.params]
    run.help = f"Cast a request and run it; without REQUEST, go on with a cast.\n\n{run.help}"
    for name, command in made.items():
        first, _, second = name.partition(" ")
        if not family(first):
            program.add_command(command, first)
            continue
        words = program.commands.get(first)
        if not isinstance(words, _Words):
            about = summary_of(first)
            words = _Words(first, help=about, invoke_without_command=False, no_args_is_help=first not in made)
            program.add_command(words)
        words.commands[second] = command  # "" is the first word alone
    for bundle in offered():
        folder = click.Argument(["folder"], required=False, type=click.Path(path_type=Path), metavar="DIR")
        force = click.Option(["--force"], is_flag=True, help="write over files that are there")
        program.add_command(click.Command(bundle.command, params=[folder, force], callback=partial(_copy, bundle), help=f"{bundle.about}."))  # fmt: skip
    project = next(one for one in _COMMON if one.name == "project")
    about = "Let a coding agent design loadouts, over MCP on stdin and stdout; you review each step in the designer."
    program.add_command(click.Command("mcp", params=[project], callback=_mcp, help=about))
    for name, (module, about) in _PROGRAMS.items():
        rest = click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)
        passed_on: dict[str, Any] = {"ignore_unknown_options": True}
        command = click.Command(name, passed_on, partial(_forward, module), [rest], help=about, add_help_option=False)  # fmt: skip
        program.add_command(command)


_add_commands()
