"""Reading and writing config files, whatever their format."""

from __future__ import annotations

import errno
import json
import stat
from pathlib import Path
from typing import Final, Literal, TypeAlias

from materia_nb.errors import MateriaError, close_match
from materia_nb.file_io import read_plain, replace_file
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.formats import ParseError, parse_json, parse_jsonc, parse_yaml

Format: TypeAlias = Literal["json", "jsonc", "yaml"]

ENDINGS: Final[dict[str, Format]] = {
    ".json": "json",
    ".jsonc": "jsonc",
    ".json5": "jsonc",
    ".yaml": "yaml",
    ".yml": "yaml",
}
MOST_CONFIG_BYTES: Final = 50_000_000
CONFIG_KIND: Final = "config"


def config_error(what: str, where: str | Path | None, hint: str) -> MateriaError:
    """Make the error of a config that cannot be read, written or used."""
    return MateriaError(what, where=None if where is None else str(where), hint=hint, kind=CONFIG_KIND)


def read_config(path: str | Path) -> JSON:
    """Read a config file by its ending: .json strictly, .jsonc and .json5 with comments, .yaml and .yml.

    Raises:
        MateriaError: the file is missing, no file, too large, not UTF-8 or not of its format; ``where`` holds
            the path, with line and column where they are known.
    """
    path = expanded(path)
    _check_plain(path)
    format_ = ENDINGS.get(path.suffix.lower())
    if format_ is None:
        what = f"a config file ends with one of {', '.join(ENDINGS)}, and this one does not"
        raise config_error(what, path, "rename the file")
    return read_text(_text_of(path), format_, where=str(path))


def text_of(path: str | Path) -> str:
    """Return the text of a config file, unread; raises MateriaError as :func:`read_config` does."""
    path = expanded(path)
    _check_plain(path)
    return _text_of(path)


def read_text(text: str, format_: Format | None = None, *, where: str = "the text") -> JSON:
    """Read a config from text, such as a notebook cell.

    Args:
        text: the config.
        format_: its format; None guesses: JSON (comments allowed) if it starts with a brace or a comment
            of JSON, else YAML.
        where: what to call the text in an error.

    Raises:
        MateriaError: the text is not of its format; the message has the line and the column.
    """
    text = text.removeprefix("\ufeff")
    if format_ is None:
        format_ = "jsonc" if text.lstrip().startswith(("{", "//", "/*")) else "yaml"
    parse = {"json": parse_json, "jsonc": parse_jsonc, "yaml": parse_yaml}[format_]
    try:
        return parse(text)
    except ParseError as error:
        spot = f"{where}:{error.line}:{error.column}" if error.line else where
        raise config_error(error.what, spot, error.hint) from error


def write_config(path: str | Path, document: JSON) -> None:
    """Write a config as JSON, whole or not at all: an interrupted write leaves the old file (R28).

    Raises:
        MateriaError: the ending is none of JSON, the document is not JSON, or the file cannot be written.
    """
    path = expanded(path)
    if ENDINGS.get(path.suffix.lower()) not in ("json", "jsonc"):
        raise config_error(
            "configs are written as JSON",
            path,
            f"choose a name that ends with .json, such as {path.with_suffix('.json').name}",
        )
    try:
        text = dumps(document, indent=2) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise config_error(
            f"the config holds something that is not JSON: {error}", path, "remove it"
        ) from error
    write_text(path, text)


def write_text(path: Path, text: str) -> None:
    """Write the text of a config file, whole or not at all; its directory is made if only that is missing.

    Raises:
        MateriaError: the file cannot be written; the old one is as it was.
    """
    try:
        path.parent.mkdir(exist_ok=True)
        replace_file(path.resolve(), text.encode(), sync=True)
    except OSError as error:
        raise _os_error("written", path, error) from error


def expanded(path: str | Path) -> Path:
    """Return the path with ``~`` filled in; raises MateriaError when there is no such home."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise config_error(str(error), path, "write the path in full") from error


def resolved(path: str | Path) -> Path:
    """Return the path in full, with ``~`` filled in and links followed; raises MateriaError for what is none."""
    try:
        return expanded(path).resolve()
    except (
        OSError,
        ValueError,
        RuntimeError,
        TypeError,
    ) as error:  # links in a circle; a NUL in the name; a number
        raise config_error(
            f"this is no path: {error}", repr(str(path))[:200], "name a file or a directory"
        ) from error


def is_there(path: Path) -> bool:
    """Whether something of that name is there; a name that nothing can have is not."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def dumps(document: JSON, *, indent: int | str | None = None) -> str:
    """Write JSON that UTF-8 can hold, readable where it can be; raises ValueError for what is not JSON."""
    text = json.dumps(document, ensure_ascii=False, indent=indent, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # half of a surrogate pair has no UTF-8; JSON can still escape it
        return json.dumps(document, indent=indent, allow_nan=False)
    return text


def _check_plain(path: Path) -> None:
    """Refuse what is no plain file before it is opened: opening a pipe would wait for its other end."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise _os_error("read", path, error) from error
    except ValueError as error:  # a NUL in the name
        raise config_error("this is no file name", repr(str(path)), "name a config file") from error
    if stat.S_ISDIR(mode):
        raise config_error("this is a directory", path, _near_file(path / "config.json"))
    if not stat.S_ISREG(mode):
        raise config_error("this is not a plain file", path, "name a config file")


def _text_of(path: Path) -> str:
    try:
        data = read_plain(path, MOST_CONFIG_BYTES, follow=True)
    except OSError as error:
        if error.errno == errno.EFBIG:
            what = f"the file has more than {MOST_CONFIG_BYTES:,} bytes"
            raise config_error(what, path, "a config is much smaller: is it the right file?") from error
        raise _os_error("read", path, error) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise config_error(
            f"the file is not UTF-8: byte {data[error.start]:#04x}", f"{path}:{line}", "save it as UTF-8"
        ) from error


def _os_error(done: str, path: Path, error: OSError) -> MateriaError:
    if isinstance(error, FileNotFoundError):
        return config_error("there is no such file", path, _near_file(path))
    reason = error.strerror or type(error).__name__
    return config_error(f"the file cannot be {done}: {reason}", path, "check the path")


def _near_file(path: Path) -> str:
    """Say which config file nearby was probably meant."""
    folder = path.parent
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.suffix.lower() in ENDINGS)
    except OSError:
        return f"there is no directory {str(folder)!r} to read: start from {str(Path.cwd())!r}"
    match = close_match(path.name, names)
    if match:
        return f"did you mean {match!r}?"
    return f"config files there: {', '.join(names[:10])}" if names else "there are no config files there"
