"""A pytest plugin that collects each ``*.materia-case.json`` file as a test and runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_SUFFIX = ".materia-case.json"  # not imported: every run of pytest loads this module, so it must be quick


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--materia-update``, which makes the current outcome of each test case the expected one."""
    parser.addoption("--materia-update", action="store_true", help="accept changed outcomes of *.materia-case.json")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return a collector for a saved test case, or None for any other file."""
    return CaseFile.from_parent(parent, path=file_path) if file_path.name.endswith(_SUFFIX) else None


class CaseFile(pytest.File):
    """A file with a saved test case, which contains one test."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the test, named after the file."""
        yield CaseItem.from_parent(self, name=self.path.name.removesuffix(_SUFFIX))


class CaseItem(pytest.Item):
    """A test that runs a saved test case."""

    def runtest(self) -> None:
        """Replay the answers of the case in its loadout, and compare the outcome with the expected outcome.

        With ``--materia-update``, a changed outcome is stored and reported as a warning.
        """
        from materia_nb.cast.cases import read_case
        from materia_nb.errors import MateriaError

        case = read_case(self.path)
        if differences := case.check():
            if not self.config.getoption("--materia-update"):
                raise MateriaError(differences[0], more=differences[1:], hint=case.advice)
            case.update()
            self.warn(pytest.PytestWarning("\n".join([f"{self.path.name} was updated:", *differences])))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """Return the differences as text, without this package's traceback."""
        from materia_nb.errors import MateriaError

        if isinstance(excinfo.value, MateriaError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the file, line and title of the case for the pytest report."""
        return self.path, 0, f"case {self.name}"
