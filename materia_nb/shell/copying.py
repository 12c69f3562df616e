"""What comes with the package is copied out of it: lessons, gallery, cheat sheet.

Whoever has the wheel alone has everything: the notebooks are data of the package. Another folder or file of it becomes
a command by a line in :data:`TO_COPY`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from materia_nb.errors import MateriaError, counted
from materia_nb.file_io import read_own, read_plain, replace_file

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
    return "\n".join(_told(bundle, folder, written, trusted=trusted))


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
