"""Count function calls, so that tests can limit the cost of an action independently of machine speed."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import materia_nb


def calls_of(act):
    """Run ``act`` and return the number of calls to functions of the package."""
    package = str(Path(materia_nb.__file__).parent)
    count = 0

    def note(frame, event, _):
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(package)

    gc.collect()  # finalizers of earlier tests would be counted
    before = sys.getprofile()
    gc.disable()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count
