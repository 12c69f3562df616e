"""The verb about what is installed and works here: doctor."""

from __future__ import annotations

from typing import Any

from materia_nb.doctor import checkup
from materia_nb.magics.registry import Call, verb


@verb("doctor")
def doctor(call: Call) -> Any:
    """Check what is here and works: software, keys (names only), programs, folders, config, who answers."""
    return checkup(call.bench)
