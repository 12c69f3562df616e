"""``%materia`` and ``%%materia``: decorators, parse, dispatch, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from materia_nb.cast.workbench import Workbench
from materia_nb.errors import MateriaError
from materia_nb.magics import verbs as _verbs  # noqa: F401 - importing it registers the verbs
from materia_nb.magics.live import CastDisplay
from materia_nb.magics.parsing import is_silenced, parse, split_verb
from materia_nb.magics.registry import Call, find_verb, help_text

BENCH_NAME = "wb"
"""The variable that holds the workbench; verbs work on the one that stands there."""


class Interrupted(MateriaError):
    """The kernel was interrupted while a cast was running; it can go on."""


@magics_class
class MateriaMagics(Magics):
    """The magic of a shell."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.namespace = shell.user_ns
        self._push = shell.push
        self.shown: CastDisplay | None = None
        self.names: Callable[[], None] = lambda: None

    @property
    def bench(self) -> Workbench:
        """The workbench in the variable ``wb``, made on first use."""
        found = self.namespace.get(BENCH_NAME)
        if not isinstance(found, Workbench):
            if found is not None:
                raise MateriaError(
                    f"The variable {BENCH_NAME} holds {type(found).__name__}, not the workbench.",
                    hint=f"rename it, or set {BENCH_NAME} = materia_nb.Workbench()",
                    kind="no_bench",
                )
            found = Workbench()
            self._push({BENCH_NAME: found})
        return found

    @line_cell_magic
    @no_var_expand
    def materia(self, line: str, cell: str | None = None) -> Any:
        """Run a verb of Materia NB."""
        # IPython's output_can_be_silenced reads the text as Python to find the semicolon, and prose is none.
        value = self.run(line, cell)
        return None if is_silenced(line, cell) else value

    def run(self, line: str, cell: str | None) -> Any:
        """Find the verb, parse, and return what its handler returns."""
        name, rest = split_verb(line)
        if name in ("", "-h", "--help"):
            name, rest = "help", ""
        if rest in ("-h", "--help") or (name.endswith("?") and not rest):
            name = name.rstrip("?")
            name, rest = "help", name
        verb = find_verb(name)
        if cell is None and verb.cell == "must":
            raise MateriaError(
                f"{name} takes the body of a cell.",
                hint=f"write %%materia {name} at the top of a cell",
                kind="usage",
            )
        if cell is not None and verb.cell == "never":
            raise MateriaError(
                f"{name} does not take the body of a cell.",
                hint=f"write {verb.usage} on a line",
                kind="usage",
            )
        arguments = parse(verb, rest, self.namespace)
        try:
            return verb.handler(Call(self.bench, arguments, cell, self.namespace))
        except KeyboardInterrupt:
            cast = self.bench.cast_
            where = cast.now.next_socket if cast else None
            at = f" at {where}" if where else ""
            raise Interrupted(
                f"Interrupted{at}; nothing recorded is lost.",
                hint="step or run goes on from here",
                kind="interrupted",
            ) from None


MateriaMagics.materia.__doc__ = help_text()
