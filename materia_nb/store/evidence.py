"""Finding on the disk what an output calls a file. The text is foreign: it only ever leads inside given folders."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from materia_nb.handoff.protocol import NamesArtifacts, Reading

_LONGEST: Final = 1_000


def find_evidence(text: str, folders: Iterable[Path]) -> Path | None:
    """Return the file or folder that ``text`` names in the first of ``folders`` that holds it.

    Args:
        text: a path, relative to one of the folders or absolute.
        folders: where to look.

    Returns:
        The resolved path, links followed; None when there is nothing, or it lies outside of its folder.
    """
    if not text.strip() or len(text) > _LONGEST:
        return None
    for folder in folders:
        try:
            root = folder.resolve()
            found = (root / text.strip()).resolve()
            if found.is_relative_to(root) and found.exists():
                return found
        except (OSError, ValueError, RuntimeError):
            continue  # no path at all: a null character, a name too long, links in a circle
    return None


def missing_evidence(
    naming: NamesArtifacts, reading: Reading | None, project: Path, run_dir: Path
) -> list[str]:
    """Return the files that an accepted output says were made and that are not there (envelope rules, section 3).

    What lies outside of the project and the run directory is not looked at, unless it is named by an
    absolute path; addresses are no files.
    """
    if reading is None or not reading.accepted or not isinstance(reading.value, dict):
        return []
    named = dict.fromkeys(naming.artifacts(reading.value))
    return [text for text in named if text.strip() and not _is_there(text.strip(), project, run_dir)]


def _is_there(text: str, project: Path, run_dir: Path) -> bool:
    if "://" in text or find_evidence(text, (project, run_dir)) is not None:
        return True
    try:
        return Path(text).is_absolute() and Path(text).exists()
    except (OSError, ValueError):
        return False


def file_within(text: str, project: Path, run_dir: Path) -> str | None:
    """Return the path, relative to the project, of a file that ``text`` names in the project or the run directory.

    None when it is no file, or lies where no link from the project reaches.
    """
    found = find_evidence(text, (project, run_dir))
    root = project.resolve()
    if found is None or not found.is_file() or not found.is_relative_to(root):
        return None
    return found.relative_to(root).as_posix()
