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
from materia_nb.loadout.config_files import is_config_file
from materia_nb.magics import registry
from materia_nb.magics import verbs as _verbs  # noqa: F401 - importing it registers the verbs
from materia_nb.widgets.cast_parts import standalone_names

_BENCH_NAME = "wb"  # The notebook variable that contains the workbench.


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
        """Run a ``%materia`` command."""
        # IPython's output_can_be_silenced parses the text as Python to find the semicolon, which fails for prose.
        value = self.run(line, cell)
        is_silenced = cell is None and line.rstrip().endswith(";")  # a cell is never silenced
        return None if is_silenced else value

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
            raise usage_error(f"{name} requires a cell body.", f"write `%%materia {name}` at the top of a cell")
        if cell is not None and verb.cell == "never":
            raise usage_error(f"{name} does not accept a cell body.", f"write `{verb.usage}` on a line")
        arguments = registry.parse(verb, rest, self.namespace)
        try:
            return verb.handler(registry.Call(self.bench, arguments, cell, self.namespace))
        except KeyboardInterrupt:
            now = self.bench.last_cast and self.bench.last_cast.now
            position = f" at {now.names[now.next_socket]}" if now and now.next_socket else ""
            raise Interrupted(
                f"The run was interrupted{position}. No recorded data is lost.",
                hint="use `step` or `run` to continue the cast",
                kind="interrupted",
            ) from None


MateriaMagics.materia.__doc__ = registry.help_text()


_MATERIA_LINE = re.compile(r"(?:.*=\s*)?%{1,2}materia\s+(.*)", re.DOTALL)


def make_matcher(bench: Callable[[], Workbench]) -> Any:
    """Return a matcher for IPython's completer, which completes words only on ``%materia`` lines."""

    @context_matcher(identifier="materia_nb")
    def materia_matcher(context: CompletionContext) -> Any:
        match = _MATERIA_LINE.fullmatch(context.text_until_cursor)
        if match is None:
            return {"completions": []}
        *previous_words, prefix = match.group(1).split(" ")
        try:
            candidates = next_words(bench, previous_words)
        except Exception:  # noqa: BLE001 - completion must never disturb typing
            candidates = []
        completions = sorted({name for name in candidates if name.startswith(prefix)})
        return {
            "completions": [SimpleCompletion(name, type="materia") for name in completions],
            "suppress": True,
            "matched_fragment": prefix,
        }

    return materia_matcher


def next_words(bench: Callable[[], Workbench], previous_words: list[str]) -> list[str]:
    """Return the words that can follow ``previous_words`` on a ``%materia`` line."""
    before = [word for word in previous_words if word]
    if not before:
        return registry.first_words()
    second_words = registry.subverbs(before[0]) if len(before) == 1 else []
    if (two_word_name := " ".join(before[:2])) in registry.VERBS and len(before) > 1:
        before = [two_word_name, *before[2:]]
    verb = registry.VERBS.get(before[0])
    if verb is None:
        return second_words
    options = verb.options
    last_option = options.get(before[-1])
    if last_option is not None and last_option.kind == "option":
        return _completion_names(bench, last_option)
    return [
        *second_words,
        *_completion_names(bench, _next_positional(verb, before[1:])),
        *(name for name in options if name not in before),
    ]


def _next_positional(verb: registry.Verb, typed_words: list[str]) -> registry.Argument | None:
    """Return the positional argument that receives the next word, or None."""
    positional = [argument for argument in verb.arguments if argument.is_positional]
    index, is_option_value = 0, False
    for word in typed_words:
        if is_option_value:
            is_option_value = False
        elif word == "--":
            index += index < len(positional) and positional[index].kind == "words"
        elif word.startswith("--"):
            argument = verb.options.get(word)
            is_option_value = argument is not None and argument.kind == "option"
        elif index < len(positional) and positional[index].kind != "words":
            index += 1
    return positional[index] if index < len(positional) else None


def _completion_names(bench: Callable[[], Workbench], argument: registry.Argument | None) -> list[str]:
    if argument is not None and argument.choices:
        return list(argument.choices)
    if argument is None or argument.completes is None:
        return []
    if argument.completes == "verb":
        return registry.first_words()
    return _NAME_FUNCTIONS[argument.completes](bench())


def _materia_names(wb: Workbench) -> list[str]:
    return [*map(_quote, as_object(wb.loadouts.config.document.get("materia"))), *_socket_names(wb)]


def _loadouts_and_materia(wb: Workbench) -> list[str]:
    """Return the names of all loadouts and materia; an ambiguous name gets the prefix ``loadout:`` or ``materia:``."""
    groups = {
        "loadout": as_object(wb.loadouts.config.document.get("loadouts")),
        "materia": as_object(wb.loadouts.config.document.get("materia")),
    }
    ambiguous = set(groups["loadout"]) & set(groups["materia"])
    return [_quote(f"{kind}:{name}" if name in ambiguous else name) for kind, group in groups.items() for name in group]


def _socket_names(wb: Workbench) -> list[str]:
    if wb.last_cast is not None:
        return list(wb.last_cast.graph.sockets)
    return list(wb.graph().sockets)


def _config_files(wb: Workbench) -> list[str]:
    paths = [*sorted(wb.project.glob("*")), *sorted(wb.project.glob("*/*"))]
    return [_quote(str(path.relative_to(wb.project))) for path in paths if is_config_file(path) and path.is_file()]


def _quote(name: str) -> str:
    return f'"{name}"' if " " in name else name


def _cast_names(wb: Workbench) -> list[str]:
    """Return the ids of the 50 latest casts, and the names of all casts that have a name."""
    entries = wb.casts()
    return [*(entry.id for entry in entries[:50]), *(_quote(entry.name) for entry in entries if entry.name)]


def _agent_names(_: Workbench) -> list[str]:
    kinds = ("person", "command", "model", "openai:", "anthropic:", "ollama:", "recorded:")
    return [*kinds, *(f"{COMMAND_PREFIX}{name}" for name in PRESETS)]


_NAME_FUNCTIONS: Final[Mapping[str, Callable[[Workbench], list[str]]]] = {
    "loadout": lambda wb: [_quote(name) for name in wb.loadouts],
    "materia": _materia_names,
    "part": _loadouts_and_materia,
    "socket": _socket_names,
    "cast": _cast_names,
    "file": _config_files,
    "agent": _agent_names,
    "card": lambda wb: list(wb.gallery()),
    "panel": lambda _: standalone_names(),
    "pin": lambda wb: [_quote(name) for name in {**wb.agents.pins, **(wb.last_cast.pins if wb.last_cast else {})}],
}


def make_cell_namer(shell: InteractiveShell) -> Callable[[str], str | None]:
    """Return a function that converts the file name of a cell's code to the prompt of the cell, such as ``In[3]``."""

    def cell_name(filename: str) -> str | None:
        code_name = shell.compile.format_code_name(filename)
        return code_name[1] if code_name is not None and code_name[0] == "Cell" else None

    return cell_name


_MAGIC_PREFIX: Final = "%materia "


class QuestionLine(TokenTransformBase):
    """An IPython input transformer that passes a ``%materia`` line with a final ``?`` to the magic.

    Without this transformer, IPython would treat the question mark as a request for its own help, as in ``%materia?``.
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
            first_token = next((token for token in line if token.start[0] - 1 == magic.start_line), None)
            if first_token is not None and first_token.line[magic.start_col :].startswith(_MAGIC_PREFIX):
                return cls(next(token.start for token in line if token.string.strip()), magic)
        return None

    def transform(self, lines: list[str]) -> list[str]:
        """Replace the magic line with a Python call of the magic."""
        transformed: list[str] = self._magic.transform(lines)
        return transformed
