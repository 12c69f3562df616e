"""Materia NB: run loadouts of agents and utilities step by step in a notebook.

In a notebook, ``%load_ext materia_nb`` adds the ``%materia`` magic. Python programs use a :class:`Workbench` instead::

    wb = materia_nb.Workbench()
    wb.use("Hello-Utility")
    cast = wb.cast("hi")
    cast.run()
    cast.state
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from materia_nb.registry import register

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.cast import workbench as cast_workbench
    from materia_nb.errors import MateriaError
    from materia_nb.quests import QuestBoard
    from materia_nb.sweep import Sweeps

    class Workbench(cast_workbench.Workbench):
        """The workbench for type checkers, with two attributes whose types the module of the class cannot import."""

        @property
        def sweep(self) -> Sweeps:
            """See :class:`~materia_nb.sweep.Sweeps`."""

        @property
        def quests(self) -> QuestBoard:
            """See :class:`~materia_nb.quests.QuestBoard`."""


__version__ = "0.1.0"

__all__ = ["Cast", "MateriaError", "Workbench", "__version__", "load_ipython_extension", "unload_ipython_extension"]

_MODULES = {"Cast": "materia_nb.cast", "MateriaError": "materia_nb.errors", "Workbench": "materia_nb.cast.workbench"}

register("checkup", lambda: import_module("materia_nb.doctor").checkup)
register("panel of all casts", lambda: import_module("materia_nb.widgets.explorer"))
register("panels of a cast", lambda: import_module("materia_nb.widgets.cast_panel"))
register("quests", lambda: import_module("materia_nb.quests"))
register("sweep", lambda: import_module("materia_nb.sweep"))


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that importing the package is fast."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def load_ipython_extension(shell: Any) -> None:
    """Add the ``%materia`` magic to a shell; ``%load_ext materia_nb`` calls this function."""
    from materia_nb.magics import load_ipython_extension as load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the ``%materia`` magic from a shell; ``%unload_ext materia_nb`` calls this function."""
    from materia_nb.magics import unload_ipython_extension as unload

    unload(shell)
