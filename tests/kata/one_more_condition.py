"""Example change: add a condition `unsaid` as one more row in the table of conditions.

The checks cover all uses of a condition: validation, routing, explanations, pictures, and the designer.
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

from builders import Play, asks, at, config, edge, exit_route, items, loop
from materia_nb import Workbench
from materia_nb.display.svg import THEMES, graph_svg
from materia_nb.display.text import graph_mermaid, graph_text
from materia_nb.insight.why import explain
from materia_nb.loadout import build_graph, check_config
from materia_nb.loadout.json_schema import config_schema
from materia_nb.loadout.vocabulary import CONDITIONS, GUARD_FOR, GUARDS, Result
from materia_nb.widgets.design_session import DesignSession
from materia_nb.widgets.design_slices import design_slice
from materia_nb.widgets.graph_panel import GraphPanel
from materia_nb.widgets.predict import _LEGEND

WORD = "unsaid"
EDITS = {
    "loadout/vocabulary.toml": (
        "\n[protocols.sparse]\n",
        f"""
[conditions.{WORD}]
results = ["nothing"]
sign = "? {WORD}"
short = "?"
choice = "? nothing said"
phrase = "when nothing is said"
light = "#123456"
dark = "#abcdef"
dashes = [6, 3]

[protocols.sparse]
""",
    ),
}


def told(play: Play) -> str:
    why = explain(play.rules, "the step", play.last.decision, play.last.state)
    return "\n".join([str(why), *(" ".join(row) for row in why.rows)])


def routed() -> None:
    branches = config(
        {
            "Ask": asks(edge("Yes", "satisfied"), edge("Nothing", WORD), edge("Else"), materia="U"),
            **{name: at("P") for name in ("Yes", "Nothing", "Else")},
        }
    )
    assert check_config(branches).ok
    for answer, target in (
        ('{"satisfied": true}', "Yes"),
        ("{}", "Nothing"),
        ('{"satisfied": false}', "Else"),
    ):
        play = Play(branches, answer)
        assert play.last.decision.target == target, answer
        words = told(play)
        if target == "Nothing":
            assert f"the output does not set `satisfied`; {WORD} needs no satisfied" in words, words
        if target == "Else":
            _, look, _ = play.last.decision.checks
            assert look.reason(Result.NO) == f"the output sets satisfied: false; {WORD} needs no satisfied"
    with_exit = config(
        {"Plan": asks(edge("Do"), materia="G"), "Do": asks(edge("Do"), materia="U"), "Tell": at("P")},
        {"L": loop("Do", exits=[exit_route("Do", WORD, "Tell"), exit_route("Do", "always", "end")])},
    )
    assert Play(with_exit, items("one"), "{}").last.decision.target == "Tell", "the guarded exit goes first"
    assert Play(with_exit, items("one"), '{"satisfied": true}').last.decision.target == "end"


def drawn() -> None:
    graph = build_graph(config({"Ask": asks(edge("Ask", "satisfied"), edge("Do", WORD), materia="U"), "Do": at("P")}))
    light, dark = (graph_svg(graph, colours=colours) for colours in THEMES.values())
    for picture, colour in ((light, "#123456"), (dark, "#abcdef")):
        assert f'stroke="{colour}" stroke-width="1.6" stroke-dasharray="6 3"' in picture
        assert ">?<" in picture
    assert f"? {WORD} → Do" in graph_text(graph)
    assert WORD in graph_mermaid(graph)
    assert f"? {WORD}" in _LEGEND
    panel = GraphPanel(graph)
    one = next(condition for condition in panel.front.fixed["conditions"] if condition["ink"] == WORD)
    assert one == {
        "class": f"when-{WORD}",
        "choice": "? nothing said",
        "line": WORD,
        "ink": WORD,
        "dashes": [6, 3],
    }
    assert panel.front.fixed["themes"]["dark"][WORD] == "#abcdef"
    assert any(f"when-{WORD}" in line["classes"].split() for line in panel.front.scene["edges"])
    panel.close()


def designed(folder: Path) -> None:
    with closing(Workbench(folder)) as bench:
        session = DesignSession(bench, bench.design("New", new=True))
        for materia in ("Plan", "Build", "Eval"):
            session.on_message("add", {"materia": materia})
        session.on_message("connect", {"from": "Socket-2", "to": "Socket-3", "when": WORD})
        assert session.note[0] == "status", session.note
        told = design_slice(session)["inspector"]
        assert told["sentence"] == "From Build when nothing is said to Eval."
        field = next(one for one in told["fields"] if one["name"] == "when")
        assert WORD in [option[0] for option in field["options"]]
        session.on_message("pick", {"part": ["socket", "Socket-2"]})
        told = design_slice(session)["inspector"]
        assert [WORD, "? nothing said"] in told["conditions"]
        assert told["ways"][0]["when"] == "? nothing said"
        session.on_message("connect", {"from": "Socket-2", "to": "end"})
        added = session.design.document["sockets"]["Socket-2"]["edges"][1]
        assert added == {"when": "not_satisfied", "to": "end"}, "what nothing waits for yet"


if __name__ == "__main__":
    assert CONDITIONS[-1] == WORD
    assert WORD not in GUARDS
    assert WORD not in GUARD_FOR.values()
    assert f'"{WORD}"' in str(config_schema()).replace("'", '"')
    routed()
    drawn()
    with tempfile.TemporaryDirectory() as made:
        designed(Path(made))
