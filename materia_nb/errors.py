"""The exception family of the package, and the redaction of every text that leaves it.

Text leaves in an error, a traceback, a displayed name or the log of a library: keys are removed, and the text becomes
harmless.
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

_COMPARED: Final = 200  # characters of a name: comparing takes the square of it
_SHORT: Final = 6
"""Words of up to so many letters are soon alike by chance, as pause and use are, or edit and predict."""

_NUMBER: Final = re.compile(r"\d+")
_WORD: Final = re.compile(r"[a-z0-9]+")


class MateriaError(Exception):
    """A problem that a person can act on.

    Args:
        what: one sentence that says what is wrong.
        where: the path in a config, an output or on disk that it concerns.
        hint: what to do about it.
        kind: a stable word for programs, such as ``utility_timeout``.
        more: what is listed below ``what``, a line each.

    Its text (``str``) has no keys in it and nothing that a terminal acts upon, and every line of it is one of
    these parts: a name from a loadout cannot add a line, whatever it holds.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        kind: str = "error",
        more: Sequence[str] = (),
    ) -> None:
        super().__init__(what)
        self.what = "\n".join([what, *more])
        self.where = where
        self.hint = hint
        self.kind = kind
        self._lines = (what, *more)

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
        """Give IPython these lines in place of a traceback (still a real error output)."""
        return [f"{type(self).__name__}: {line}" if i == 0 else line for i, line in enumerate(str(self).splitlines())]


def named_error(error: BaseException, max_chars: int | None = None) -> str:
    """Return the type of an error and its message, if it has one, cut at ``max_chars`` characters."""
    try:
        message = str(error)[:max_chars]
    except Exception:  # noqa: BLE001 - str() of a foreign error may raise
        message = ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def counted(count: int, one: str, more: str | None = None) -> str:
    """Say how many of something: ``1 time``, ``3 times``; ``more`` is the plural where it is not ``one`` with an s."""
    return f"{count} {one if count == 1 else more or f'{one}s'}"


def close_match(name: str, known: Iterable[str]) -> str | None:
    """Return the known name nearest to ``name``, or None when nothing is near.

    One with another number is near only with a digit too many or too few: whoever wrote Socket-77 did not mean
    Socket-5.
    """
    names, name = list(known), name[:_COMPARED]
    for found in difflib.get_close_matches(name, names, n=3, cutoff=0.6):
        a, b = name.casefold(), found.casefold()
        if _NUMBER.findall(a) != _NUMBER.findall(b):
            if len(a) != len(b) and _a_slip(a, b):
                return found
            continue
        long = min(len(a), len(b)) > _SHORT or (max(len(a), len(b)) > _SHORT and a[0] == b[0])
        if long or _a_slip(a, b):
            return found
    folded = {candidate.casefold(): candidate for candidate in names}
    # Last, a name that says more than the known one: file_path for path.
    words = {folded[word] for word in _WORD.findall(name.casefold()) if word in folded}
    return folded.get(name.casefold()) or (words.pop() if len(words) == 1 else None)


def _a_slip(name: str, known: str) -> bool:
    """Whether one word is the other with a letter too many, too few or another one, or two that changed places."""
    same = alike(name, known)
    rest, other = name[same:], known[same:]
    end = alike(rest[::-1], other[::-1])
    rest, other = rest[: len(rest) - end], other[: len(other) - end]
    return max(len(rest), len(other)) <= 1 or (len(rest) == 2 and rest == other[::-1])


def alike(one: Sequence[object], other: Sequence[object]) -> int:
    """Return how many letters, or lines, two texts have in common from the beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Say what was probably meant by ``name``, or list the choices (at most ten)."""
    names = sorted(set(known))
    match = close_match(name, names)
    if match:
        alike = _look_alike(name, match)
        return f"did you mean {match!r}?" + (f" The two differ: {name!a} and {match!a}" if alike else "")
    if not names:
        return "there are none"
    shown = ", ".join(map(outgoing_line, names[:10]))
    return f"choose one of: {shown}" + (", ..." if len(names) > 10 else "")


def _look_alike(name: str, other: str) -> bool:
    """True if two texts differ only in characters outside ASCII, as in how an umlaut is composed."""
    if normalize("NFC", name) == normalize("NFC", other):
        return name != other
    differing = [a + b for a, b in zip(name, other, strict=False) if a != b]
    return len(name) == len(other) and bool(differing) and not any(pair.isascii() for pair in differing)


def one_of_words(names: Iterable[str]) -> str:
    """Return names as a sentence lists them: ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def usage_error(what: str, hint: str | None = None) -> MateriaError:
    """Return the error for what was asked in a way that cannot be meant."""
    return MateriaError(what, hint=hint, kind="usage")


def needs_one_of(name: str, known: Collection[str], what: str, kind: str) -> None:
    """Raise MateriaError, with what was probably meant as its hint, unless a name is one of those that are known."""
    if name not in known:
        raise MateriaError(what, hint=did_you_mean(name, known), kind=kind)


_NAMES: Final = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_PROVIDERS: Final = re.compile(r".*_API_KEY|AWS_SECRET_ACCESS_KEY|AWS_BEARER_TOKEN_BEDROCK|HF_TOKEN")
_SHORTEST: Final = 6  # a shorter value is not a key, and would be cut out of ordinary words
_MIXED, _LONG = 12, 16
"""From which length on a value looks like a key, with other signs than letters or without."""
_ONE_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_LONGEST_WORD: Final = 24
_HEX_ESCAPE: Final = re.compile(r"(\\u)([0-9a-f]{4})")
_URL_ESCAPE: Final = re.compile(r"%[0-9A-F]{2}")
_PIECE: Final = 8  # so much of a key that was cut in two is cut out as well
_CUT: Final = "***"

_named: set[str] = set()
_seen: tuple[object, set[str], Sequence[str]] | None = None


def holds_key(variable: str) -> None:
    """Take the value of an environment variable for a key from now on, whatever its name and its look."""
    _named.add(variable)


def scrubbed(text: str, *more: str) -> str:
    """Return text without keys, and without ``more``.

    Keys are the values of the variables that :func:`holds_key` named and of those that providers of
    models read; of other variables that are called a key, token, secret, password or credential
    only values that look like one: ``postgres`` is a word that files have for other reasons.
    """
    for key in _keys(more) if more else _known_keys():
        text = text.replace(key, _CUT)
    return text


def scrubbed_part(text: str, *more: str, start: bool = False, end: bool = False) -> str:
    """Do as :func:`scrubbed` with a part of a longer text, which may begin or end within a key.

    Args:
        text: the part.
        more: what else to cut out.
        start: whether something was left out before it.
        end: whether something was left out behind it.
    """
    keys = _keys(more)
    text = scrubbed(text, *more)
    pieces = [key[:size] for key in keys for size in range(_PIECE, len(key))] if end else []
    if piece := max(filter(text.endswith, pieces), key=len, default=""):
        text = text.removesuffix(piece) + _CUT
    pieces = [key[-size:] for key in keys for size in range(_PIECE, len(key))] if start else []
    if piece := max(filter(text.startswith, pieces), key=len, default=""):
        text = _CUT + text.removeprefix(piece)
    return text


def secret_arguments(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of a command that are keys by the option before them: ``--api-key VALUE`` or ``=VALUE``."""
    found = []
    for option, value in zip(argv, [*argv[1:], ""], strict=True):
        name, equals, joined = option.partition("=")
        if name.startswith("-") and _NAMES.search(name):
            found.append(joined if equals else value)
    return tuple(found)


def scrubbed_bytes(data: bytes, *more: str, end: bool = False) -> bytes:
    """Do as :func:`scrubbed_part` with the output of a process, and leave bytes that are not text as they are."""
    text = data.decode(errors="surrogateescape")
    return scrubbed_part(text, *more, end=end).encode(errors="surrogateescape")


def scrubbed_json(value: Any) -> Any:
    """Do as :func:`scrubbed` with every string in a JSON value."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    clean = scrubbed(text)
    return value if clean == text else json.loads(clean)


def _keys(more: Sequence[str]) -> list[str]:
    """Return what is to be cut out, the longest first, since one key may be the beginning of another."""
    found = {*_known_keys(), *(one for one in more if len(one) >= _SHORTEST)}
    return sorted(found, key=len, reverse=True)


def _known_keys() -> Sequence[str]:
    """Return the keys in the environment in all their forms, the longest first, worked out again when it has changed.

    Every text that an agent or a process gives is searched, and comparing what lies under ``os.environ`` takes
    a hundredth of reading it name by name.
    """
    global _seen  # noqa: PLW0603 - one environment, one cache
    here = os.environ._data  # type: ignore[attr-defined]  # noqa: SLF001
    if _seen is None or _seen[0] != here or _seen[1] != _named:
        values = [value for name, value in os.environ.items() if _is_key(name, value)]
        forms = {one for value in values for one in _forms(value) if len(one) >= _SHORTEST}
        forms |= {json.dumps(form, ensure_ascii=False)[1:-1] for form in forms}  # quoted in JSON once more
        _seen = (here.copy(), _named.copy(), sorted(forms, key=len, reverse=True))
    return _seen[2]


def _forms(key: str) -> Iterator[str]:
    """Yield a key as it is, in each escaped form of the standard library (JSON, URL, HTML, repr), and line by line."""
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
        yield from (line for each in key.splitlines() if len(line := each.strip()) >= _LONG and line[:5] != "-----")


def _is_key(name: str, value: str) -> bool:
    if name in _named or _PROVIDERS.fullmatch(name):
        return True
    if not _NAMES.search(name) or (len(value) <= _LONGEST_WORD and _ONE_WORD.fullmatch(value)):
        return False
    return len(value) >= _LONG or (len(value) >= _MIXED and not value.isalpha() and not value.isdecimal())


FSI, PDI = "\u2068", "\u2069"

# Everything that XML 1.0 forbids, plus what a terminal or a bidirectional renderer would act upon.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
_MAY_BE_RTL: Final = re.compile(
    "[\u0590-\u08ff\u200f\u061c\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_ISOLATES: Final = re.compile(f"[{FSI}{PDI}]")
# A pile of accents on one letter grows over the lines around it; real text has at most three or four.
_PILE: Final = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})"
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
_BREAK: Final = re.compile("[\n\u2028\u2029]")


def _visible(match: re.Match[str]) -> str:
    """Give the sign that stands for an unsafe character."""
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF or 0x80 <= code <= 0x9F or code >= 0xFFFE:
        return "\ufffd"
    return f"[U+{code:04X}]"


def open_isolates(text: str) -> int | None:
    """Count the isolates left open at the end of ``text``; None if one is closed that was not opened."""
    depth = 0
    for mark in _ISOLATES.findall(text):
        depth += 1 if mark == FSI else -1
        if depth < 0:
            return None
    return depth


def plain(text: object) -> str:
    """Return ``text`` with control characters, lone surrogates and bidi controls made visible.

    Line feeds and tabs stay, carriage returns become line feeds, more than four accents on one letter are
    dropped. Text with right-to-left letters is put between isolates, so that it cannot reorder what stands
    beside it; isolates that are closed again are kept, so text that went through here may be put into more.
    """
    value = text if isinstance(text, str) else str(text)
    if value.isascii() and value.isprintable():
        return value  # most texts: there is nothing in them to look for
    value = value.replace("\r\n", "\n").replace("\r", "\n")
    value = _PILE.sub(r"\1", _UNSAFE.sub(_visible, value))
    if open_isolates(value) != 0:
        value = _ISOLATES.sub(_visible, value)
    return f"{FSI}{value}{PDI}" if _MAY_BE_RTL.search(value) else value


# Spaces but the usual one, signs without width, fillers, and variation selectors that no emoji uses.
_HIDDEN: Final = re.compile(
    "[\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    "\u3000\u3164\ufe00-\ufe0d\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_LOOKALIKES: Final = frozenset("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορυχϲϳАВЕЅІЈКМНОРСТУХԌԚԜавеѕіјкмнорстухһԁԛԝӏҮүοѵԍցհոսօզɑɡıɩʋℓᴄᴏᴠᴡᴢ")
"""Letters of other scripts that look like ASCII letters."""
_WORDS: Final = re.compile(r"[^\W\d_]+")
_DASHES: Final = re.compile(r"(?<!\S)[\u2010-\u2015\u2212](?=\w)|[\u2044\u2215\u2216\u2223\u204e\u2217\ua789\u02d0]")


def deceptive_signs(text: str) -> frozenset[str]:
    """Return the signs of a text that are invisible, or that look like ASCII signs where these are expected."""
    if text.isascii():
        return frozenset()
    signs = {*_HIDDEN.findall(text), *_DASHES.findall(text)}
    for sign in set(text):
        alike = unicodedata.normalize("NFKC", sign)  # such as A for a full-width A
        if alike != sign and len(alike) == 1 and alike.isascii():
            signs.add(sign)
    for word in _WORDS.findall(text):
        letters = _LOOKALIKES.intersection(word)
        if letters and (letters.issuperset(word) or any(map(str.isascii, word))):
            signs |= letters
    return frozenset(signs)


def with_visible_signs(text: str) -> str:
    """Return text that a person is to judge: each of its deceptive signs is written as ``[U+200B]``."""
    return text.translate({ord(sign): f"[U+{ord(sign):04X}]" for sign in deceptive_signs(text)})


def signs_warning(text: str) -> str:
    """Return a sentence that names the deceptive signs of a text; empty if it has none."""
    names = [f"U+{ord(sign):04X} {unicodedata.name(sign, 'without a name')}" for sign in sorted(deceptive_signs(text))]
    return f"Signs shown as [U+...] are invisible or look like others: {', '.join(names)}." if names else ""


def outgoing(text: object) -> str:
    """Return text as it may leave: without keys (:func:`scrubbed`), and :func:`plain`."""
    return plain(scrubbed(str(text)))


def outgoing_line(text: object) -> str:
    """Return a name, a path, one sentence: as :func:`outgoing`, and what would begin a line of its own is made visible."""
    return _BREAK.sub("\u240a", outgoing(text))


def outgoing_traceback(error: BaseException) -> str:
    """Return where an exception was raised, with what it says and what caused it."""
    return outgoing("".join(format_exception(error)).rstrip())


LIBRARIES: Final = frozenset(
    {
        *("anthropic", "boto3", "botocore", "cohere", "genai_prices", "google", "google_genai", "groq", "httpcore"),
        *("httpcore2", "httpx", "httpx2", "huggingface_hub", "mcp", "mistralai", "openai", "pydantic_ai", "urllib3"),
        "xai_sdk",
    }
)  # fmt: skip
"""The top-level loggers whose records, with those of their children, are redacted."""

_MAX_LENGTH: Final = 600
_ELLIPSIS: Final = re.compile(r"(\.{3}|…)")


def redact_library_logs() -> None:
    """Redact all records and warnings of :data:`LIBRARIES` from now on; a second call changes nothing."""
    make = logging.getLogRecordFactory()
    if not hasattr(make, "redacts"):

        def make_redacted(*args: Any, **kwargs: Any) -> logging.LogRecord:
            record = make(*args, **kwargs)
            if record.name.partition(".")[0] in LIBRARIES:
                _redact(record)
            return record

        make_redacted.redacts = True  # type: ignore[attr-defined]
        logging.setLogRecordFactory(make_redacted)
    show = warnings.showwarning
    if not hasattr(show, "redacts"):

        def show_redacted(
            message: Warning | str, category: type[Warning], filename: str, *args: Any, **kwargs: Any
        ) -> None:
            modules = category.__module__, filename.rpartition("site-packages/")[2].replace("/", ".")
            library = next((name for module in modules if (name := module.partition(".")[0]) in LIBRARIES), None)
            if library is None:
                show(message, category, filename, *args, **kwargs)
            else:
                logging.getLogger(library).warning("%s: %s", category.__name__, message)

        show_redacted.redacts = True  # type: ignore[attr-defined]
        warnings.showwarning = show_redacted


def _redact(record: logging.LogRecord) -> None:
    """Write the message and the exception of a record on one line, without keys and without a traceback."""
    try:
        text = record.getMessage()
    except (TypeError, ValueError, KeyError):  # its arguments do not fit
        text = str(record.msg)
    if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
        text = f"{text}: {named_error(record.exc_info[1])}"
    record.msg, record.args = one_line_without_keys(text), ()
    record.exc_info = record.exc_text = record.stack_info = None


def one_line_without_keys(text: str) -> str:
    """Return text on one line without keys, also where a library shortened a value within a key."""
    parts = _ELLIPSIS.split(text)
    last = len(parts) - 1
    parts = [scrubbed_part(part, start=number > 0, end=number < last) for number, part in enumerate(parts)]
    line = outgoing_line(" ".join("".join(parts).split()))
    return line if len(line) <= _MAX_LENGTH else line[:_MAX_LENGTH] + "…"


def log_unhandled(_: object, context: Mapping[str, Any]) -> None:
    """Log in one line what nobody handles on a loop of ours; an exception handler of asyncio."""
    error = context.get("exception")
    text = f"{context['message']}: {named_error(error)}" if error is not None else str(context["message"])
    logging.getLogger("materia_nb.agents").error("%s", one_line_without_keys(text))
