"""What to change in text that is nearly JSON."""

from __future__ import annotations

import json
import re
from typing import Final

_CONSTANTS: Final = {"True": "true", "False": "false", "None": "null", "undefined": "null", "nil": "null"}
_CURLY: Final = "\u201c\u201d\u201e\u2018\u2019"
_WORD: Final = re.compile(r"[A-Za-z_]\w*")


def json_advice(text: str) -> str:
    """Say what to change at the first place where ``text`` is not JSON; empty when nothing is known to help."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _advice(text, error)
    except (RecursionError, ValueError):
        return ""
    return ""


def _advice(text: str, error: json.JSONDecodeError) -> str:
    # Newer Pythons point at a comma too many, older ones at the bracket behind it.
    before, rest = text[: error.pos].rstrip(), text[error.pos :].lstrip()
    word = _WORD.match(rest)
    mark = "colon" if "':'" in error.msg else "comma"
    bracket = rest.lstrip(", \t\r\n")[:1]
    cases = (
        ("control character" in error.msg, "write \\n for a line break within a text"),
        (
            bracket in ("}", "]") and (rest[0] == "," or before.endswith(",")),
            f"take away the comma in front of {bracket}",
        ),
        (rest[:1] == "'", "put text and names into double quotes, not single ones"),
        (rest.startswith(tuple(_CURLY)), "write straight double quotes"),
        (rest.startswith(("#", "//", "/*")), "take the comment away, JSON has none"),
        (word is not None, _of_word(word[0]) if word else ""),
        ("Unterminated" in error.msg or not rest, "something is not closed: a quote or a bracket is missing"),
        (
            "delimiter" in error.msg,
            f'a {mark} is missing, or a quote within a text that must be written \\"',
        ),
    )
    return next((f"line {error.lineno}: {words}" for holds, words in cases if holds), "")


def _of_word(word: str) -> str:
    if word in _CONSTANTS:
        return f"write {_CONSTANTS[word]} for {word}"
    return f'put {word[:40]} into double quotes: "{word[:40]}"'
