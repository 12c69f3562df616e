"""Parser for Mermaid flowcharts. The parser returns the nodes with their labels, and the links between the nodes.

The parser follows the grammar of Mermaid 11. A statement that cannot be parsed is an error with a line number. Styles,
classes, click handlers and directions are skipped, because they do not affect the graph.
"""

from __future__ import annotations

import html
import re
from html.entities import html5
from itertools import product
from typing import Final, NamedTuple

from materia_nb.errors import MateriaError


class ChartNode(NamedTuple):
    """A node of a flowchart.

    Attributes:
        label: the label; None if the chart contains only the id of the node.
        shape: the name of the shape or its opening bracket, such as ``diamond`` or ``{``; "" if it is not specified.
    """

    label: str | None = None
    shape: str = ""


class ChartLink(NamedTuple):
    """A directed link of a flowchart.

    Attributes:
        source: the id of the node at the start of the link.
        target: the id of the node at the end of the link.
        label: the label, or "".
        dotted: True if the line is dotted.
        line: the line number in the file.
    """

    source: str
    target: str
    label: str
    dotted: bool
    line: int


class _Subgraph(NamedTuple):
    """A subgraph, with its title and with the ids of its nodes and inner subgraphs as the keys of ``members``."""

    title: str
    members: dict[str, None]


class Chart(NamedTuple):
    """A flowchart, with its nodes by id and its links, both in the order of the text."""

    nodes: dict[str, ChartNode]
    links: list[ChartLink]


_MAX_CHARACTERS: Final = 200_000
_MAX_LINKS: Final = 3_000
_MAX_SUBGRAPHS: Final = 300

_FRONT_MATTER: Final = re.compile(r"\s*?^[ \t]*---[ \t]*\n(?:.*\n)*?[ \t]*---[ \t]*(?:\n|\Z)", re.MULTILINE)
_LINE_COMMENT: Final = re.compile(r"^[ \t]*%%(?!\{).*", re.MULTILINE)
_DIRECTIVE: Final = re.compile(r"%%\{.*?\}%%", re.DOTALL)
_HEADER: Final = re.compile(
    r"\s*(?:flowchart-elk|flowchart|graph)\b(?:[ \t]+(?:TB|TD|BT|RL|LR|[<>^v]))?[ \t]*(?=[\n;]|%%|\Z)"
)
_BLANK_OR_COMMENT: Final = re.compile(r"(?:[\s;]|%%.*)*")
_BLANK_LINES: Final = re.compile(r"(?:\s|%%.*)*")
_LINE_SPACE: Final = re.compile(r"[ \t]*")
_STATEMENT_END: Final = re.compile(r"[ \t]*(?=[\n;]|%%|\Z)")
_NODE_ID: Final = re.compile(r"(?:[\w!#$'*+.?\\/`,]|[^\x00-\x7f\s]|%(?!%)|:(?!::)|-(?=[^>\-.])|=(?!=))+")
_CLASS_SUFFIX: Final = re.compile(r":::[\w-]+")
_NODE_SEPARATOR: Final = re.compile(r"[ \t]+&[ \t]+")
_WORD_END: Final = r"(?=[ \t\n;]|%%|\Z)"
_SUBGRAPH: Final = re.compile(rf"subgraph{_WORD_END}[ \t]*")
_SUBGRAPH_END: Final = re.compile(rf"end{_WORD_END}")
_SUBGRAPH_TITLE: Final = re.compile(r'(?:"[^"]*"|[^\n;"\[%]|%(?!%))*')
_DIRECTION: Final = re.compile(rf"direction[ \t]+(?:TB|TD|BT|RL|LR){_WORD_END}")
_ACCESSIBILITY_TEXT: Final = re.compile(r"acc(?:Title|Descr)[ \t]*:.*|accDescr[ \t]*\{[^}]*\}")
_STYLE_COMMAND: Final = re.compile(r"(?:style|classDef|class|linkStyle|click)[ \t]+(?=[^\s&])")
_STYLE_BODY: Final = re.compile(r'(?:"[^"]*"|[^\n;"]|;(?=[ \t]*[a-z-]+:(?!::)))*')
_KEYWORD: Final = re.compile(rf"end(?![^\s;&-])|(?:subgraph|direction|style|classDef|class|linkStyle|click){_WORD_END}")

_LINK_ID: Final = re.compile(r"[ \t]*([^\s\"@]+)@(?=[-=~.<xo])")
_LINK: Final = re.compile(
    r"(?:[ \t]*[xo]|\s*(?P<start><)?)(?:--+(?P<end>[-xo>])|==+(?P<end2>[=xo>])|-?\.+-(?P<end3>[xo>])?)|\s*(?P<hidden>~~~+)"
)
_LABELLED_LINK: Final = re.compile(r"(?:[ \t]*[xo]|\s*(?P<start><)?)(?:--|==|-\.)[ \t]*")
_LABEL: Final = {
    "--": re.compile(r"((?:[^-\n]|-(?!-))*?)(?:(?<=\s)[xo<])?--+([-xo>])"),
    "==": re.compile(r"((?:[^=\n]|=(?!=))*?)(?:(?<=\s)[xo<])?==+([=xo>])"),
    "-.": re.compile(r"((?:[^.\n]|\.(?![.-]))*?)(?:(?<=\s)[xo<])?-?\.+-([xo>]?)"),
}
_QUOTED_TEXT: Final = re.compile(r'\s*"([^"]*)"\s*')
_PIPE_LABEL: Final = re.compile(r'\s*\|(?:\s*"([^"]*)"\s*|([^|"]*))\|')
_SHAPES: Final = (  # opening brackets with their closing brackets, longer openings first
    ("(((", (")))",)), ("((", ("))",)), ("([", ("])",)), ("(-", ("-)",)), ("[[", ("]]",)), ("[(", (")]",)),
    ("{{", ("}}",)), ("[/", ("/]", "\\]")), ("[\\", ("/]", "\\]")), ("[", ("]",)), ("(", (")",)), ("{", ("}",)),
    (">", ("]",)),
)  # fmt: skip
_PLAIN_LABEL: Final = re.compile(r'[^\[\](){}|"]*')
_ATTRIBUTES: Final = re.compile(r"@\{((?:\"[^\"]*\"|'[^']*'|[^\"'}])*)\}")
_ATTRIBUTE: Final = re.compile(r"[\s,]*(\w+)[ \t]*:[ \t]*(?:\"([^\"]*)\"|'([^']*)'|([^,\n\"'|>]*))[ \t]*(?=[,\n]|\Z)")
_HTML_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>")
_ENTITY: Final = re.compile(r"#(\d+|[A-Za-z]\w*);")
_EMPHASIS: Final = re.compile(r"(\*\*|\*)(?=\S)(.{1,300}?)(?<=\S)\1", re.DOTALL)


def parse_mermaid(text: str, *, where: str = "", first_line: int = 1) -> Chart:
    """Parse a Mermaid flowchart.

    Args:
        text: the flowchart.
        where: the name of the file in errors, or "".
        first_line: the number of the line at which the flowchart begins in the file.

    Raises:
        MateriaError: the text is not a flowchart, or a statement cannot be parsed (``bad_graph``).
    """
    return _Parser(text, where, first_line).parse()


class _Parser:
    def __init__(self, text: str, where: str, first_line: int) -> None:
        self.where, self.first_line, self.at = where, first_line, 0
        self.text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        if len(self.text) > _MAX_CHARACTERS:
            raise self._error(f"The flowchart has more than {_MAX_CHARACTERS:,} characters.")
        self.nodes: dict[str, ChartNode] = {}
        self.links: list[ChartLink] = []
        self.link_ids: set[str] = set()
        self.subgraphs: dict[str, _Subgraph] = {}
        self.assigned_nodes: set[str] = set()
        self.open_subgraphs: list[tuple[str, _Subgraph, int]] = []

    def parse(self) -> Chart:
        front_matter = _FRONT_MATTER.match(self.text)
        self._blank_out(front_matter.end() if front_matter else 0)
        header = _HEADER.match(self.text)
        if header is None:
            self.at = len(self.text) - len(self.text.lstrip())
            raise self._error("This is not a Mermaid flowchart.", 'begin the chart with a line such as "flowchart TD"')
        self.at = header.end()
        while self._consume(_BLANK_OR_COMMENT) is not None and self.at < len(self.text):
            self._read_statement()
        if self.open_subgraphs:
            id_, subgraph, self.at = self.open_subgraphs[-1]
            raise self._error(f"The subgraph {subgraph.title or id_!r} is not closed.", "add a line with `end`")
        self._connect_subgraphs()
        return Chart(self.nodes, self.links)

    def _blank_out(self, front: int) -> None:
        """Replace front matter, directives and comments with empty lines, so that line numbers do not change."""

        def newlines(match: re.Match[str]) -> str:
            return "\n" * match[0].count("\n")

        body = _LINE_COMMENT.sub("", _DIRECTIVE.sub(newlines, self.text[front:]))
        self.text = "\n" * self.text.count("\n", 0, front) + body

    def _consume(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match a pattern at the current position. Return the match and move past it, or return None."""
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def _read_statement(self) -> None:
        start = self.at
        if self._consume(_SUBGRAPH):
            self._open_subgraph(start)
        elif self._consume(_SUBGRAPH_END):
            if not self.open_subgraphs:
                self.at = start
                raise self._error("`end` is outside a subgraph.", "remove the line, or rename the node to End")
            self._close_subgraph()
        elif self._consume(_STYLE_COMMAND):
            if _LINK.match(self.text, self.at):
                self.at = start
                raise self._syntax_error()
            self._consume(_STYLE_BODY)
        elif not (self._consume(_ACCESSIBILITY_TEXT) or self._consume(_DIRECTION)):
            self._read_chain()
        if self._consume(_STATEMENT_END) is None:
            raise self._syntax_error()

    def _open_subgraph(self, start: int) -> None:
        title_match = self._consume(_SUBGRAPH_TITLE)
        id_ = title = _plain_label(title_match[0]) if title_match else ""
        if self.text.startswith("[", self.at):
            title = self._read_bracket_label("[", ("]",))
            self._consume(_CLASS_SUFFIX)
        if not id_ or re.search(r"\s", id_):
            id_ = f" {len(self.subgraphs) + len(self.open_subgraphs)}"  # an id that no link can refer to
        if id_ in self.subgraphs or any(id_ == open_id for open_id, *_ in self.open_subgraphs):
            raise self._error(f"Two subgraphs have the id {id_!r}.", "use a unique id for each subgraph")
        if len(self.subgraphs) + len(self.open_subgraphs) >= _MAX_SUBGRAPHS:
            raise self._error(f"The flowchart has more than {_MAX_SUBGRAPHS} subgraphs.")
        self.open_subgraphs.append((id_, _Subgraph(title, {}), start))

    def _close_subgraph(self) -> None:
        """Close the innermost open subgraph. A node in several subgraphs belongs to the subgraph that is closed first."""
        id_, subgraph, _ = self.open_subgraphs.pop()
        members = {member: None for member in subgraph.members if member not in self.assigned_nodes and member != id_}
        self.assigned_nodes.update(members)
        self.subgraphs[id_] = _Subgraph(subgraph.title, members)
        if self.open_subgraphs:
            self.open_subgraphs[-1][1].members[id_] = None

    def _read_chain(self) -> None:
        """Read a statement such as ``A & B --> C``, and add a link between each pair of nodes in adjacent lists."""
        sources = self._read_nodes()
        while (link := self._read_link()) is not None:
            label, dotted, directions = link
            self._consume(_BLANK_LINES)
            line, targets = self._line(), self._read_nodes()
            for source, target in product(sources, targets):
                pairs = {0: (), 1: ((source, target),), 2: ((source, target), (target, source))}[directions]
                self.links += [ChartLink(*pair, label, dotted, line) for pair in pairs]
            if len(self.links) > _MAX_LINKS:
                raise self._error(f"The flowchart has more than {_MAX_LINKS:,} links.")
            sources = targets

    def _read_link(self) -> tuple[str, bool, int] | None:
        """Read the arrow of a link, or return None if no arrow follows.

        Returns:
            The label, True if the line is dotted, and the number of directions, which is 0 for an invisible link.
        """
        link_start = self.at
        link_id = self._consume(_LINK_ID)
        link = self._consume(_LINK)
        if link is not None:
            start, end = link["start"], link["end"] or link["end2"] or link["end3"] or "-"
            label = self._consume(_PIPE_LABEL)
            text = (label[1] or label[2] or "") if label else ""
            if self.text.startswith("|", self.at) or (link["hidden"] and label):
                raise self._syntax_error()
        elif (opening := self._consume(_LABELLED_LINK)) is not None:
            start, style = opening["start"], opening[0].strip().lstrip("xo<")
            quoted_text = self._consume(_QUOTED_TEXT)
            closing = self._consume(_LABEL[style])
            if closing is None or (quoted_text and closing[1].strip()) or not (quoted_text or closing[1].strip()):
                self.at = link_start
                raise self._syntax_error()
            link, end, text = opening, closing[2] or "-", quoted_text[1] if quoted_text else closing[1]
        else:
            if link_id:
                self.at = link_start
                raise self._syntax_error()
            return None
        if start == "<" and end != ">":
            self.at = link_start
            raise self._error("The link only points backwards.", "swap the two ends of the link")
        if link_id:
            self.link_ids.add(link_id[1])
        is_hidden = link.groupdict().get("hidden") is not None
        return _plain_label(text), "." in link[0], 0 if is_hidden else 2 if start == "<" else 1

    def _read_nodes(self) -> list[str]:
        nodes = [self._read_node()]
        while self._consume(_NODE_SEPARATOR):
            nodes.append(self._read_node())
        return list(dict.fromkeys(nodes))

    def _read_node(self) -> str:
        start = self.at
        match = None if _KEYWORD.match(self.text, self.at) else self._consume(_NODE_ID)
        if match is None or match[0] == "end":
            self.at = start
            raise self._syntax_error()
        id_, node = match[0], ChartNode()
        for opening, closings in _SHAPES:
            if self.text.startswith(opening, self.at):
                node = ChartNode(self._read_bracket_label(opening, closings), opening)
                break
        self._consume(_CLASS_SUFFIX)
        attributes = self._read_attributes()
        self._consume(_CLASS_SUFFIX)
        if attributes is not None and id_ in self.link_ids and id_ not in self.nodes:
            if self._consume(_STATEMENT_END) is None:
                raise self._syntax_error()
            return id_
        if attributes:
            node = ChartNode(attributes.get("label", node.label), attributes.get("shape", node.shape))
        known = self.nodes.get(id_, ChartNode())
        if known == ChartNode() and len(self.nodes) > _MAX_LINKS:
            self.at = start
            raise self._error(f"The flowchart has more than {_MAX_LINKS:,} nodes.")
        self.nodes[id_] = ChartNode(known.label if node.label is None else node.label, node.shape or known.shape)
        if self.open_subgraphs:
            self.open_subgraphs[-1][1].members[id_] = None
        return id_

    def _read_bracket_label(self, opening: str, closings: tuple[str, ...]) -> str:
        start = self.at
        self.at += len(opening)
        quoted_text = self._consume(_QUOTED_TEXT)
        text = quoted_text[1] if quoted_text else ""
        if not quoted_text:
            plain = self._consume(_PLAIN_LABEL)
            text = plain[0] if plain else ""
            if text and closings[0][0] in "/-":  # the closing bracket begins with a character that labels may contain
                self.at -= 1
                text = text[:-1]
        for closing in closings:
            if self.text.startswith(closing, self.at):
                self.at += len(closing)
                return _plain_label(text)
        self.at = start
        expected = " or ".join(closings)
        hint = 'write a label with brackets, quotes or | in quotes, such as A["Plan (draft)"]; write #quot; for a quote'
        raise self._error(f"The label that begins with {self._upcoming_text()!r} does not end with {expected}.", hint)

    def _read_attributes(self) -> dict[str, str] | None:
        """Read the attributes of a node, such as ``@{ shape: diamond, label: "x" }``, or return None."""
        if not self.text.startswith("@{", self.at):
            return None
        block, attributes, position = _ATTRIBUTES.match(self.text, self.at), {}, 0
        body = block[1].rstrip().rstrip(",") if block else ""
        while block and body[position:].strip(" \t\n,"):
            pair = _ATTRIBUTE.match(body, position)
            if pair is None:
                raise self._syntax_error()
            attributes[pair[1]] = _plain_label(pair[2] or pair[3] or pair[4] or "")
            position = pair.end()
        if block is None:
            raise self._syntax_error()
        self.at = block.end()
        return attributes

    def _connect_subgraphs(self) -> None:
        """Connect each link to or from a subgraph with the single node at which the subgraph begins or ends."""
        for id_ in self.subgraphs:
            if self.nodes.pop(id_, ChartNode()) != ChartNode():
                raise self._error(f"{id_!r} is the id of a node and of a subgraph.", "rename the node or the subgraph")
        for id_, subgraph in self.subgraphs.items():  # inner subgraphs come first
            if any(id_ in (link.source, link.target) for link in self.links):
                self._connect(id_, subgraph)

    def _connect(self, id_: str, subgraph: _Subgraph) -> None:
        inner_ids, pending_ids = set(), [id_]
        while pending_ids:
            member = pending_ids.pop()
            if member not in inner_ids:
                inner_ids.add(member)
                pending_ids += self.subgraphs[member].members if member in self.subgraphs else ()
        within = [link for link in self.links if {link.source, link.target} <= inner_ids and link.source != link.target]
        nodes = [node for node in self.nodes if node in inner_ids]
        link_targets, link_sources = {link.target for link in within}, {link.source for link in within}
        ends = {
            "begins": [node for node in nodes if node not in link_targets],
            "ends": [node for node in nodes if node not in link_sources],
        }
        for number, link in enumerate(self.links):
            if id_ not in (link.source, link.target):
                continue
            role = "ends" if link.source == id_ else "begins"
            other = link.target if link.source == id_ else link.source
            candidates, title = ends[role], subgraph.title or id_
            if other in inner_ids or len(candidates) != 1:
                reason = (
                    f"connects the subgraph {title!r} with a node inside it"
                    if other in inner_ids
                    else f"is attached to the subgraph {title!r}, which {role} at {len(candidates)} nodes"
                    + (f": {', '.join(candidates[:5])}" if candidates else "")
                )
                message = f"The link between {link.source!r} and {link.target!r} {reason}."
                raise self._error(message, "attach the link to one node of the subgraph", line=link.line)
            (node,) = candidates
            self.links[number] = link._replace(source=node) if link.source == id_ else link._replace(target=node)

    def _line(self) -> int:
        return self.text.count("\n", 0, self.at) + self.first_line

    def _upcoming_text(self) -> str:
        return self.text[self.at :].split("\n", 1)[0][:40].strip()

    def _syntax_error(self) -> MateriaError:
        self._consume(_LINE_SPACE)
        keyword = _KEYWORD.match(self.text, self.at)
        if keyword:
            message, hint = (
                f"{keyword[0]!r} is a keyword of Mermaid and cannot be the id of a node.",
                "use another id, such as End",
            )
            return self._error(message, hint)
        hint = "write nodes such as A[Plan] and links such as A -->|yes| B; write spaces around &"
        return self._error(f"The flowchart cannot be read at {self._upcoming_text()!r}.", hint)

    def _error(self, message: str, hint: str | None = None, *, line: int | None = None) -> MateriaError:
        number = self._line() if line is None else line
        where = f"{self.where}:{number}" if self.where else f"line {number}"
        return MateriaError(message, where=where, hint=hint, kind="bad_graph")


def _plain_label(text: str) -> str:
    """Return the plain text of a label on one line, without quotes, markup or HTML entities."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].strip()
    if len(text) > 1 and text[0] == text[-1] == "`":
        text = _EMPHASIS.sub(r"\2", text[1:-1])
    text = _HTML_TAG.sub(" ", text)
    text = _ENTITY.sub(_html_entity, text)
    return " ".join(html.unescape(text).split())


def _html_entity(match: re.Match[str]) -> str:
    name = match[1]
    return f"&#{name};" if name.isdigit() else f"&{name};" if f"{name};" in html5 else match[0]
