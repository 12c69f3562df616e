"""Example change: add a socket field `note` for the remarks of a person."""

from __future__ import annotations

from builders import asks, at, config, edge
from materia_nb.loadout import build_graph, check_config
from materia_nb.loadout.design.sockets import SOCKET_FIELDS
from materia_nb.loadout.json_schema import config_schema

PLACEMENT = '    noun = "a socket"\n    example = \'{"materia": "..."}\'\n    code = INVALID_SOCKET\n\n'
NOTE = '    note: fields.AnyText | None = config_field("Note about the socket.", multiline=True)\n'
EDITS = {
    "loadout/models.py": (PLACEMENT, f"{PLACEMENT}{NOTE}"),
    "loadout/graph.py": (
        "    prompt_form: PromptForm | None = None\n",
        "    prompt_form: PromptForm | None = None\n    note: str | None = None\n",
    ),
    "loadout/resolve.py": (
        '        prompt_form=raw.get("promptForm"),\n',
        '        prompt_form=raw.get("promptForm"),\n        note=raw.get("note"),\n',
    ),
}

if __name__ == "__main__":
    noted = config({"Ask": asks(edge("Do"), note="be brief"), "Do": at("P")})
    assert check_config(noted).ok
    ask, do = (build_graph(noted).sockets[name] for name in ("Ask", "Do"))
    assert (ask.note, do.note) == ("be brief", None)
    (wrong,) = check_config(config({"Ask": asks(note=7)})).problems
    assert (wrong.code, wrong.source) == ("invalid-socket", "Ask.note"), wrong
    typos = [str(hint) for hint in check_config(config({"Ask": asks(noet="be brief")})).hints]
    assert any("did you mean 'note'" in hint for hint in typos), typos
    assert "Note about the socket." in str(config_schema())
    assert "note" in SOCKET_FIELDS, "the designer can set it"
