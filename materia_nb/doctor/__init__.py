"""What is here and works: software, keys, programs, folders, config, and who answers. Nothing goes over the network."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from materia_nb.display.text import table
from materia_nb.doctor import loadout, machine
from materia_nb.doctor.findings import Finding, Status
from materia_nb.errors import MateriaError
from materia_nb.loadout.layers import pi_profile_directory, profile_directory
from materia_nb.utilities import scripts
from materia_nb.views import Table
from materia_nb.workbench import Workbench

__all__ = ["Checkup", "Finding", "Status", "checkup"]

_HEADERS = ("", "about", "what", "found", "what to do")


class Checkup(Table):
    """The findings as a table; ``findings`` are the values to work with."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        super().__init__(_HEADERS, [(f.status, f.area, f.what, f.found, f.todo) for f in findings])

    def __repr__(self) -> str:
        """Write the table with what is to be done below it, since advice is long."""
        rows = [row[:-1] for row in self.rows]
        advice = [f"{f.what}: {f.todo}" for f in self.findings if f.todo]
        return "\n".join([table(rows, self.headers[:-1]), *(["", *advice] if advice else [])])


def checkup(wb: Workbench) -> Checkup:
    """Look at everything that a cast from this workbench needs.

    Args:
        wb: whose project, config and agents are looked at; nothing of it is changed.

    Raises:
        KeyboardInterrupt: interrupted; no program is left running.
    """
    return Checkup([
        *machine.packages(),
        machine.keys(os.environ),
        *machine.programs(wb.project),
        *machine.folders(_folders(wb)),
        *machine.shipped(profile_directory(os.environ) / scripts.FOLDER, pi_profile_directory(os.environ)),
        *loadout.config(wb),
    ])  # fmt: skip


def _folders(wb: Workbench) -> list[tuple[str, Path]]:
    found = [("the user's profile", profile_directory(os.environ))]
    with contextlib.suppress(MateriaError):  # a config that cannot be read is told as such
        found.append(("run directories", wb.artifact_root))
    return found
