"""What people say of a cast or of one of its steps: a name, tags, a note, a verdict. Nothing that is decided reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.jsonvalue import JSON

LabelKey: TypeAlias = tuple[int, int]
"""What a label belongs to: the branch and the number of a step, since numbers come anew after going back."""

WHOLE_CAST: Final[LabelKey] = (0, 0)
"""The key of what is said of the cast itself."""
VERDICTS: Final = ("good", "bad", "unsure")
_MOST_TAGS: Final = 20
_NOTE_CHARS: Final = 10_000
_LISTED_NOTE_CHARS: Final = 200  # every later line of the journal repeats it, for the list of casts

# A letter first: the ids of casts begin with a digit, so a name is never the beginning of one.
_NAME: Final = re.compile(r"[^\W\d_][\w .-]{0,63}")
_TAG: Final = re.compile(r"\w[\w.:+-]{0,39}")
_TAKEN: Final = frozenset({"latest", "end"})


class Label(NamedTuple):
    """What is said of one cast or step; empty where nothing is said."""

    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    verdict: str = ""
    by: str = ""

    @property
    def empty(self) -> bool:
        """Whether nothing is said."""
        return not (self.name or self.tags or self.note or self.verdict)

    @property
    def words(self) -> str:
        """All of it in a line."""
        parts = [
            self.name and f"named {self.name}",
            self.verdict and f"judged {self.verdict}",
            self.tags and f"tagged {', '.join(self.tags)}",
            self.note and f"note: {' '.join(self.note.split())}",
        ]
        text = "; ".join(str(part) for part in parts if part)
        return f"{text} (by {self.by})" if self.by not in ("", "person") else text

    def listed(self) -> dict[str, JSON]:
        """Return what the list of casts tells of it."""
        note = self.note[:_LISTED_NOTE_CHARS]
        fields: dict[str, JSON] = {
            "name": self.name,
            "tags": list(self.tags),
            "verdict": self.verdict,
            "note": note,
        }
        return {key: value for key, value in fields.items() if value}


def as_listed(listed: object) -> Label:
    """Read what :meth:`Label.listed` gave; what is not as it should be counts as not said."""
    fields: Mapping[str, JSON] = listed if isinstance(listed, dict) else {}
    texts = {key: value for key in ("name", "note", "verdict") if isinstance(value := fields.get(key), str)}
    tags = fields.get("tags")
    return Label(
        **texts, tags=tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()
    )


def relabelled(
    before: Label,
    *,
    name: str | None,
    tag: str | Iterable[str],
    untag: str | Iterable[str],
    note: str | None,
    verdict: str | None,
    by: str,
) -> Label:
    """Return a label with some of it changed: None stays as it is, "" is taken away.

    Raises:
        MateriaError: a name, tag, note or verdict that cannot be one (``bad_label``).
    """
    tags = [tag_ for tag_ in before.tags if tag_ not in set(_several(untag))]
    tags += [tag_ for tag_ in _several(tag) if tag_ not in tags]
    new_label = Label(
        before.name if name is None else name.strip(),
        tuple(tags),
        before.note if note is None else note.strip(),
        before.verdict if verdict is None else verdict.strip(),
        by.strip() or "person",
    )
    _check(new_label)
    return new_label


def _several(tags: str | Iterable[str]) -> list[str]:
    """Tags may stand in one text, with commas or spaces between them."""
    if isinstance(tags, str):
        return [part for part in re.split(r"[,\s]+", tags) if part]
    return [str(tag).strip() for tag in tags]


def _check(label: Label) -> None:
    if label.name and (not _NAME.fullmatch(label.name) or label.name in _TAKEN):
        raise _bad(
            f"{label.name[:80]!r} cannot be a name.",
            "a letter, then letters, digits, spaces, dots, dashes or underscores, at most 64",
        )
    for tag in label.tags:
        if not _TAG.fullmatch(tag):
            raise _bad(
                f"{tag[:80]!r} cannot be a tag.",
                "one word of letters, digits and . : + - _, at most 40 characters",
            )
    if len(label.tags) > _MOST_TAGS:
        raise _bad(
            f"There are {len(label.tags)} tags, and {_MOST_TAGS} are the most.", "take some away: untag"
        )
    if len(label.note) > _NOTE_CHARS:
        raise _bad(
            f"The note has {len(label.note):,} characters, and {_NOTE_CHARS:,} are the most.", "say less"
        )
    if label.verdict and label.verdict not in VERDICTS:
        raise _bad(f"{label.verdict[:80]!r} is not a verdict.", did_you_mean(label.verdict, VERDICTS))


def _bad(message: str, hint: str) -> MateriaError:
    return MateriaError(message, hint=hint, kind="bad_label")
