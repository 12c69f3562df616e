"""The magics ``%materia`` and ``%%materia``: running verbs, tab completion, and hooks into IPython."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Final

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher
from IPython.core.inputtransformer2 import EscapedCommand, MagicAssign, TokenTransformBase
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from materia_nb.agents.command_agent import COMMAND_PREFIX, PRESETS
from materia_nb.cast.workbench import Workbench
from materia_nb.errors import MateriaError, usage_error
from materia_nb.jsonvalue import as_object
from materia_nb.magics import registry
from materia_nb.magics import verbs as _verbs  # noqa: F401 - importing it registers the verbs
from materia_nb.widgets.cast_parts import alone_names

_BENCH_NAME = "wb"
"""The notebook variable that contains the workbench."""


class Interrupted(MateriaError):
    """The user interrupted the kernel while a verb was running. The cast can be continued."""


@magics_class
class MateriaMagics(Magics):
    """The magics ``%materia`` and ``%%materia`` of one IPython shell.

    Attributes:
        hooks: the hooks in the shell. Closing this exit stack removes them.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.namespace = shell.user_ns
        self._push = shell.push
        self.hooks = ExitStack()

    @property
    def bench(self) -> Workbench:
        """The workbench in the variable ``wb``, which is created on first use."""
        bench = self.namespace.get(_BENCH_NAME)
        if not isinstance(bench, Workbench):
            if bench is not None:
                raise MateriaError(
                    f"The variable {_BENCH_NAME} contains {type(bench).__name__} instead of the workbench.",
                    hint=f"rename this variable, or set {_BENCH_NAME} = materia_nb.Workbench()",
                    kind="no_bench",
                )
            bench = Workbench()
            self._push({_BENCH_NAME: bench})
        return bench

    @line_cell_magic
    @no_var_expand
    def materia(self, line: str, cell: str | None = None) -> Any:
        """Run a verb of Materia NB."""
        # IPython's output_can_be_silenced parses the text as Python to find the semicolon, which fails for prose.
        value = self.run(line, cell)
        return None if registry.is_silenced(line, cell) else value

    def run(self, line: str, cell: str | None) -> Any:
        """Parse the line, run its verb, and return the result of the verb's handler."""
        name, rest = registry.split_verb(line)
        if name in ("", "-h", "--help"):
            name, rest = "help", ""
        if rest in ("-h", "--help") or (name.endswith("?") and not rest):
            name = name.rstrip("?")
            name, rest = "help", name
        verb = registry.find_verb(name)
        if cell is None and verb.cell == "must":
            raise usage_error(f"{name} requires the body of a cell.", f"write %%materia {name} at the top of a cell")
        if cell is not None and verb.cell == "never":
            raise usage_error(f"{name} does not accept the body of a cell.", f"write {verb.usage} on a line")
        arguments = registry.parse(verb, rest, self.namespace)
        try:
            return verb.handler(registry.Call(self.bench, arguments, cell, self.namespace))
        except KeyboardInterrupt:
            cast = self.bench.cast_
            where = cast.now.next_socket if cast else None
            at = f" at {where}" if where else ""
            raise Interrupted(
                f"The run was interrupted{at}. No recorded data is lost.",
                hint="continue the cast with step or run",
                kind="interrupted",
            ) from None


MateriaMagics.materia.__doc__ = registry.help_text()


_LINE = re.compile(r"(?:.*=\s*)?%{1,2}materia\s+(.*)", re.DOTALL)
_CONFIG_SUFFIXES = (".json", ".jsonc", ".yaml", ".yml")


def make_matcher(bench: Callable[[], Workbench]) -> Any:
    """Return a matcher for IPython's completer, which completes words only on ``%materia`` lines."""

    @context_matcher(identifier="materia_nb")
    def materia_matcher(context: CompletionContext) -> Any:
        match = _LINE.fullmatch(context.text_until_cursor)
        if match is None:
            return {"completions": []}
        *before, typed = match.group(1).split(" ")
        try:
            offered = next_words(bench, before)
        except Exception:  # noqa: BLE001 - completion must never disturb typing
            offered = []
        matching = sorted({name for name in offered if name.startswith(typed)})
        kind = "materia"
        return {
            "completions": [SimpleCompletion(name, type=kind) for name in matching],
            "suppress": True,
            "matched_fragment": typed,
        }

    return materia_matcher


def next_words(bench: Callable[[], Workbench], before: list[str]) -> list[str]:
    """Return the words that can follow the words ``before`` on a ``%materia`` line."""
    before = [word for word in before if word]
    if not before:
        return registry.first_words()
    seconds = registry.family(before[0]) if len(before) == 1 else []
    if (two_words := " ".join(before[:2])) in registry.VERBS and len(before) > 1:
        before = [two_words, *before[2:]]
    verb = registry.VERBS.get(before[0])
    if verb is None:
        return seconds
    options = verb.options
    last = options.get(before[-1])
    if last is not None and last.kind == "option":
        return _names(bench, last)
    return [
        *seconds,
        *_names(bench, _next_positional(verb, before[1:])),
        *(name for name in options if name not in before),
    ]


def _next_positional(verb: registry.Verb, typed_words: list[str]) -> registry.Argument | None:
    """Return the positional argument to which the next word belongs, or None."""
    positional = [argument for argument in verb.arguments if argument.is_positional]
    index, skip = 0, False
    for word in typed_words:
        if skip:
            skip = False
        elif word == "--":
            index += index < len(positional) and positional[index].kind == "words"
        elif word.startswith("--"):
            argument = verb.options.get(word)
            skip = argument is not None and argument.kind == "option"
        elif index < len(positional) and positional[index].kind != "words":
            index += 1
    return positional[index] if index < len(positional) else None


def _names(bench: Callable[[], Workbench], argument: registry.Argument | None) -> list[str]:
    if argument is not None and argument.choices:
        return list(argument.choices)
    if argument is None or argument.completes is None:
        return []
    if argument.completes == "verb":
        return registry.first_words()
    return _NAMES[argument.completes](bench())


def _materia(wb: Workbench) -> list[str]:
    return [*map(_quoted, as_object(wb.loadouts.config.document.get("materia"))), *_sockets(wb)]


def _loadouts_and_materia(wb: Workbench) -> list[str]:
    """Return the names of all loadouts and materia; an ambiguous name gets the prefix ``loadout:`` or ``materia:``."""
    groups = {
        "loadout": as_object(wb.loadouts.config.document.get("loadouts")),
        "materia": as_object(wb.loadouts.config.document.get("materia")),
    }
    shared = set(groups["loadout"]) & set(groups["materia"])
    return [_quoted(f"{kind}:{name}" if name in shared else name) for kind, group in groups.items() for name in group]


def _sockets(wb: Workbench) -> list[str]:
    if wb.cast_ is not None:
        return list(wb.cast_.graph.sockets)
    return list(wb.graph().sockets)


def _files(wb: Workbench) -> list[str]:
    paths = [*sorted(wb.project.glob("*")), *sorted(wb.project.glob("*/*"))]
    return [
        _quoted(str(path.relative_to(wb.project)))
        for path in paths
        if path.suffix in _CONFIG_SUFFIXES and path.is_file()
    ]


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name


def _casts(wb: Workbench) -> list[str]:
    """Return the ids of the 50 latest casts, and the names of all casts that have a name."""
    entries = wb.casts()
    return [*(entry.id for entry in entries[:50]), *(_quoted(entry.name) for entry in entries if entry.name)]


def _agents(_: Workbench) -> list[str]:
    kinds = ("person", "command", "model", "openai:", "anthropic:", "ollama:", "recorded:")
    return [*kinds, *(f"{COMMAND_PREFIX}{name}" for name in PRESETS)]


_NAMES: Final[Mapping[str, Callable[[Workbench], list[str]]]] = {
    "loadout": lambda wb: [_quoted(name) for name in wb.loadouts],
    "materia": _materia,
    "part": _loadouts_and_materia,
    "socket": _sockets,
    "cast": _casts,
    "file": _files,
    "agent": _agents,
    "card": lambda wb: list(wb.gallery()),
    "panel": lambda _: alone_names(),
    "pin": lambda wb: [_quoted(name) for name in {**wb.agents.pins, **(wb.cast_.pins if wb.cast_ else {})}],
}


def make_cell_namer(shell: InteractiveShell) -> Callable[[str], str | None]:
    """Return a function that converts the file name of a cell's code to the prompt of the cell, such as ``In[3]``."""

    def name(filename: str) -> str | None:
        named = shell.compile.format_code_name(filename)
        return named[1] if named is not None and named[0] == "Cell" else None

    return name


_PREFIX: Final = "%materia "


class QuestionLine(TokenTransformBase):
    """An IPython input transformer that passes a ``%materia`` line with a final ``?`` to the magic.

    Without it, IPython would treat the question mark as a request for help, as in ``%materia?``.
    """

    priority = 0  # runs before IPython's help transformer, whose priority is 5

    def __init__(self, start: tuple[int, int], magic: Any) -> None:
        super().__init__(start)
        self._magic = magic

    @classmethod
    def find(cls, tokens_by_line: Any) -> QuestionLine | None:
        """Return a transformer for the first ``%materia`` line that ends in ``?``, or None."""
        for line in tokens_by_line:
            if len(line) < 3 or line[-2].string != "?":
                continue
            magic: Any = EscapedCommand.find([line]) or MagicAssign.find([line])
            if magic is None:
                continue
            first = next((token for token in line if token.start[0] - 1 == magic.start_line), None)
            if first is not None and first.line[magic.start_col :].startswith(_PREFIX):
                return cls(next(token.start for token in line if token.string.strip()), magic)
        return None

    def transform(self, lines: list[str]) -> list[str]:
        """Replace the line with a call of the magic."""
        transformed: list[str] = self._magic.transform(lines)
        return transformed
