"""Read and write config files in JSON and YAML, and find the line number of a config path.

Parse errors include the line, the column and the reason.
"""

from __future__ import annotations

import errno
import json
import math
import re
import stat
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from materia_nb.errors import MateriaError, close_match, join_with_or
from materia_nb.file_io import read_plain, replace_file
from materia_nb.jsonvalue import JSON, REMOVE_COMMENT, finite_number, json_error_advice, reject_constant

_MAX_YAML: Final = 150_000
"""Maximum length of a YAML config, in characters; the parser needs about 20 microseconds per character."""
_MAX_JSON_VALUES: Final = 2_000_000
_MAX_YAML_VALUES: Final = 200_000
"""Maximum number of values in a YAML config after aliases are expanded; 1 kB can expand to billions of values."""
_MAX_TEXT_CHARACTERS: Final = 50_000_000
"""Maximum total length of all strings and keys in a config, in characters, after aliases are expanded."""
_MAX_DEPTH: Final = 500
_MAX_REASON_CHARS: Final = 200  # Maximum length, in characters, to which error messages of the parsers are truncated.


class ParseError(Exception):
    """Raised if a config is not valid JSON or YAML.

    Attributes:
        what: the error message.
        hint: advice on how to correct the config.
        line: the line number, counting from 1; 0 if unknown.
        column: the column number, counting from 1; 0 if unknown.
    """

    def __init__(self, message: str, hint: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.what = message
        self.hint = hint
        self.line = line
        self.column = column


def _parse_json(text: str) -> JSON:
    """Parse strict JSON; raise ParseError for invalid JSON, including comments, NaN and duplicate keys."""
    repeated_keys: list[tuple[dict[str, JSON], str]] = []

    def pairs(members: list[tuple[str, JSON]]) -> dict[str, JSON]:
        document = dict(members)
        if len(document) != len(members):
            duplicate = Counter(key for key, _ in members).most_common(1)[0][0]
            repeated_keys.append((document, duplicate))
        return document

    try:
        document = json.loads(text, object_pairs_hook=pairs, parse_float=finite_number, parse_constant=reject_constant)
    except json.JSONDecodeError as error:
        message = f"the text is not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        raise ParseError(message, _json_advice(text, error), error.lineno, error.colno) from error
    except RecursionError as error:
        raise ParseError("the JSON is nested too deeply", f"use at most {_MAX_DEPTH} levels") from error
    except ValueError as error:  # a number with thousands of digits
        message = f"the JSON contains a value that cannot be stored: {error}"
        raise ParseError(message, "write a number that JSON can represent") from error
    if repeated_keys:
        owner, key = repeated_keys[0]
        path = next((_path_text(keys) for keys, value in _walk_values(document) if value is owner), "the config")
        position = _duplicate_position(text, key, is_only_duplicate=len(repeated_keys) == 1)
        hint = "remove the duplicate key, since only the last value would be used"
        raise ParseError(f"the key {key!r} occurs twice in {path}", hint, *position)
    return _bounded_json(document)


def parse_yaml(text: str) -> JSON:
    """Parse YAML 1.2, in which ``on`` and ``yes`` are strings; raise ParseError for values that are not JSON."""
    if len(text) > _MAX_YAML:
        raise ParseError(f"the YAML has more than {_MAX_YAML:,} characters", "write a config of this size as JSON")
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    reader = YAML(typ="safe", pure=True)
    reader.Constructor = _yaml_constructor()
    reader.composer.warn_double_anchors = False  # the library would print a warning for each repeated anchor
    try:
        document = reader.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        message = str(error.problem or error.context or "the text cannot be parsed").splitlines()[0][:_MAX_REASON_CHARS]
        duplicate = "duplicate key" in message
        hint = "remove the duplicate key" if duplicate else "check the indentation, colons and quotes at this position"
        position = (0, 0) if mark is None else (mark.line + 1, mark.column + 1)
        raise ParseError(f"the text is not valid YAML: {message}", hint, *position) from error
    except RecursionError as error:
        raise ParseError("the YAML is nested too deeply", f"use at most {_MAX_DEPTH} levels") from error
    except (YAMLError, ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
        # the library does not wrap errors of its constructors, such as an impossible date
        message = next(iter(str(error).splitlines()), type(error).__name__)[:_MAX_REASON_CHARS]
        hint = "write values with special characters in quotes"
        raise ParseError(f"the text is not valid YAML: {message}", hint) from error
    _bounded_json(document, _MAX_YAML_VALUES)
    # a document without escapes has no surrogates
    return _with_joined_surrogates(document) if re.search(r"\\u", text, re.IGNORECASE) else document


@cache
def _yaml_constructor() -> type:
    """Return a YAML constructor class that refuses merge keys (``<<``).

    YAML 1.2 has no merge keys, and each line with a merge key could double the size of the data.
    """
    from ruamel.yaml.constructor import ConstructorError, SafeConstructor

    class Constructor(SafeConstructor):
        def flatten_mapping(self, node: Any) -> None:
            for key, _ in node.value:
                if key.tag == "tag:yaml.org,2002:merge":
                    problem = "YAML 1.2 has no merge keys (<<): write each field instead"
                    raise ConstructorError(problem=problem, problem_mark=key.start_mark)

    return Constructor


def _bounded_json(document: JSON, max_values: int = _MAX_JSON_VALUES) -> JSON:
    """Return the document if it is JSON of a reasonable size.

    Each use of a YAML alias counts as another copy of its value, because nested aliases can repeat a value many times.

    Raises:
        ParseError: the document is too large or nested too deeply, or contains a value that is not JSON.
    """
    characters = 0
    for count, (keys, value) in enumerate(_walk_values(document)):
        if len(keys) > _MAX_DEPTH:
            raise ParseError("the config is nested too deeply", f"use at most {_MAX_DEPTH} levels")
        if isinstance(value, dict):
            wrong_keys = [key for key in value if not isinstance(key, str)]
            if wrong_keys:
                key = repr(wrong_keys[0])[:_MAX_REASON_CHARS]
                raise ParseError(f"the key {key} in {_path_text(keys)} is not a string", "write the key in quotes")
            characters += sum(map(len, value))
        elif isinstance(value, str):
            characters += len(value)
        elif isinstance(value, float) and not math.isfinite(value):
            raise ParseError(f"{_path_text(keys)} is {value}, which is not a JSON value", "write a finite number")
        elif value is not None and not isinstance(value, list | bool | int | float):
            message = f"{_path_text(keys)} is a {type(value).__name__}, which is not a JSON value"
            raise ParseError(message, f"write the value as a string, in quotes: {str(value)[:_MAX_REASON_CHARS]!r}")
        if count >= max_values or characters > _MAX_TEXT_CHARACTERS:
            size_limit = f"{max_values:,} values" if count >= max_values else f"{_MAX_TEXT_CHARACTERS:,} characters"
            hint = "remove aliases (*name), since each alias counts as a copy"
            raise ParseError(f"the config has more than {size_limit}", hint)
    return document


def _walk_values(document: JSON) -> Iterator[tuple[list[Any], JSON]]:
    """Yield the path of each value in a document, as a list of keys, and the value.

    The list of keys is reused and modified for the next value.
    """
    keys: list[Any] = []
    levels: list[Iterator[tuple[Any, JSON]]] = []
    value = document
    while True:
        yield keys, value
        if isinstance(value, dict | list):
            levels.append(iter(value.items() if isinstance(value, dict) else enumerate(value)))
            keys.append(None)
        while levels:
            entry = next(levels[-1], None)
            if entry is not None:
                keys[-1], value = entry
                break
            levels.pop()
            keys.pop()
        else:
            return


def _path_text(keys: list[Any]) -> str:
    """Return the path of a value for an error message, such as ``loadouts.T.sockets[0]``."""
    steps = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return "".join(steps).removeprefix(".") or "the config"


_JSON_START: Final = re.compile(r"\s*(?://|/\*|\{\s*(?:[\"}/]|\Z))")
_COMMENT: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|//[^\n\r]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING_COMMA: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|,(?=\s*[}\]])', re.DOTALL)


def _blank_comments(text: str) -> str:
    """Replace comments and trailing commas in JSON with spaces, so that line and column numbers do not change."""
    text = _COMMENT.sub(lambda match: _blank_out(match[0], "/"), text)
    return _TRAILING_COMMA.sub(lambda match: _blank_out(match[0], ","), text)


def _blank_out(text_part: str, first_char: str) -> str:
    return re.sub(r"[^\n\r]", " ", text_part) if text_part.startswith(first_char) else text_part


def _with_joined_surrogates(value: JSON) -> JSON:
    """Return a copy of a value in which surrogate pairs are combined into single characters, as a JSON parser does."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    if isinstance(value, dict):
        return {_with_joined_surrogates(key): _with_joined_surrogates(entry) for key, entry in value.items()}
    return [_with_joined_surrogates(entry) for entry in value] if isinstance(value, list) else value


def _json_advice(text: str, error: json.JSONDecodeError) -> str:
    if not text.strip():
        return "write a config, such as { ... }, since the text is empty"
    advice = json_error_advice(text, error) or "check the text at this position and just before it"
    return "remove the comments, or rename the file to .jsonc" if advice == REMOVE_COMMENT else advice


def _duplicate_position(text: str, key: str, *, is_only_duplicate: bool) -> tuple[int, int]:
    """Return the line and column of the second occurrence of a key, or zeros if the position is ambiguous."""
    key_pattern = re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:"
    positions = [match.start() for match in re.finditer(key_pattern, text)]
    if not is_only_duplicate or len(positions) != 2:
        return 0, 0
    start = positions[1]
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


_LIST_INDEX: Final = re.compile(r"\[(\d+)\]")


def line_of(text: str, source: str, loadout: str | None = None) -> tuple[int, int]:
    """Return the line number of a config path, counting from 1, and the length of the part that does not exist.

    Args:
        text: the config, in valid YAML or in JSON with or without comments.
        source: the path, such as ``Socket-1.edges[0].to``.
        loadout: the name of the loadout to which the path is relative; None if it is relative to the config.
    """
    if len(text) > _MAX_YAML:
        return 1, len(source)
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    as_json = text.lstrip().startswith(("{", "/"))
    try:  # JSON is YAML, except for comments and tabs
        root = YAML(pure=True).compose(_blank_comments(text).replace("\t", " ") if as_json else text)
    except YAMLError:
        return 1, len(source)
    prefixes = [] if loadout is None else [f"loadouts.{loadout}.sockets.", f"loadouts.{loadout}."]
    matches = [_follow_path(root, where + source) for where in (*prefixes, "")]
    unmatched_length, line = min((min(unmatched_length, len(source)), -line) for line, unmatched_length in matches)
    return -line, unmatched_length


def _follow_path(node: Any, path: str) -> tuple[int, int]:
    """Follow a path from a YAML node as far as it exists.

    Return the line number of the last node, and the length of the part of the path that does not exist.
    """
    line = 1
    while node is not None and path:
        if node.id == "sequence":
            index = _LIST_INDEX.match(path)
            if index is None or int(index[1]) >= len(node.value):
                break
            node, path = node.value[int(index[1])], path[index.end() :]
            line = node.start_mark.line + 1
        else:
            key, node, path = _longest_name(node, path)
            if key is None:
                break
            line = key.start_mark.line + 1
        path = path.removeprefix(".")
    return line, len(path)


def _longest_name(node: Any, path: str) -> tuple[Any, Any, str]:
    """Return the key and value of the member whose name is the longest prefix of a path, and the remaining path.

    Names may contain dots, so the longest prefix is used. The key and value are None if no name is a prefix.
    """
    members = node.value if node.id == "mapping" else ()
    candidates = [(key, value) for key, value in members if re.match(re.escape(key.value) + r"(?:[.\[]|$)", path)]
    if not candidates:
        return None, None, path
    key, value = max(candidates, key=lambda member: len(member[0].value))
    return key, value, path[len(key.value) :]


_Format: TypeAlias = Literal["json", "jsonc", "yaml"]

EXTENSIONS: Final[dict[str, _Format]] = {".json": "json", ".jsonc": "jsonc", ".yaml": "yaml", ".yml": "yaml"}
_MAX_CONFIG_BYTES: Final = 50_000_000
_CONFIG_KIND: Final = "config"


def is_config_file(path: str | Path) -> bool:
    """Return True if the name of a file ends with an extension of config files."""
    return Path(path).suffix.lower() in EXTENSIONS


def config_error(message: str, where: str | Path | None, hint: str) -> MateriaError:
    """Return an error for a config that cannot be read, written or used."""
    return MateriaError(message, where=None if where is None else str(where), hint=hint, kind=_CONFIG_KIND)


def read_config(path: str | Path) -> JSON:
    """Read and parse a config file.

    The file extension selects the format: .json for strict JSON, .jsonc for JSON with comments, and .yaml or .yml for
    YAML.

    Raises:
        MateriaError: the file does not exist, cannot be read, is too large, or is not valid in its format. ``where``
            contains the path and, if known, the line and the column.
    """
    path = expand_path(path)
    text = config_text(path)
    format_ = EXTENSIONS.get(path.suffix.lower())
    if format_ is None:
        message = "the name of the config file has an unknown extension"
        raise config_error(message, path, f"rename the file so that it ends with {join_with_or(EXTENSIONS)}")
    return read_text(text, format_, where=str(path))


def config_text(path: str | Path) -> str:
    """Return the text of a config file; raise the same errors as :func:`read_config`."""
    path = expand_path(path)
    _check_regular_file(path)
    try:
        data = read_plain(path, _MAX_CONFIG_BYTES, follow=True)
    except OSError as error:
        if error.errno == errno.EFBIG:
            message = f"the file has more than {_MAX_CONFIG_BYTES:,} bytes"
            raise config_error(message, path, "check the path, since a config is much smaller") from error
        raise _os_error("read", path, error) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"the file is not valid UTF-8: it contains the byte {data[error.start]:#04x}"
        raise config_error(message, f"{path}:{line}", "save the file as UTF-8") from error


def read_text(text: str, format_: _Format | None = None, *, where: str = "the text") -> JSON:
    """Parse the text of a config, such as the content of a notebook cell.

    Args:
        text: the config.
        format_: the format. None selects JSON with comments if the text starts like JSON, and YAML otherwise. A brace
            that is followed by an unquoted key counts as YAML.
        where: the name of the text in errors.

    Raises:
        MateriaError: the text is not valid in this format. ``where`` contains the line and the column.
    """
    text = text.removeprefix("\ufeff")
    if format_ is None:
        format_ = "jsonc" if _JSON_START.match(text) else "yaml"
    parse = {"json": _parse_json, "jsonc": lambda text: _parse_json(_blank_comments(text)), "yaml": parse_yaml}[format_]
    try:
        return parse(text)
    except ParseError as error:
        location = f"{where}:{error.line}:{error.column}" if error.line else where
        raise config_error(error.what, location, error.hint) from error


def write_config(path: str | Path, document: JSON) -> None:
    """Write a config to a JSON file atomically, so that an interruption does not damage an existing file (R28).

    Raises:
        MateriaError: the extension is not .json or .jsonc, the document is not JSON, or the file cannot be written.
    """
    path = expand_path(path)
    if EXTENSIONS.get(path.suffix.lower()) not in ("json", "jsonc"):
        name = path.with_suffix(".json").name
        hint = f"choose a name that ends with .json, such as {name}"
        raise config_error("a config can only be saved as JSON", path, hint)
    try:
        text = dumps(document, indent=2) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        message = f"the config contains a value that is not JSON: {error}"
        raise config_error(message, path, "remove the value") from error
    write_text(path, text)


def write_text(path: Path, text: str) -> None:
    """Write text to a config file atomically. The directory is created if its parent exists.

    Raises:
        MateriaError: the file cannot be written. An existing file is unchanged.
    """
    try:
        path.parent.mkdir(exist_ok=True)
        replace_file(path.resolve(), text.encode(), sync=True)
    except OSError as error:
        raise _os_error("written", path, error) from error


def expand_path(path: str | Path) -> Path:
    """Return the path with ``~`` expanded; raise MateriaError if the home directory is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise config_error(str(error), path, "use the full path") from error


def resolve_path(path: str | Path) -> Path:
    """Return the absolute path with ``~`` and symbolic links resolved; raise MateriaError if the path is invalid."""
    try:
        return expand_path(path).resolve()
    # a cycle of links, a NUL in the name, or a number
    except (OSError, ValueError, RuntimeError, TypeError) as error:
        name = repr(str(path))[:200]
        raise config_error(f"the path is not valid: {error}", name, "choose a file or a directory") from error


def path_exists(path: Path) -> bool:
    """Return True if the path exists, and False if it does not exist or is invalid."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def dumps(document: JSON, *, indent: int | str | None = None) -> str:
    """Serialize a value as JSON that UTF-8 can encode; characters are escaped only if necessary.

    Raises:
        ValueError: the value is not JSON.
    """
    text = json.dumps(document, ensure_ascii=False, indent=indent, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # UTF-8 cannot encode half of a surrogate pair, but JSON can escape it
        return json.dumps(document, indent=indent, allow_nan=False)
    return text


def _check_regular_file(path: Path) -> None:
    """Raise MateriaError if a path is not a regular file, because opening a pipe, for example, would block."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise _os_error("read", path, error) from error
    except ValueError as error:  # a NUL in the name
        raise config_error("the path is not a valid file name", repr(str(path)), "choose a config file") from error
    if stat.S_ISDIR(mode):
        raise config_error("the path is a directory", path, _suggest_file(path / "config.json"))
    if not stat.S_ISREG(mode):
        raise config_error("the path is not a plain file", path, "choose a config file")


def _os_error(verb: str, path: Path, error: OSError) -> MateriaError:
    if isinstance(error, FileNotFoundError):
        return config_error("the file does not exist", path, _suggest_file(path))
    reason = error.strerror or type(error).__name__
    return config_error(f"the file cannot be {verb}: {reason}", path, "check the path")


def _suggest_file(path: Path) -> str:
    """Return advice that suggests config files in the directory of ``path``."""
    folder = path.parent
    try:
        names = sorted(file.name for file in folder.iterdir() if is_config_file(file) and file.exists())
    except OSError:
        return f"check the path: {str(folder)!r} is not a readable directory, and the current directory is {str(Path.cwd())!r}"
    match = close_match(path.name, names)
    if match:
        return f"did you mean {match!r}?"
    if names:
        return f"choose a config file: {', '.join(names[:10])}"
    return "check the path: the directory has no config files"
