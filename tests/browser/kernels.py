"""The kernels for the notebooks: the kernel of this environment, and the oldest supported kernel."""

from __future__ import annotations

from typing import Final

import pytest

NEWEST: Final = "python3"
OLDEST: Final = "oldest"

both_kernels = pytest.mark.parametrize("kernel", [NEWEST, OLDEST], indirect=True)
"""Runs a browser test on the newest and the oldest kernel, since the timing and threads of widgets depend on it."""
