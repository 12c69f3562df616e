"""Mermaid flowcharts with their expected graphs, and charts that must be refused.

A graph is written as ``nodes

links``. A node is ``id`` or ``id=label``. A link is ``a>b``, with a label ``a>b:label``, and dotted ``a.>b``.
"""

from __future__ import annotations

from typing import Final

ARROWS: Final = {
    **dict.fromkeys(
        ("-->", "--->", "---->", "---", "----", "-----", "--o", "--x", "o--o", "x--x", "==>", "===>", "===", "====",
         "==o", "==x", "o==o", "x==x", "e1@-->", "e1@==>"), "a>b",
    ),
    **dict.fromkeys(
        ("-.->", "-..->", "-...->", "-.-", "-..-", "-.-o", "-.-x", "o-.-o", "x-.-x", "e1@-.->"), "a.>b"
    ),
    **dict.fromkeys(("<-->", "<--->", "<==>"), "a>b b>a"),
    "<-.->": "a.>b b.>a", "~~~": "", "~~~~": "",
}  # fmt: skip
LABELLED_ARROWS: Final = {
    **dict.fromkeys(
        ("-- yes -->", "--yes-->", "-- yes --->", "-->|yes|", "--> |yes|", "-->| yes |", '-->|"yes"|', '-- "yes" -->',
         "-- yes ---", "---|yes|", "-- yes --o", "-- yes --x", "== yes ==>", "==yes==>", "==>|yes|", "== yes ===",
         "-- `yes` -->", '-- "`**yes**`" -->', "-- <b>yes</b> -->", "-->|&nbsp;yes&nbsp;|", "e1@-->|yes|",
         "e1@-- yes -->"), "a>b:yes",
    ),
    **dict.fromkeys(
        ("-. yes .->", "-.yes.->", "-.->|yes|", "-. yes .-", "-. &nbsp;yes&nbsp; .->", '-. "yes" .->', "-.-|yes|"),
        "a.>b:yes",
    ),
    "-- no--> ": "a>b:no", "-- one-two -->": "a>b:one-two", "-. v1.0 .->": "a.>b:v1.0",
    '-- "a -- b" -->': "a>b:a -- b", '-->|"a | b"|': "a>b:a | b", "-->|a (b) [c]|": "a>b:a (b) [c]",
    "-->|a; b|": "a>b:a; b", "-->|#35;1|": "a>b:#1", "-- x = 1 -->": "a>b:x = 1",
}  # fmt: skip
SHAPES: Final = (
    "[T]", "(T)", "([T])", "[[T]]", "[(T)]", "((T))", "(((T)))", "{T}", "{{T}}", ">T]", "[/T/]", "[\\T\\]", "[/T\\]",
    "[\\T/]", "(-T-)", '["T"]', '( "T" )', '["`T`"]', '["`**T**`"]', "[<b>T</b>]", '["<p>T</p>"]', "[ T ]",
    "[T]:::hot", "@{ shape: rect, label: T }", '@{ shape: diamond, label: "T" }', "@{ label: 'T' }",
    '@{\n shape: lean-r\n label: "T"\n}', '@{ icon: "fa:user", form: "square", label: "T", pos: "t", h: 60 }',
    '[x]@{ label: "T" }', "[T]@{ shape: rounded }", '@{ shape: rect, label: "T", }',
)  # fmt: skip
LABELS: Final = {
    '["a [b] (c) {d}"]': "a [b] (c) {d}", '["a; b"]': "a; b", "[a; b]": "a; b", '["a | b"]': "a | b", '["#91;v2#93;"]': "[v2]",
    '["#quot;x#quot;"]': '"x"', '["#60;b#62;"]': "<b>", '["a &amp; b"]': "a & b", '["a<br/>b"]': "a b", '["one\ntwo"]': "one two",
    '["`one\ntwo`"]': "one two", "[one\ntwo]": "one two", '["a < b and c > d"]': "a < b and c > d", '["#9829;"]': "\u2665",
    '["#unknown;"]': "#unknown;", '["%% no note"]': "%% no note", '["a --> b"]': "a --> b", "[a --> b]": "a --> b",
    "[Prüfung]": "Prüfung", "[準備する]": "準備する", "[हिन्दी]": "हिन्दी", "[fa:fa-car Go]": "fa:fa-car Go", "[a/b\\c]": "a/b\\c",
    '[/"a/b"/]': "a/b", "[/a/b/]": "a/b", '["#38;lt;"]': "&lt;", '["2 * 3 * 4"]': "2 * 3 * 4", "[end]": "end", "[it's]": "it's",
}  # fmt: skip
IDS: Final = (
    "A1", "a_b", "a-b", "a.b", "a/b", "agent\\3amodel", "my\\20node", "__x__", "ünï", "節点", "हिन्दी", "1", "1a", "a:b", "a#b", "style1",
    "endpoint", "subgraphs", "classify", "clicks", "directional", "End", "END", "a=b", "x", "o", "v", "default",
)  # fmt: skip
CHARTS: Final = {
    "a": "a |", "a;": "a |", "a; b": "a b |", "a\n\n\nb": "a b |", "a-->b": "a b | a>b", "a-->b;b-->c": "a b c | a>b b>c",
    "a --> b --> c": "a b c | a>b b>c", "a --> b & c --> d": "a b c d | a>b a>c b>d c>d", "a & b --> c & d": "a b c d | a>c a>d b>c b>d",
    "a -->\n b": "a b | a>b", "a\n --> b\n --> c": "a b c | a>b b>c", "a --> a": "a | a>a", "a --> b\nx-->c": "a b x c | a>b x>c",
    "a -- x --> b\no-->c": "a b o c | a>b:x o>c", "a --> b\na --> b": "a b | a>b a>b", "a[P] --> b\na --> c": "a=P b c | a>b a>c",
    "a --> b\na[P]": "a=P b | a>b", "a[P]\na[Q]": "a=Q |", "a ~~~ b --> c": "a b c | b>c", "a---oX": "a X | a>X", "a--oB": "a B | a>B",
    "%% note\na --> b": "a b | a>b", "a --> b %% note": "a b | a>b", "a %% x --> y": "a |", "  %% a --> c\n  a --> b": "a b | a>b",
    "%%{init: {'theme': 'dark'}}%%\na --> b": "a b | a>b", "a --> b\n%%{\n init: {}\n}%%\nb --> c": "a b c | a>b b>c",
    "a\nstyle a fill:#f9f,stroke:#333": "a |", "a\nstyle a fill:#fff;\nb": "a b |", "classDef x fill:#f9f;\na:::x": "a |",
    "classDef x,y font-size:12pt\na": "a |", "a --> b\nclass a,b x;": "a b | a>b", "a --> b\nlinkStyle 0 stroke:red;": "a b | a>b",
    "a --> b\nlinkStyle default color:red": "a b | a>b", 'a\nclick a "https://x.y/?a;b" "two\nlines" _blank\na --> b': "a b | a>b",
    "a\nclick a callback": "a |", 'a\nclick a call f("x; y") "tip"': "a |", 'a\nclick a href "x" _self;b': "a b |",
    "style a fill:#fff;stroke:#000\na": "a |", "a:::x --> b:::y": "a b | a>b", "direction LR\na": "a |",
    "accTitle: a --> b\naccDescr: c --> d\na": "a |", "accDescr {\n a --> b\n c\n}\na": "a |",
    "a e1@--> b\ne1@{ animate: true }": "a b | a>b", "a e1@--> b\nclass e1 fast": "a b | a>b",
    "subgraph s\na --> b\nend": "a b | a>b", "subgraph s [A title]\ndirection LR\na\nend": "a |", 'subgraph "A title"\na\nend\nb': "a b |",
    "subgraph A title\na\nend\nb": "a b |", "subgraph\na\nend\nb": "a b |", 'subgraph s["x [y]"]\na\nend': "a |", "subgraph s; a; end; b": "a b |",
    "subgraph s\nend\na": "a |", "subgraph s\nsubgraph t\na\nend\nb\nend": "a b |", "subgraph s %% note\na\nend %% note\nb": "a b |",
    "subgraph s\na --> b\nend\np --> s --> d": "a b p d | a>b p>a b>d", "p --> s\nsubgraph s\na --> b\nend": "p a b | p>a a>b",
    "subgraph s\na\nend\nsubgraph t\nb\nend\ns --> t": "a b | a>b", "subgraph s\nsubgraph t\na\nend\nend\np --> s": "a p | p>a",
    "subgraph s\nsubgraph t\na-->b\nend\nt --> c\nend\np --> s --> q": "a b c p q | a>b b>c p>a c>q",
    "subgraph s\na --> a\nend\np --> s": "a p | a>a p>a", "subgraph s\na\nend\np -->|go| s": "a p | p>a:go",
    "b --> a\nsubgraph s\na\nend\ns -.-> b": "b a | b>a a.>b",
}  # fmt: skip
REFUSED: Final = (
    "a[open", "a[x](y)z", "a[x (y)]", 'a[say "x"]', 'a["x" y]', 'a["x', "a --> [", "a -->", "--> a", "a b", "a ??? b", "a -- b", "a -- --> b",
    "a - b", "a -> b", "a => b", "a <-- b", "a <--- b", "a <-- x --- b", "a &b", "a & --> b", "a --> end", "end --> a", "end-->a", "end", "class --> b",
    "style & a", "subgraph --> a", "click --> b", "direction --> b", "direction XY", "subgraph s\na", "subgraph s\na\nend\nend",
    "subgraph s\na\nend\nsubgraph s\nb\nend", "subgraph s\na\nb\nend\np --> s", "subgraph s\na-->b\na-->c\nend\ns --> d",
    "subgraph s\na-->b-->a\nend\np --> s", "subgraph s\nend\np --> s", "subgraph s\na\nend\na --> s", "subgraph s\na\nend\ns --> s",
    "subgraph s\na\nend\ns[Box] --> b", "a@{ shape: diamond", "a@{ shape }", "a@{ label: | }", "a{x]", "a([x)", "a((x)", "a(((x))", "a[/x]", "a[/]",
    "a[x/]y", "a -->|x b", 'a -->|"x"y| b', "a ~~~|x| b", "a e1@ b", "a -- x -->|y| b", "a -- x\ny --> b", "a (x)", "a(x", "a@b --> c", "|x|",
    "a --> b c", "a --> b;; ]", "a:::", "{x}", "A->>B: hi", "state a", "a --> b : x",
)  # fmt: skip
DIAGRAMS: Final = (
    "sequenceDiagram\n A->>B: hi", "classDiagram\n A <|-- B", "stateDiagram-v2\n a --> b", "erDiagram\n A ||--o{ B : x", "gantt\n title x",
    'pie\n "a" : 1', "journey\n title x", "gitGraph\n commit", "mindmap\n root", "timeline\n title x", "quadrantChart\n title x",
    "requirementDiagram\n", "C4Context\n title x", "sankey-beta\n a,b,1", "xychart-beta\n title x", "block-beta\n a", "packet-beta\n 0: x",
    "architecture-beta\n group x", "kanban\n a", "radar-beta\n a",
)  # fmt: skip
