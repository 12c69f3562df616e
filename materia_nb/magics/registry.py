"""Registry of the verbs of ``%materia``, and parser for ``%materia`` lines.

The name of a verb consists of one word or of two words, such as ``edit items``. A verb is defined by a decorated
function (:func:`verb`) or by a method (:func:`method_verb`), whose signature defines the arguments and whose docstring
is the help. In a line, ``$name`` is replaced with the value of a variable. Braces are not expanded, because the JSON of
handoffs contains many of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias, TypeVar

from materia_nb.cast import Cast
from materia_nb.cast.views.status import status_view
from materia_nb.cast.views.step_views import step_view
from materia_nb.cast.workbench import Workbench
from materia_nb.engine.session import StepRecord
from materia_nb.errors import MateriaError, did_you_mean, join_with_or, usage_error
from materia_nb.file_io import read_package_toml
from materia_nb.magics.cast_display import run_progress

_NameKind: TypeAlias = Literal[
    "verb", "loadout", "socket", "materia", "part", "cast", "file", "agent", "pin", "card", "panel"
]  # The kinds of names that tab completion can offer for an argument.


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a verb.

    Attributes:
        name: the name in the help text; an option is written ``--name``.
        help: a short description.
        kind: ``word`` takes one word; ``words`` takes all words up to ``--``; ``rest`` takes the remaining line as
            text; ``option`` takes a value; ``options`` takes a value, may be repeated and becomes a list; ``flag``
            takes no value.
        required: True if a call without the argument is an error; always False for options and flags.
        integer: True if the value must be a whole number.
        completes: the kind of names that tab completion offers.
        choices: the allowed words, which tab completion offers; empty if any word is allowed.
    """

    name: str
    help: str
    kind: Literal["word", "words", "rest", "option", "options", "flag"] = "word"
    required: bool = False
    integer: bool = False
    completes: _NameKind | None = None
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key of the argument in ``Call.arguments``."""
        return self.name.lstrip("-").replace("-", "_")

    @property
    def is_positional(self) -> bool:
        """True if the argument is positional, False if it is an option or a flag."""
        return self.kind in ("word", "words", "rest")

    @property
    def usage(self) -> str:
        """The argument as it appears in a usage line."""
        text = self.name.upper() if self.is_positional else self.name
        if self.kind in ("option", "options"):
            text = f"{self.name} {self.key.upper()}"
        if self.kind in ("words", "rest"):
            text += "..."
        if self.kind == "words" and self.required:
            return f"{text} --"
        return text if self.required else f"[{text}]"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a verb.

    Attributes:
        bench: the workbench.
        arguments: the parsed arguments, by key.
        body: the body of the cell, or None if the verb was called as a line magic.
        names: the user's variables.
    """

    bench: Workbench
    arguments: Mapping[str, Any]
    body: str | None
    names: Mapping[str, Any]

    @property
    def cast(self) -> Cast:
        """The current cast; raises MateriaError if the workbench has no current cast."""
        return self.bench.current

    def body_or(self, value: Any) -> Any:
        """Return the body of the cell, or ``value`` if the verb was called as a line magic."""
        return value if self.body is None else self.body

    def request(self, value: Any) -> Any:
        """Return ``value``, which is the text on the line, followed by the body of the cell if there is one."""
        return value if self.body is None else f"{value}\n{self.body.strip()}".strip()


Handler: TypeAlias = Callable[[Any], Any]
"""Function that runs a verb. It receives a :class:`Call` in ``%materia``, and the parsed arguments in a terminal."""
_Function = TypeVar("_Function", bound=Callable[..., Any])
Rest: TypeAlias = Any
"""Annotation for the parameter of a verb that takes the rest of the line as unparsed text."""
WordList: TypeAlias = Any
"""Annotation for the parameter of a verb that takes all words up to ``--`` as a list."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of ``%materia``. ``cell`` states whether the verb accepts or requires the body of a ``%%materia`` cell."""

    name: str
    summary: str
    handler: Handler
    arguments: tuple[Argument, ...]
    cell: Literal["never", "may", "must"]
    example: str

    @property
    def options(self) -> dict[str, Argument]:
        """The options and flags of the verb, by name."""
        return {argument.name: argument for argument in self.arguments if not argument.is_positional}

    @property
    def usage(self) -> str:
        """The usage line, which shows the verb and its arguments."""
        line = " ".join([self.name, *(argument.usage for argument in self.arguments)])
        return f"%%materia {line}" if self.cell == "must" else f"%materia {line}"


VERBS: Final[dict[str, Verb]] = {}
"""All verbs, by name."""

_HELP_TEXTS: Final = read_package_toml(__file__, "words.toml")
FAMILIES: Final[Mapping[str, str]] = _HELP_TEXTS["families"]
"""Summaries of the first words that need a second word, such as ``edit``, by first word."""
_WRONG_VERB_HINTS: Final[Mapping[str, str]] = {
    synonym: hint for synonyms, hint in _HELP_TEXTS["instead"].items() for synonym in synonyms.split()
}  # Maps each wrong word that users often type to a hint that names the correct verb.
SHELL: Final[Mapping[str, Sequence[str]]] = _HELP_TEXTS["shell"]
"""Verbs by the kind of access they need in a terminal, such as ``reads``; ``notebook`` verbs need a notebook."""


def verb(
    name: str, /, *, cell: Literal["never", "may", "must"] = "never", example: str = "", **overrides: Mapping[str, Any]
) -> Callable[[_Function], _Function]:
    """Register a function as a verb. The parameters after the first are its arguments, and the docstring is its help.

    A keyword-only parameter becomes an option, or a flag if it is a bool. ``overrides`` replaces fields of a parameter's
    :class:`Argument`. If the function accepts any keyword (``**failures``), the other names in ``overrides`` define
    further arguments.
    """

    def register(function: _Function) -> _Function:
        _, *parameters = inspect.signature(function).parameters.values()
        summary, texts = _parse_docstring(function)
        arguments = {
            parameter.name: _make_argument(parameter, texts, overrides.get(parameter.name, {}))
            for parameter in parameters
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        }
        arguments |= {name: Argument(**row) for name, row in overrides.items() if name not in arguments}

        def handler(call: Call) -> Any:
            return function(call, **_argument_values(arguments, call))

        _add_verb(Verb(name, summary, handler, tuple(arguments.values()), cell, example))
        return function

    return register


def _add_verb(new_verb: Verb) -> None:
    ordered_arguments = sorted(new_verb.arguments, key=lambda argument: argument.kind in ("words", "rest"))
    example = new_verb.example or f"%materia {new_verb.name}"
    VERBS[new_verb.name] = replace(new_verb, arguments=tuple(ordered_arguments), example=example)


def _argument_values(arguments: Mapping[str, Argument], call: Call) -> dict[str, Any]:
    """Return the values of the arguments that a call sets, by parameter name."""
    values = {key: call.arguments.get(argument.key) for key, argument in arguments.items()}
    return {key: value for key, value in values.items() if value is not None}


def value_of(_: Call, value: Any) -> Any:
    """Return ``value`` unchanged, so that a verb displays the return value of its method."""
    return value


def status_after(call: Call, _: object) -> Any:
    """Return the current cast's status view, to be shown after a verb has changed the cast."""
    return status_view(call.cast.now)


def step_after(call: Call, result: object) -> Any:
    """Return a view of the latest step, or of the latest step in a lane if ``result`` is a step in this lane."""
    return step_view(call.cast.now, lane=result.lane if isinstance(result, StepRecord) else "")


_OWNERS: Final[Mapping[str, Callable[[Call], Any]]] = {
    "DryBench": lambda call: call.bench,
    "Workbench": lambda call: call.bench,
    "Loadouts": lambda call: call.bench.loadouts,
    "Casts": lambda call: call.bench.casts,
    "Cast": lambda call: call.cast,
    "Edits": lambda call: call.cast.edit,
    "Approvals": lambda call: call.cast.approvals,
    "QuestBoard": lambda call: call.bench.quests,
}  # Functions that return the object on which a verb calls its method, by the name of the object's class.

_NAME_KINDS: Final[Mapping[str, _NameKind]] = {
    "loadout": "loadout",
    "socket": "socket",
    "materia": "materia",
    "reference": "cast",
    "cast": "cast",
    "panel": "panel",
}  # The kind of names that tab completion offers for a parameter, by parameter name.


def method_verb(
    name: str,
    method: Callable[..., Any],
    show: Callable[[Call, Any], Any],
    /,
    *,
    only: str = "",
    cell: Literal["never", "may", "must"] = "never",
    is_long: bool = False,
    example: str = "",
    **overrides: Mapping[str, Any],
) -> None:
    """Register a method as a verb. Its signature defines the arguments of the verb, and its docstring is the help.

    A keyword-only parameter becomes an option, or a flag if it is a bool. The last positional parameter takes the rest
    of the line and the body of the cell, unless it is a number.

    Args:
        name: the name of the verb.
        method: a method of one of the classes in ``_OWNERS``.
        show: a function of the call and the method's return value; it returns the value to display.
        only: the parameters that a line can set, separated by spaces; defaults to all parameters.
        cell: ``never`` if the verb rejects the body of a cell, ``may`` if it accepts the body, ``must`` if it requires it.
        is_long: True if the verb may take a long time and needs a progress bar.
        example: the example in the help text.
        overrides: fields of the :class:`Argument` to override, by parameter name.
    """
    parameters = inspect.signature(method).parameters
    keys = only.split() or [key for key in parameters if key != "self"]
    summary, texts = _parse_docstring(method)
    last = next((key for key in reversed(keys) if parameters[key].kind is not inspect.Parameter.KEYWORD_ONLY), "")
    rest: dict[str, dict[str, Any]] = {}
    if last and not _is_integer(parameters[last]):
        rest[last] = {"kind": "rest"} if cell == "never" else {"kind": "rest", "required": False}
    arguments = {
        key: _make_argument(parameters[key], texts, {**rest.get(key, {}), **overrides.get(key, {})}) for key in keys
    }
    owner = _OWNERS[method.__qualname__.partition(".")[0]]

    def handler(call: Call) -> Any:
        values = _argument_values(arguments, call)
        if call.body is not None:
            values[last] = call.request(values.get(last, ""))
        if cell != "never" and not values.get(last) and parameters[last].default is inspect.Parameter.empty:
            missing_name = arguments[last].name
            raise usage_error(f"The {missing_name} is missing.", f"write the {missing_name} after {name}, or in a cell")
        positional: list[Any] = []
        for key in [key for key, argument in arguments.items() if argument.is_positional and key in values]:
            value = values.pop(key)
            positional += value if arguments[key].kind == "words" else [value]
        with run_progress(call.cast) if is_long else nullcontext():
            result = getattr(owner(call), method.__name__)(*positional, **values)
        return show(call, result)

    _add_verb(Verb(name, summary, handler, tuple(arguments.values()), cell, example))


def _is_integer(parameter: inspect.Parameter) -> bool:
    return str(parameter.annotation).startswith("int")


def _make_argument(parameter: inspect.Parameter, texts: Mapping[str, str], overrides: Mapping[str, Any]) -> Argument:
    """Return the argument for a parameter. Help that the docstring does not contain is taken from ``words.toml``."""
    key, kind = parameter.name, str(parameter.annotation)
    name = key.rstrip("_")  # A parameter is named from_, because from is a keyword.
    argument = Argument(
        name,
        texts.get(key) or _HELP_TEXTS["arguments"].get(key, ""),
        "rest" if kind == "Rest" else "words" if kind == "WordList" else "word",
        parameter.default is inspect.Parameter.empty,
        _is_integer(parameter),
        _NAME_KINDS.get(name),
    )
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
        option: Literal["flag", "option"] = "flag" if kind == "bool" else "option"
        argument = replace(argument, name=f"--{name.replace('_', '-')}", kind=option, required=False)
    elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        argument = replace(argument, kind="words", required=False)
    return replace(argument, **overrides)


_MARKUP: Final = re.compile(r"``| \(R\d+\)")
_PARAMETER_ENTRY: Final = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def _parse_docstring(method: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the summary and the help of each parameter from a docstring, without double backticks or rule numbers."""
    doc = _MARKUP.sub("", inspect.getdoc(method) or "")
    _, _, args_section = doc.partition("\nArgs:\n")
    entries = _PARAMETER_ENTRY.findall(args_section.partition("\n\n")[0])
    return " ".join(doc.partition("\n\n")[0].split()), {
        name: " ".join(text.split()).removesuffix(".") for name, text in entries
    }


def groups(verbs: Mapping[str, Verb] = VERBS) -> dict[str, list[str]]:
    """Return the first words of the verbs in each group of the help, by the title of the group."""
    known = {name.partition(" ")[0] for name in verbs}
    words = {title: [word for word in line.split() if word in known] for title, line in _HELP_TEXTS["groups"].items()}
    return {title: group for title, group in words.items() if group}


def first_words(verbs: Mapping[str, Verb] = VERBS) -> list[str]:
    """Return the first words of all verbs, in the order of the help."""
    return [word for group in groups(verbs).values() for word in group]


def subverbs(word: str, verbs: Mapping[str, Verb] = VERBS) -> list[str]:
    """Return the words that can follow the first word of a verb, such as ``items`` after ``edit``."""
    return [name.partition(" ")[2] for name in verbs if name.startswith(f"{word} ")]


def find_verb(name: str, verbs: Mapping[str, Verb] = VERBS) -> Verb:
    """Return the verb with this name; raise MateriaError (``usage``) with a suggestion if no verb has this name."""
    if name in verbs:
        return verbs[name]
    if second_words := subverbs(name, verbs):
        raise usage_error(f"The verb {name} needs a second word.", f"write {name} {join_with_or(second_words)}")
    hint = _WRONG_VERB_HINTS.get(name.lower()) or did_you_mean(name, first_words(verbs))
    raise usage_error(f"%materia has no verb {name!r}.", f"{hint} (`%materia help` lists all verbs)")


def help_text(name: str | None = None, verbs: Mapping[str, Verb] = VERBS) -> str:
    """Return the help of one verb or of all verbs with the first word ``name``; without ``name``, list all verbs."""
    if name is not None:
        verbs_to_explain = [verbs[name]] if name in verbs else []
        verbs_to_explain += [verbs[f"{name} {second_word}"] for second_word in subverbs(name, verbs)]
        return "\n\n".join(map(_verb_help, verbs_to_explain or [find_verb(name, verbs)]))
    width = max(map(len, first_words(verbs)))
    lines = ["Materia NB: load a loadout, cast it, and inspect every handoff."]
    for title, group in groups(verbs).items():
        lines += ["", f"{title}:", *(f"  {word:<{width}}  {summary_of(word, verbs)}" for word in group)]
    variables = " In a line, $name is replaced with the value of a variable." if verbs is VERBS else ""
    return "\n".join([*lines, "", f"%materia help VERB explains a verb.{variables}"])


def summary_of(word: str, verbs: Mapping[str, Verb] = VERBS) -> str:
    """Return the summary for a first word, followed by the possible second words."""
    summary = verbs[word].summary if word in verbs else FAMILIES[word]
    second_words = subverbs(word, verbs)
    return f"{summary} ({word} {', '.join(second_words)})" if second_words else summary


def _verb_help(verb: Verb) -> str:
    """Return the summary, the usage, the arguments and an example of a verb."""
    lines = [verb.summary, "", f"  {verb.usage}"]
    if verb.cell == "may":
        lines.append(f"  %%materia {verb.name}   with the text in the cell")
    if verb.arguments:
        width = max(len(argument.name) for argument in verb.arguments)
        lines += ["", *(f"  {argument.name:<{width}}  {argument.help}" for argument in verb.arguments)]
    if verb.example:
        lines += ["", "For example:", *(f"  {line}" for line in verb.example.splitlines())]
    return "\n".join(lines)


_WORD = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\S+)""")
_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")
_SHELL_NAMES = frozenset({"In", "Out", "exit", "quit", "open", "get_ipython"})
_ESCAPE = re.compile(r"\\(.)")


def split_verb(line: str) -> tuple[str, str]:
    """Split a line into the name of its verb, which has one or two words, and the rest without a final ``;``."""
    line = line.strip()
    if line.endswith(";"):
        line = line[:-1].rstrip()
    name, _, rest = line.partition(" ")
    second, _, remainder = rest.strip().partition(" ")
    if f"{name} {second}" in VERBS:
        return f"{name} {second}", remainder.strip()
    return name, rest.strip()


def parse(verb: Verb, line: str | Sequence[str], names: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the arguments of a verb; raise MateriaError with the usage if they are invalid.

    Args:
        verb: the verb.
        line: the rest of a notebook line, in which quotes group words and ``$name`` is replaced with a variable; or the
            words of a command line, which are used unchanged. On a command line, options may also follow an argument of
            kind ``rest``.
        names: the user's variables.
    """
    matches = list(_WORD.finditer(line)) if isinstance(line, str) else []
    words = [match[1] for match in matches] if isinstance(line, str) else line
    read: Callable[[str], Any] = partial(_parse_word, names=names) if isinstance(line, str) else str
    # A request in a terminal cannot begin with an option.
    option_mark = "--" if isinstance(line, str) else "-[A-Za-z-]"
    values: dict[str, Any] = {}
    positional = [argument for argument in verb.arguments if argument.is_positional]
    index, is_after_dashes = 0, False
    while index < len(words):
        word = words[index]
        index += 1
        if word == "--" and not is_after_dashes:
            is_after_dashes = True
            if positional and positional[0].kind == "words" and positional[0].key in values:
                positional.pop(0)
        elif re.match(option_mark, word) and not is_after_dashes:
            index = _parse_option(verb, words, index, values, read)
        elif not positional:
            second_words = subverbs(verb.name)
            problem = f"{verb.name} has no {word!r}: {did_you_mean(word, second_words)}."
            raise _invalid_call(verb, problem if second_words else f"The argument {word!r} is unexpected.")
        elif positional[0].kind == "words":
            values.setdefault(positional[0].key, []).append(_convert_value(verb, positional[0], read(word)))
        elif positional[0].kind == "rest" and isinstance(line, str):
            values[positional.pop(0).key] = read(line[matches[index - 1].start(1) :].strip())
            index = len(words)
        elif positional[0].kind == "rest":
            key = positional[0].key
            values[key] = f"{values[key]} {word}" if key in values else word
        else:
            argument = positional.pop(0)
            values[argument.key] = _convert_value(verb, argument, read(word))
    missing = next((argument for argument in positional if argument.required and argument.key not in values), None)
    if missing:
        raise _invalid_call(verb, f"{missing.name.upper()} is missing: {missing.help}.")
    return values


def _parse_option(
    verb: Verb, words: Sequence[str], index: int, values: dict[str, Any], read: Callable[[str], Any]
) -> int:
    """Store the value of the option before ``index`` in ``values``, and return the index of the next word."""
    name, equals, text = words[index - 1].partition("=")
    argument = verb.options.get(name)
    if argument is None:
        advice = did_you_mean(name, verb.options) if verb.options else f"{verb.name} has no options."
        raise _invalid_call(verb, f"The option {name} does not exist: {advice}")
    if argument.kind == "flag":
        values[argument.key] = True
        return index
    if not equals:
        if index == len(words):
            raise _invalid_call(verb, f"{name} needs a value: {argument.help}.")
        text = words[index]
        index += 1
    value = _convert_value(verb, argument, read(text))
    values[argument.key] = [*values.get(argument.key, ()), value] if argument.kind == "options" else value
    return index


def _parse_word(word: str, *, names: Mapping[str, Any]) -> Any:
    variable = _VARIABLE.fullmatch(word)
    if variable:
        name = variable.group(1)
        if name not in names:
            variables = [known for known in names if not known.startswith("_") and known not in _SHELL_NAMES]
            raise MateriaError(
                f"The variable {name!r} does not exist.", hint=did_you_mean(name, variables), kind="unknown_variable"
            )
        return names[name]
    if len(word) >= 2 and word[0] == word[-1] and word[0] in "\"'" and _WORD.fullmatch(word):
        return _ESCAPE.sub(r"\1", word[1:-1])
    return word


def _convert_value(verb: Verb, argument: Argument, value: Any) -> Any:
    if argument.choices and value not in argument.choices:
        raise _invalid_call(verb, f"{argument.name} cannot be {value!r}: {did_you_mean(str(value), argument.choices)}")
    if not argument.integer or isinstance(value, int):
        return value
    try:
        return int(value)
    except (TypeError, ValueError):
        raise _invalid_call(verb, f"{argument.name} must be a whole number, not {value!r}.") from None


def _invalid_call(verb: Verb, message: str) -> MateriaError:
    return usage_error(message, f"follow the usage: {verb.usage}")
