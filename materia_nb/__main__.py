"""``python -m materia_nb``: tell what there is, copy the notebooks out, check this machine.

Whoever has the wheel alone has everything: the notebooks are data of the package. What can be copied out is
listed in :data:`TO_COPY`; another folder or file of the package becomes a command by a line there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import runpy
import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from materia_nb import __version__
from materia_nb.errors import MateriaError, counted, did_you_mean
from materia_nb.file_io import read_own, read_plain, replace_file

PROGRAM: Final = "python -m materia_nb"
WIDTH: Final = 88
PACKAGE: Final = Path(__file__).resolve().parent
ROOTS: Final = [PACKAGE] if (PACKAGE / "notebooks").is_dir() else [PACKAGE, PACKAGE.parent]
"""Where the data is: a wheel has the notebooks in the package, a checkout beside it."""
_LEFT: Final = frozenset({"__pycache__"})


@dataclass(frozen=True, slots=True)
class Bundle:
    """Something of the package that is copied out by a command of its own.

    Attributes:
        command: the word behind ``python -m materia_nb``.
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
        "lessons",
        "copy the notebooks to DIR: a tour and the lessons",
        ("notebooks",),
        "00-quickstart.ipynb",
    ),
    Bundle("gallery", "copy the gallery to DIR: patterns, and mistakes to find", ("gallery",)),
    Bundle(
        "cheatsheet",
        "copy the cheat sheet to DIR: the rules on one page",
        ("cheatsheet", "cheatsheet.svg", "cheatsheet.pdf"),
    ),
)
"""What can be copied out, in the order of the help."""

FORWARDED: Final[Mapping[str, tuple[str, str, str]]] = {
    "doctor": ("", "what is installed here, and works", "materia_nb.doctor"),
    "schema": ("", "the JSON Schema of a file of loadouts, for editors", "materia_nb.schema"),
    "conformance": ("FILE...", "run conformance vectors", "materia_nb.conformance"),
}
"""Commands that are programs of their own (``python -m``): what follows them, what they do, and their module."""


def main(arguments: Sequence[str]) -> int:
    """Do what a command says, or tell what there is; the exit code: 0 done, 1 refused, 2 not understood."""
    command, *rest = arguments or ["help"]
    try:
        code = _run(command, rest)
        sys.stdout.flush()
    except MateriaError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:  # `... | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _run(command: str, rest: Sequence[str]) -> int:
    if command in FORWARDED:
        module = FORWARDED[command][2]
        sys.argv = [module, *rest]
        runpy.run_module(module, run_name="__main__")
        return 0
    bundles = {bundle.command: bundle for bundle in offered()}
    if command in bundles:
        return run_copy(bundles[command], rest)
    if command in {"-V", "--version"}:
        print(__version__)
        return 0
    if command in {"help", "-h", "--help"}:
        print(overview())
        return 0
    meant = did_you_mean(command, [*bundles, *FORWARDED, "help"])
    print(MateriaError(f"There is no command {command!r}.", hint=meant), file=sys.stderr)
    return 2


def offered() -> list[Bundle]:
    """The bundles that this installation has."""
    return [bundle for bundle in TO_COPY if bundle.files()]


# -- what there is ---------------------------------------------------------------------


def overview() -> str:
    """Everything that comes with the package, and where to begin."""
    from materia_nb.loadout.layers import BUNDLED

    import_module("materia_nb.magics.verbs")  # registers the verbs
    verbs = import_module("materia_nb.magics.registry").first_words()

    commands = [(f"{one.command} [DIR]", one.about) for one in offered()]
    commands += [(f"{name} {more}".strip(), about) for name, (more, about, _) in FORWARDED.items()]
    notebooks = [(path.stem, title_of(path)) for path in TO_COPY[0].notebooks().values()]
    loadouts = json.loads(read_own(BUNDLED))["loadouts"]
    begin = [
        (f"{PROGRAM} lessons DIR", "copy the notebooks to DIR"),
        ("jupyter lab DIR/00-quickstart.ipynb", "the tour; then 01-edges, the first lesson"),
        ("%load_ext materia_nb", "in a notebook; then %materia help"),
    ]
    parts = [
        f"Materia NB {__version__}: run, watch and debug agent workflow graphs (loadouts), step by step.",
        _section("Begin here", _columns(begin)),
        _section(f"Commands ({PROGRAM} COMMAND)", _columns(commands)),
        _section("Notebooks", _columns(notebooks)),
        _section("Loadouts that come with it (%materia grid NAME draws one)", _wrapped(loadouts)),
        _section("Verbs of %materia (%materia help VERB explains one)", _wrapped(verbs)),
    ]
    return "\n\n".join(part for part in parts if part)


def title_of(notebook: Path) -> str:
    """The first heading of a notebook; its name where there is none."""
    for cell in json.loads(read_own(notebook))["cells"]:
        for line in "".join(cell["source"]).splitlines():
            if cell["cell_type"] == "markdown" and line.startswith("# "):
                return line[2:].strip()
    return notebook.stem


def _section(title: str, body: str) -> str:
    return f"{title}\n{textwrap.indent(body, '  ')}" if body else ""


def _columns(rows: Sequence[tuple[str, str]]) -> str:
    wide = max((len(left) for left, _ in rows), default=0)
    return "\n".join(f"{left:<{wide}}  {right}" for left, right in rows)


def _wrapped(names: Iterable[str]) -> str:
    return textwrap.fill(", ".join(names), WIDTH - 2, break_on_hyphens=False)


# -- copying ---------------------------------------------------------------------------


def run_copy(bundle: Bundle, arguments: Sequence[str]) -> int:
    """Copy a bundle to the folder that is named, and tell how to go on; without one, list what there is."""
    parser = argparse.ArgumentParser(prog=f"{PROGRAM} {bundle.command}", description=f"{bundle.about}.")
    parser.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="made if it is not there")
    parser.add_argument("--force", action="store_true", help="write over files that are there")
    given = parser.parse_args(arguments)
    if given.folder is None:
        rows = [(str(place), title_of(path)) for place, path in bundle.notebooks().items()]
        print(_columns(rows or [(str(place), "") for place in bundle.files()]))
        print(f"\n{PROGRAM} {bundle.command} DIR copies them to DIR.")
        return 0
    written = copy_out(bundle, given.folder, force=given.force)
    trusted = trust([given.folder / place for place in written if place in bundle.notebooks()])
    print("\n".join(_told(bundle, given.folder, written, trusted=trusted)))
    return 0


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
    return target.is_file() and target.read_bytes() == content


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _told(bundle: Bundle, folder: Path, written: Sequence[Path], *, trusted: bool) -> Iterator[str]:
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
