"""A condition is one row in the table and a word in its type: the rest of the package follows (R3)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import fourth_condition
import materia_nb

HELPERS = Path(fourth_condition.__file__).parent


def test_one_more_row_is_routed_told_drawn_and_offered(tmp_path):
    shutil.copytree(
        Path(materia_nb.__file__).parent,
        tmp_path / "materia_nb",
        ignore=shutil.ignore_patterns("__pycache__", "gallery", "cheatsheet"),
    )
    table = tmp_path / "materia_nb" / "loadout" / "vocabulary.py"
    before, place, after = table.read_text("utf-8").partition('\n}\n"""Every condition, ')
    assert place
    table.write_text(before + fourth_condition.ROW.rstrip() + place + after, "utf-8")
    done = subprocess.run(
        [sys.executable, fourth_condition.__file__],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(HELPERS)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
