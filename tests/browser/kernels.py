"""The kernels for the notebooks: this environment's, and the oldest supported one."""

from __future__ import annotations

from typing import Final

import pytest

NEWEST: Final = "python3"
OLDEST: Final = "oldest"

both_kernels = pytest.mark.parametrize("kernel", [NEWEST, OLDEST], indirect=True)
"""Runs a browser test once on each. What a widget does when, and on which thread, depends on ipykernel."""
