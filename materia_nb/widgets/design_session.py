"""A design while a person works on it in a surface: it hears messages, and does what they ask for. No widgets here.

A message names the part that it is about, and brings what was typed whole, so that nothing typed for one part can
reach another, or arrive half. What is refused stays where it was typed, with the reason beside it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from materia_nb.display.escape import shorten
from materia_nb.errors import MateriaError
from materia_nb.loadout.facts import as_object
from materia_nb.widgets.design_acts import act_on
from materia_nb.widgets.design_state import DesignState

_log = logging.getLogger("materia_nb.widgets")


class DesignSession(DesignState):
    """A design, what of it is selected, and what was said last; it changes by what it hears."""

    def heard(self, kind: str, values: Mapping[str, Any]) -> None:
        """Do what a message asks for; what cannot be done is said in ``note``, and nothing has changed."""
        not_kept, words = self.design.not_kept, None
        try:
            if kind not in ("answer", "pick", "news") and not self.reviewing:
                self.question = None
            words = act_on(self, kind, values)
        except MateriaError as error:
            where = f" ({error.where})" if error.where and "/" in error.where else ""
            self.note = "alert", ": ".join(filter(None, [f"{error.what.rstrip('.')}{where}", error.hint]))
        except Exception as error:  # noqa: BLE001 - a message may hold anything
            _log.warning("the design could not do %r", shorten(str(kind), 60), exc_info=error)
            self.note = "alert", f"That could not be done: {type(error).__name__}."
        else:
            if words is not None or (self.note[0] == "alert" and kind != "news"):
                self.note = "status", words or ""
        if self.design.not_kept not in ("", not_kept):
            self.note = "alert", f"{words or 'done'}; {self.design.not_kept}: save it to be sure of it"
        self._tidy()

    def _tidy(self) -> None:
        """Forget what is not there any more."""
        known = as_object(self.design.document.get("sockets"))
        self.marked = [one for one in self.marked if one in known]
        if self.selected is not None and not self.knows(*self.selected):
            self.selected = None
        self.refused = {key: one for key, one in self.refused.items() if self.has_fields(key[0], key[1])}
