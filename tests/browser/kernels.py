"""The kernels that run the notebooks: the kernel of this environment and the oldest supported kernel."""

from __future__ import annotations

from typing import Final

import pytest

NEWEST: Final = "python3"
OLDEST: Final = "oldest"

both_kernels = pytest.mark.parametrize("kernel", [NEWEST, OLDEST], indirect=True)
"""Decorator that runs a browser test on the newest and the oldest kernel, because widget timing and threads differ."""
