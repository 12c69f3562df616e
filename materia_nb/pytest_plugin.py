"""Lets pytest run cases: every ``*.materia-case.json`` that it collects is one test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_SUFFIX = ".materia-case.json"  # not imported: this module is loaded by every run of pytest, and must be quick


class CaseFailed(Exception):
    """What a case expects does not hold."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take the files of cases."""
    return CaseFile.from_parent(parent, path=file_path) if file_path.name.endswith(_SUFFIX) else None


class CaseFile(pytest.File):
    """The file of a case, which holds one test."""

    def collect(self) -> Iterator[pytest.Item]:
        """Give the test, named as the file."""
        yield CaseItem.from_parent(self, name=self.path.name.removesuffix(_SUFFIX))


class CaseItem(pytest.Item):
    """One case."""

    def runtest(self) -> None:
        """Send the answers through the loadout, and compare."""
        from materia_nb.cast.cases import read_case

        if told := read_case(self.path).check():
            raise CaseFailed("\n".join(told))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """Show what does not hold, and not where in the package that was found."""
        from materia_nb.errors import MateriaError

        if isinstance(excinfo.value, CaseFailed | MateriaError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Say where the case is."""
        return self.path, 0, f"case {self.name}"
