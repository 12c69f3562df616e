"""How a cast is shown as the value of a cell: with its panels where there is a kernel, else as a picture.

Below the panels stands the record of the cast, which is what a reader without the kernel sees.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from materia_nb.magics.record import Record

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from materia_nb.cast import Cast
    from materia_nb.cast.workbench import Workbench

_CAST: Final = ("materia_nb.cast.cast", "Cast")
_log = logging.getLogger("materia_nb.magics")
_PANEL: Final = ("materia_nb.widgets.cast_panel", "CastPanel")


class CastDisplay:
    """Shows the casts of a shell, and keeps their records up to date.

    Args:
        shell: whose.
        workbench: gives its workbench; a cast that is forked in a panel becomes the current one there.
    """

    def __init__(self, shell: InteractiveShell, workbench: Callable[[], Workbench]) -> None:
        self._shell = shell
        self._workbench = workbench
        self._records: dict[Path, Record] = {}
        formatter = _formatter(shell)
        formatter.for_type_by_name(*_CAST, self._show_cast)
        formatter.for_type_by_name(*_PANEL, self._show_panel)
        shell.events.register("post_run_cell", self._ran)

    def close(self) -> None:
        """Show casts as pictures again; what is shown stays as it is."""
        for module, name in (_CAST, _PANEL):
            _forget(_formatter(self._shell), module, name)
        self._shell.events.unregister("post_run_cell", self._ran)
        for record in self._records.values():
            record.close()

    def _show_cast(self, cast: Cast) -> None:
        if getattr(self._shell, "kernel", None) is None or not cast.now.writable:
            raise NotImplementedError  # IPython then asks for the picture
        try:
            from materia_nb.widgets import cast_panel

            bench = self._workbench()
            panel = cast_panel.show(cast, bench.take, bench=bench)
        except Exception:  # noqa: BLE001 - a cast can be shown without them
            _log.warning("no panels; a picture is shown", exc_info=True)
            raise NotImplementedError from None
        self._show_panel(panel)

    def _show_panel(self, panel: Any) -> None:
        if getattr(self._shell, "kernel", None) is None or panel.closed:
            raise NotImplementedError
        from IPython.display import display

        panel.recorded()
        shown = {
            **(panel.view._repr_mimebundle_() or {}),
            "text/plain": "The buttons and panels of this cast need its kernel; below is its record.",
        }
        display(shown, raw=True)
        cast = panel.cast
        place = cast.run_dir.resolve()
        known = self._records.get(place)
        if known is None or known.cast is not cast:
            if known is not None:
                known.close()
            known = self._records[place] = Record(cast, display)
        known.show()

    def _ran(self, _: object = None) -> None:
        """A cell has ended: tell in the records what it did."""
        for record in self._records.values():
            try:
                record.refresh()
            except Exception:  # noqa: BLE001 - the cell has done its work
                _log.warning("the record of a cast cannot be brought up to date", exc_info=True)


def _formatter(shell: InteractiveShell) -> Any:
    formatter: Any = shell.display_formatter
    return formatter.ipython_display_formatter


def _forget(formatter: Any, module: str, name: str) -> None:
    formatter.deferred_printers.pop((module, name), None)
    for known in [one for one in formatter.type_printers if (one.__module__, one.__name__) == (module, name)]:
        del formatter.type_printers[known]
