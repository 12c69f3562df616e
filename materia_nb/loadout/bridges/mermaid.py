"""Flowcharts written in Mermaid, read as a flow; those that LangGraph draws too."""

from __future__ import annotations

import html
import re
from typing import Final

from materia_nb.errors import MateriaError
from materia_nb.loadout.bridges.flow import Flow, Step, Way, kind_by_name

_HEADER: Final = re.compile(r"^\s*(?:flowchart|graph)\b[^\n;]*", re.IGNORECASE | re.MULTILINE)
_SHAPES: Final = (  # opening and closing of each shape, the longer ones first
    ("(((", ")))"), ("((", "))"), ("([", "])"), ("[[", "]]"), ("[(", ")]"), ("{{", "}}"),
    ("[/", "/]"), ("[\\", "\\]"), ("[", "]"), ("(", ")"), ("{", "}"), (">", "]"),
)  # fmt: skip
_ID: Final = re.compile(r"\s*([^\W_]\w*(?:[.-]\w+)*|_\w*)")
_LABELLED: Final = re.compile(
    r"\s*[<xo]?(?:--(?![->x])|-\.(?!-)|==(?![=>]))\s*(?P<label>[^|\n]+?)\s*(?:-+->|--+[xo]?|\.+-+>?|=+=>?)"
)
_LINK: Final = re.compile(r"\s*[<xo]?(?:--+[->xo]|-\.+-+>?|==+[=>])\s*(?:\|(?P<label>[^|]*)\|)?")
_PASSED_OVER: Final = re.compile(
    r"^\s*(?:%%|(?:subgraph|end|direction|style|classDef|class|click|linkStyle|accTitle|accDescr)\b)"
)
_FRONT_MATTER: Final = re.compile(r"\A\s*---\n.*?\n---\s*\n", re.DOTALL)
_MARKUP: Final = re.compile(r"<[^>]*>")


def read_mermaid(text: str) -> Flow:
    """Read a flowchart: boxes are work, rhombs decide, labelled and dotted links are choices.

    Raises:
        MateriaError: it is no flowchart, or a line cannot be read (``bad_graph``).
    """
    body = _FRONT_MATTER.sub("", text)
    header = _HEADER.search(body)
    if header is None:
        raise MateriaError(
            "This is not a Mermaid flowchart.", hint='it begins with "flowchart TD"', kind="bad_graph"
        )
    flow = Flow("a Mermaid flowchart")
    for line in re.split(r"[\n;]", html.unescape(body[header.end() :])):
        if line.strip() and not _PASSED_OVER.match(line):
            _Line(flow, line).read()
    return flow


class _Line:
    """Reads one statement: nodes, and links from each of them to each of the next."""

    def __init__(self, flow: Flow, line: str) -> None:
        self.flow, self.line, self.at = flow, line, 0

    def read(self) -> None:
        sources = self._nodes()
        while self.line[self.at :].strip():
            link = _LINK.match(self.line, self.at) or _LABELLED.match(self.line, self.at)
            if link is None:
                raise self._unreadable()
            self.at = link.end()
            label = _plain(link["label"] or "")
            dotted = "-." in link[0]
            targets = self._nodes()
            self.flow.ways += [
                Way(source, target, label, choice=bool(label) or dotted)
                for source in sources
                for target in targets
            ]
            sources = targets

    def _nodes(self) -> list[str]:
        nodes = [self._node()]
        while (more := re.compile(r"\s*&").match(self.line, self.at)) is not None:
            self.at = more.end()
            nodes.append(self._node())
        return nodes

    def _node(self) -> str:
        found = _ID.match(self.line, self.at)
        if found is None:
            raise self._unreadable()
        id_, self.at = found[1], found.end()
        title, decides = self._shape()
        style = re.compile(r":::\w+").match(self.line, self.at)
        self.at = style.end() if style else self.at
        known = self.flow.steps.get(id_)
        if known is None or title is not None:
            shown = title or id_
            kind = "decide" if decides else kind_by_name(shown if title else id_)
            self.flow.steps[id_] = Step(shown, kind)
        return id_

    def _shape(self) -> tuple[str | None, bool]:
        rest = self.line[self.at :]
        for opening, closing in _SHAPES:
            if rest.startswith(opening):
                begin = self.at + len(opening)
                if self.line.startswith('"', begin):
                    quote = self.line.find('"', begin + 1)
                    end = self.line.find(closing, quote)
                else:
                    end = self.line.find(closing, begin)
                if end < 0:
                    raise self._unreadable()
                self.at = end + len(closing)
                return _plain(self.line[begin:end]), opening == "{"
        return None, False

    def _unreadable(self) -> MateriaError:
        return MateriaError(
            f"The flowchart cannot be read at {self.line[self.at : self.at + 40].strip()!r}.",
            where=self.line.strip()[:120],
            hint="nodes such as A[Plan], links such as A -->|yes| B",
            kind="bad_graph",
        )


def _plain(text: str) -> str:
    """Return a label without markup and quotes, on one line."""
    return " ".join(_MARKUP.sub(" ", text.strip().strip('"')).split())
