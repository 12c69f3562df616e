"""Keys must not reach what is shown or kept."""

from __future__ import annotations

import os
import re
from typing import Final

_NAMES: Final = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SHORTEST: Final = 6  # a shorter value is no key, and would be cut out of ordinary words


def scrubbed(text: str, *more: str | None) -> str:
    """Return text without the values of environment variables that hold keys, and without ``more``."""
    values = [value for name, value in os.environ.items() if _NAMES.search(name)]
    for value in sorted({*values, *(one for one in more if one)}, key=len, reverse=True):
        if len(value) >= _SHORTEST:
            text = text.replace(value, "***")
    return text
