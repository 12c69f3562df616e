"""Files of formats of our own that a person names: one way to read them, and one set of words for what is wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.store.files import read_plain

LONGEST: Final = 2**28
"""The longest file that is read, in bytes."""


@dataclass(frozen=True, slots=True)
class OwnFormat:
    """A format of our own: what a file of it is called, the word in its field ``format``, and what writes one."""

    what: str
    word: str
    hint: str

    def read(self, path: Path) -> dict[str, Any]:
        """Return the object in a file.

        Raises:
            MateriaError: it cannot be read (``no_recording``, ``no_case``), or holds something else (``bad_...``).
        """
        try:
            content = read_plain(path, LONGEST)
        except (OSError, ValueError) as error:
            raise MateriaError(
                f"The {self.what} cannot be read: {getattr(error, 'strerror', 'this is no file name')}.",
                where=str(path),
                hint=self.hint,
                kind=f"no_{self.what}",
            ) from error
        try:
            given = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self.bad(path, f"it is not JSON ({error})") from error
        return self.checked(given, path)

    def checked(self, given: JSON, where: Path | str) -> dict[str, Any]:
        """Return what says that it is of this format; raises MateriaError for anything else."""
        if not isinstance(given, dict) or given.get("format") != self.word:
            raise self.bad(where, f"its format is not {self.word!r}")
        return given

    def bad(self, where: Path | str, why: str) -> MateriaError:
        """Return the error for what is not of this format."""
        return MateriaError(
            f"This is no {self.what}: {why}.", where=str(where), hint=self.hint, kind=f"bad_{self.what}"
        )
