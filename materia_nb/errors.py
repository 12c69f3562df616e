"""Errors of the package, suggestions for misspelled names, and redaction of text that leaves the package.

Text leaves the package in errors, tracebacks, displayed names and logs. In such text, API keys are redacted, and
characters that a terminal or browser interprets are escaped.
"""

from __future__ import annotations

import difflib
import html
import json
import logging
import os
import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from traceback import format_exception
from typing import Any, Final
from unicodedata import normalize
from urllib.parse import quote, quote_plus

_MAX_COMPARED_CHARS: Final = 200  # the time to compare two names grows with the square of their length
_MAX_SHORT_WORD: Final = 6  # Maximum length of words that can be similar by chance, such as pause and use.

_NUMBER: Final = re.compile(r"\d+")
_WORD: Final = re.compile(r"[a-z0-9]+")


class MateriaError(Exception):
    """An error that the user can fix. Its text states what happened, where, and how to fix it.

    Args:
        message: a sentence that describes the problem; the attribute ``what`` contains it together with ``more``.
        where: the affected path in a config, in an output or on disk.
        hint: instructions for fixing the problem.
        kind: the name by which programs can identify the error, such as ``utility_timeout``; it does not change. The
            default depends on the class.
        more: further details, one line each, listed below the message.

    In ``str(error)``, API keys are redacted, and characters that a terminal interprets are escaped. Each part of the
    text stays on its own line, so a name from a loadout cannot add a line.
    """

    default_kind = "error"

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        kind: str | None = None,
        more: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self._lines = (message, *more)
        self.what = "\n".join(self._lines)
        self.where, self.hint, self.kind = where, hint, kind or self.default_kind

    def __str__(self) -> str:
        parts = [*self._lines]
        if self.where:
            parts.append(f"  at: {self.where}")
        if self.hint:
            first, *listed = self.hint.split("\n")
            parts += [f"  try: {first}", *(f"    {line.strip()}" for line in listed)]
        return "\n".join(map(outgoing_line, parts))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython displays instead of a traceback."""
        return f"{type(self).__name__}: {self}".splitlines()


def named_error(error: BaseException, max_chars: int | None = None) -> str:
    """Return the type and the message of an error, with the message truncated to ``max_chars`` characters."""
    try:
        message = str(error)[:max_chars]
    except Exception:  # noqa: BLE001 - str() of a foreign error may raise
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, as in ``1 time`` or ``3 times``; the default plural is the noun with an s."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def close_match(name: str, known: Iterable[str]) -> str | None:
    """Return the most similar known name, or None if no known name is similar enough.

    Names with different numbers are similar only if a digit is missing or added: Socket-77 is not a misspelled
    Socket-5.
    """
    names, name = list(known), name[:_MAX_COMPARED_CHARS]
    for candidate in difflib.get_close_matches(name, names, n=3, cutoff=0.6):
        a, b = name.casefold(), candidate.casefold()
        has_same_numbers = _NUMBER.findall(a) == _NUMBER.findall(b)
        is_long = min(len(a), len(b)) > _MAX_SHORT_WORD or (max(len(a), len(b)) > _MAX_SHORT_WORD and a[0] == b[0])
        if (has_typo(a, b) and (has_same_numbers or len(a) != len(b))) or (is_long and has_same_numbers):
            return candidate
    names_by_folded = {candidate.casefold(): candidate for candidate in names}
    # a name that contains a known one, such as file_path for path
    contained_names = {names_by_folded[word] for word in _WORD.findall(name.casefold()) if word in names_by_folded}
    return names_by_folded.get(name.casefold()) or (contained_names.pop() if len(contained_names) == 1 else None)


def has_typo(name: str, known: str) -> bool:
    """Return True if the names differ in at most one letter, or only in the order of two adjacent letters."""
    start = common_prefix_length(name, known)
    name, known = name[start:], known[start:]
    end = common_prefix_length(name[::-1], known[::-1])
    name, known = name[: len(name) - end], known[: len(known) - end]
    return max(len(name), len(known)) <= 1 or (len(name) == 2 and name == known[::-1])


def common_prefix_length(a: Sequence[object], b: Sequence[object]) -> int:
    """Return the number of equal elements at the beginning of two sequences."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((index for index, (left, right) in pairs if left != right), min(len(a), len(b)))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown name: the most similar known name, or else up to ten known names."""
    names = sorted(set(known))
    match = close_match(name, names)
    if match:
        difference = f" The two names differ: {name!a} and {match!a}" if _are_lookalikes(name, match) else ""
        return f"did you mean {match!r}?{difference}"
    if not names:
        return "there is nothing to choose from"
    return f"choose one of: {', '.join(map(outgoing_line, names[:10]))}" + (", ..." if len(names) > 10 else "")


def _are_lookalikes(name: str, other: str) -> bool:
    """Return True if two strings differ only in non-ASCII characters, such as a composed and a decomposed umlaut."""
    if normalize("NFC", name) == normalize("NFC", other):
        return name != other
    differences = [a + b for a, b in zip(name, other, strict=False) if a != b]
    return len(name) == len(other) and bool(differences) and not any(pair.isascii() for pair in differences)


def join_with_or(names: Iterable[str]) -> str:
    """Join names for use in a sentence, as in ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def usage_error(message: str, hint: str | None = None) -> MateriaError:
    """Return the error for invalid arguments (``usage``)."""
    return MateriaError(message, hint=hint, kind="usage")


def needs_one_of(name: str, known: Collection[str], message: str, kind: str) -> None:
    """Raise MateriaError with a suggestion if ``name`` is not one of the known names."""
    if name not in known:
        raise MateriaError(message, hint=did_you_mean(name, known), kind=kind)


_SECRET_NAME: Final = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_PROVIDER_KEY_NAME: Final = re.compile(r".*_API_KEY|AWS_SECRET_ACCESS_KEY|AWS_BEARER_TOKEN_BEDROCK|HF_TOKEN")
_MIN_KEY_CHARS: Final = 6  # a shorter value is not a key, and would be removed from ordinary words
_MIN_MIXED_KEY_CHARS, _MIN_LETTER_KEY_CHARS = 12, 16
"""Minimum length of a key with digits or symbols, and of a key with letters only."""
_ONE_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_LONGEST_WORD: Final = 24
_HEX_ESCAPE: Final = re.compile(r"(\\u)([0-9a-f]{4})")
_URL_ESCAPE: Final = re.compile(r"%[0-9A-F]{2}")
_MIN_PIECE_CHARS: Final = 8  # a shorter piece of a key that was cut in two is not removed
_REPLACEMENT: Final = "***"

_key_variables: set[str] = set()
_cached_keys: tuple[object, set[str], Sequence[str]] | None = None


def register_key_variable(name: str) -> None:
    """Treat the value of an environment variable as an API key, even if the value does not look like a key."""
    _key_variables.add(name)


def redact(text: str, *more: str) -> str:
    """Return the text with API keys and the strings in ``more`` replaced by a placeholder.

    API keys are the values of environment variables that were passed to :func:`register_key_variable` or that model
    providers read. The value of any other variable whose name contains key, token, secret, password or credential is
    treated as a key only if it also looks like a key, since a value such as ``postgres`` is an ordinary word.
    """
    for key in _keys(more) if more else _known_keys():
        text = text.replace(key, _REPLACEMENT)
    return text


def redact_excerpt(text: str, *more: str, start: bool = False, end: bool = False) -> str:
    """Return an excerpt of a longer text with API keys redacted, even if the excerpt starts or ends inside a key.

    Args:
        text: the excerpt.
        more: further strings to redact.
        start: True if the longer text continues before the excerpt.
        end: True if the longer text continues after the excerpt.
    """
    keys = _keys(more)
    text = redact(text, *more)
    pieces = [key[:size] for key in keys for size in range(_MIN_PIECE_CHARS, len(key))] if end else []
    if piece := max(filter(text.endswith, pieces), key=len, default=""):
        text = text.removesuffix(piece) + _REPLACEMENT
    pieces = [key[-size:] for key in keys for size in range(_MIN_PIECE_CHARS, len(key))] if start else []
    if piece := max(filter(text.startswith, pieces), key=len, default=""):
        text = _REPLACEMENT + text.removeprefix(piece)
    return text


def secret_arguments(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command-line arguments that an option marks as secret: ``--api-key VALUE`` or ``--api-key=VALUE``."""
    secrets = []
    for option, value in zip(argv, [*argv[1:], ""], strict=True):
        name, equals, joined_value = option.partition("=")
        if name.startswith("-") and _SECRET_NAME.search(name):
            secrets.append(joined_value if equals else value)
    return tuple(secrets)


def redact_bytes(data: bytes, *more: str, end: bool = False) -> bytes:
    """Return the output of a process with API keys redacted; bytes that are not text are unchanged."""
    text = data.decode(errors="surrogateescape")
    return redact_excerpt(text, *more, end=end).encode(errors="surrogateescape")


def redact_json(value: Any) -> Any:
    """Return a JSON value with API keys redacted in every string."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    redacted_text = redact(text)
    return value if redacted_text == text else json.loads(redacted_text)


def _keys(more: Sequence[str]) -> list[str]:
    """Return all strings to redact, longest first, because one key may be a prefix of another key."""
    keys = {*_known_keys(), *(text for text in more if len(text) >= _MIN_KEY_CHARS)}
    return sorted(keys, key=len, reverse=True)


def _known_keys() -> Sequence[str]:
    """Return the API keys in the environment in all their escaped forms, longest first.

    The keys are computed again only if the environment has changed, because all text from agents and processes is
    searched for keys. Comparing the data of ``os.environ`` takes about 1% of the time needed to read each variable.
    """
    global _cached_keys  # noqa: PLW0603 - one environment, one cache
    environment = os.environ._data  # type: ignore[attr-defined]  # noqa: SLF001
    if _cached_keys is None or _cached_keys[:2] != (environment, _key_variables):
        # copied first: a variable that another thread sets meanwhile is found by the next call
        cache_key = environment.copy(), _key_variables.copy()
        values = [value for name, value in os.environ.items() if _is_key(name, value)]
        forms = {form for value in values for form in _escaped_forms(value) if len(form) >= _MIN_KEY_CHARS}
        forms |= {json.dumps(form, ensure_ascii=False)[1:-1] for form in forms}  # escaped in JSON a second time
        _cached_keys = (*cache_key, sorted(forms, key=len, reverse=True))
    return _cached_keys[2]


def _escaped_forms(key: str) -> Iterator[str]:
    """Yield all forms of a key: unchanged, escaped for JSON, URLs, HTML or Python source, and split into lines."""
    yield key
    yield repr(key)[1:-1]
    for text in (json.dumps(key, ensure_ascii=False)[1:-1], json.dumps(key)[1:-1]):
        for escaped in (text, _HEX_ESCAPE.sub(lambda match: match[1] + match[2].upper(), text)):
            yield escaped
            yield escaped.replace("/", r"\/")
    for text in (
        quote(key, safe="", errors="replace"),
        quote(key, errors="replace"),
        quote_plus(key, errors="replace"),
    ):
        yield text
        yield _URL_ESCAPE.sub(lambda match: match[0].lower(), text)
    for quotes in (True, False):
        text = html.escape(key, quote=quotes)
        for escaped in (text, text.replace("&#x27;", "&#39;").replace("&quot;", "&#34;")):
            yield escaped
            yield escaped.encode("ascii", "xmlcharrefreplace").decode()
    if "\n" in key:
        yield from (
            line
            for each in key.splitlines()
            if len(line := each.strip()) >= _MIN_LETTER_KEY_CHARS and line[:5] != "-----"
        )


def _is_key(name: str, value: str) -> bool:
    if name in _key_variables or _PROVIDER_KEY_NAME.fullmatch(name):
        return True
    if not _SECRET_NAME.search(name) or (len(value) <= _LONGEST_WORD and _ONE_WORD.fullmatch(value)):
        return False
    return len(value) >= _MIN_LETTER_KEY_CHARS or (
        len(value) >= _MIN_MIXED_KEY_CHARS and not value.isalpha() and not value.isdecimal()
    )


FSI, PDI = "\u2068", "\u2069"

# Everything that XML 1.0 forbids, and everything that a terminal or a bidirectional renderer acts on.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
_MAY_BE_RTL: Final = re.compile(
    "[\u0590-\u08ff\u200f\u061c\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_ISOLATES: Final = re.compile(f"[{FSI}{PDI}]")
# Many accents on one letter cover the lines above and below it; real text has at most three or four.
_STACKED_MARKS: Final = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})"
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
_LINE_BREAK: Final = re.compile("[\n\u2028\u2029]")


def _visible(match: re.Match[str]) -> str:
    """Return a visible replacement for an unsafe character."""
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF or 0x80 <= code <= 0x9F or code >= 0xFFFE:
        return "\ufffd"
    return f"[U+{code:04X}]"


def count_open_isolates(text: str) -> int | None:
    """Return the number of unclosed bidi isolates in ``text``, or None if it closes an isolate that is not open."""
    depth = 0
    for isolate_sign in _ISOLATES.findall(text):
        depth += 1 if isolate_sign == FSI else -1
        if depth < 0:
            return None
    return depth


def plain(text: object) -> str:
    """Return ``text`` with control characters, lone surrogates and bidi controls replaced by visible characters.

    Line feeds and tabs stay, carriage returns become line feeds, and more than four accents on one letter are dropped.
    Text with right-to-left letters is enclosed in bidi isolates, so that it cannot reorder adjacent text. Closed
    isolates are preserved, so the result can be part of another text that is passed to this function.
    """
    value = text if isinstance(text, str) else str(text)
    if value.isascii() and value.isprintable():
        return value  # the fast path for most texts
    value = value.replace("\r\n", "\n").replace("\r", "\n")
    value = _STACKED_MARKS.sub(r"\1", _UNSAFE.sub(_visible, value))
    if count_open_isolates(value) != 0:
        value = _ISOLATES.sub(_visible, value)
    return f"{FSI}{value}{PDI}" if _MAY_BE_RTL.search(value) else value


# Unusual spaces, characters without width, fillers, and variation selectors that no emoji uses.
_HIDDEN: Final = re.compile(
    "[\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    "\u3000\u3164\ufe00-\ufe0d\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_LOOKALIKES: Final = frozenset("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορυχϲϳАВЕЅІЈКМНОРСТУХԌԚԜавеѕіјкмнорстухһԁԛԝӏҮүοѵԍցհոսօզɑɡıɩʋℓᴄᴏᴠᴡᴢ")
"""Letters of other scripts that look like ASCII letters."""
_WORDS: Final = re.compile(r"[^\W\d_]+")
_DASHES: Final = re.compile(r"(?<!\S)[\u2010-\u2015\u2212](?=\w)|[\u2044\u2215\u2216\u2223\u204e\u2217\ua789\u02d0]")


def deceptive_signs(text: str) -> frozenset[str]:
    """Return the characters of a string that are invisible, or that look like an ASCII character but are not ASCII."""
    if text.isascii():
        return frozenset()
    signs = {*_HIDDEN.findall(text), *_DASHES.findall(text)}
    for sign in set(text):
        lookalike = unicodedata.normalize("NFKC", sign)  # such as A for a full-width A
        if lookalike != sign and len(lookalike) == 1 and lookalike.isascii():
            signs.add(sign)
    for word in _WORDS.findall(text):
        letters = _LOOKALIKES.intersection(word)
        if letters and (letters.issuperset(word) or any(map(str.isascii, word))):
            signs |= letters
    return frozenset(signs)


def with_visible_signs(text: str) -> str:
    """Return the text with each deceptive character written as its code point, such as ``[U+200B]``."""
    return text.translate({ord(sign): f"[U+{ord(sign):04X}]" for sign in deceptive_signs(text)})


def signs_warning(text: str) -> str:
    """Return a sentence that names the deceptive characters in a string, or "" if the string has no such characters."""
    names = [f"U+{ord(sign):04X} {unicodedata.name(sign, 'without a name')}" for sign in sorted(deceptive_signs(text))]
    return (
        f"Characters shown as [U+...] are invisible or look like other characters: {', '.join(names)}." if names else ""
    )


def outgoing(text: object) -> str:
    """Return text that may leave the package, with API keys redacted and unsafe characters escaped.

    See :func:`redact` for the redaction and :func:`plain` for the escaping.
    """
    return plain(redact(str(text)))


def outgoing_line(text: object) -> str:
    """Return text that may leave the package on one line, with API keys redacted and all unsafe characters escaped."""
    return _LINE_BREAK.sub("\u240a", outgoing(text))


def outgoing_traceback(error: BaseException) -> str:
    """Return the traceback of an exception and its causes with API keys redacted and unsafe characters escaped."""
    return outgoing("".join(format_exception(error)).rstrip())


LIBRARIES: Final = frozenset(
    {
        *("anthropic", "boto3", "botocore", "cohere", "genai_prices", "google", "google_genai", "groq", "httpcore"),
        *("httpcore2", "httpx", "httpx2", "huggingface_hub", "mcp", "mistralai", "openai", "pydantic_ai", "urllib3"),
        "xai_sdk",
    }
)  # fmt: skip
"""Top-level loggers of libraries whose log records, including those of child loggers, are redacted."""

_MAX_LINE_CHARS: Final = 600
_ELLIPSIS: Final = re.compile(r"(\.{3}|…)")


def redact_library_logs() -> None:
    """Redact all later log records and warnings of :data:`LIBRARIES`; repeated calls have no effect."""
    make_record = logging.getLogRecordFactory()
    if not hasattr(make_record, "redacts"):

        def make_redacted(*args: Any, **kwargs: Any) -> logging.LogRecord:
            record = make_record(*args, **kwargs)
            if record.name.partition(".")[0] in LIBRARIES:
                _redact_record(record)
            return record

        make_redacted.redacts = True  # type: ignore[attr-defined]
        logging.setLogRecordFactory(make_redacted)
    show_warning = warnings.showwarning
    if not hasattr(show_warning, "redacts"):

        def show_redacted(
            message: Warning | str, category: type[Warning], filename: str, *args: Any, **kwargs: Any
        ) -> None:
            modules = category.__module__, filename.rpartition("site-packages/")[2].replace("/", ".")
            library = next((name for module in modules if (name := module.partition(".")[0]) in LIBRARIES), None)
            if library is None:
                show_warning(message, category, filename, *args, **kwargs)
            else:
                logging.getLogger(library).warning("%s: %s", category.__name__, message)

        show_redacted.redacts = True  # type: ignore[attr-defined]
        warnings.showwarning = show_redacted


def _redact_record(record: logging.LogRecord) -> None:
    """Replace the content of a log record with one redacted line: its message and exception, without a traceback."""
    try:
        text = record.getMessage()
    except (TypeError, ValueError, KeyError):  # the arguments do not match the message
        text = str(record.msg)
    if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
        text = f"{text}: {named_error(record.exc_info[1])}"
    record.msg, record.args = one_line_without_keys(text), ()
    record.exc_info = record.exc_text = record.stack_info = None


def one_line_without_keys(text: str) -> str:
    """Return the text on one line with API keys redacted, including keys that a library truncated with an ellipsis."""
    parts = _ELLIPSIS.split(text)
    last = len(parts) - 1
    parts = [redact_excerpt(part, start=number > 0, end=number < last) for number, part in enumerate(parts)]
    line = outgoing_line(" ".join("".join(parts).split()))
    return line if len(line) <= _MAX_LINE_CHARS else line[:_MAX_LINE_CHARS] + "…"


def log_unhandled_error(_: object, context: Mapping[str, Any]) -> None:
    """Log an unhandled error of the package's event loops on one line; intended as an asyncio exception handler."""
    error = context.get("exception")
    text = f"{context['message']}: {named_error(error)}" if error is not None else str(context["message"])
    logging.getLogger("materia_nb.agents").error("%s", one_line_without_keys(text))
