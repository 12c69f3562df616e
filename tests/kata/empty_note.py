"""Example change: add the hint `empty-note` and its fix for the field from :mod:`socket_note`."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

from materia_nb import Workbench
from materia_nb.loadout.rules import HINT_CODES

EDITS = {
    "loadout/rules/socket_rules.py": (
        '@rule(SOCKET_RULES, "loadout", "unreachable-socket")\n',
        '''@rule(SOCKET_RULES, "socket", "empty-note")
def _empty_note(_facts: LoadoutFacts, socket: SocketFacts) -> Iterator[Hint]:
    """A `note` with nothing in it."""
    note, source = socket.raw.get("note"), f"{socket.id}.note"
    if isinstance(note, str) and not note.strip():
        yield Hint(source, "the note is empty", "write a note, or remove the field", removal_fix(socket.id, "note"))


@rule(SOCKET_RULES, "loadout", "unreachable-socket")
''',
    ),
}

if __name__ == "__main__":
    assert HINT_CODES["empty-note"] == "A `note` with nothing in it"
    with tempfile.TemporaryDirectory() as folder, closing(Workbench(folder, bundled=False)) as bench:
        path = Path(folder) / "materia.yaml"
        path.write_text(
            "loadouts: {Two: {entry: Socket-1, sockets: {\n"
            "  Socket-1: {materia: Ask, note: ' ', edges: [{when: always, to: Socket-2}]},\n"
            "  Socket-2: {materia: Ask, note: be brief}}}}\n"
            "materia: {Ask: {tools: none, prompt: Ask.}}\n",
            "utf-8",
        )
        bench.loadouts.load(path)
        (hint,) = [one for one in bench.check("Two").hints if one.code == "empty-note"]
        assert hint.source == "Socket-1.note"
        design = bench.design("Two")
        assert design.fix_all(), "the fix removes it"
        assert "note" not in design.document["sockets"]["Socket-1"]
        assert design.document["sockets"]["Socket-2"]["note"] == "be brief"
        assert not [one for one in design.report.hints if one.code == "empty-note"]
