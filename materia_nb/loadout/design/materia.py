"""Operations on the materia that a design places: set a field, make a new one."""

from __future__ import annotations

from typing import Final

from materia_nb.errors import did_you_mean
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.design.change import Change, as_json, refused, without
from materia_nb.loadout.facts import Object, as_object, is_text, materia_kind
from materia_nb.loadout.fields import Model, row_named, rows_of
from materia_nb.loadout.models_materia import AgentMateria, UtilityMateria
from materia_nb.loadout.report import shown

_LONGEST_ID: Final = 100
_BEGUN: Final[dict[str, Object]] = {
    "agent": {"prompt": "Say here what it is to do.", "tools": "none"},
    "utility": {
        "type": "utility",
        "command": ["python3", "-c", "import json; print(json.dumps({'satisfied': True}))"],
        "parse": "json",
    },
}
"""What a new materia is at first: as little as can be cast."""


def materia_model(definition: Object) -> type[Model]:
    """Return the model that describes a definition."""
    return UtilityMateria if materia_kind(definition) == "utility" else AgentMateria


def set_materia(document: Object, definitions: Object, id_: str, field: str, value: JSON) -> Change:
    """Set a field of a definition, or take it away with None; see ``Design.set_materia``."""
    if id_ not in definitions:
        raise refused(f"there is no materia {id_!r}", "materia", did_you_mean(id_, definitions))
    raw = as_object(definitions[id_])
    model = materia_model(raw)
    if row_named(model, field) is None:
        hint = did_you_mean(field, rows_of(model))
        raise refused(f"{model.words} has no field {field!r}", f"materia.{id_}.{field}", hint)
    if value is None:
        words = f"removed {field} from {id_}" if field in raw else f"{id_} has no {field}"
        return Change(document, words, {id_: without(raw, field)})
    made = as_json(value, f"materia.{id_}.{field}")
    words = f"set {field} of {id_}" + (f" to {made}" if isinstance(made, str) and len(made) < 40 else "")
    return Change(document, words, {id_: {**raw, field: made}})


def made_materia(document: Object, definitions: Object, id_: str, kind: str) -> Change:
    """Define a new materia; see ``Design.make_materia``."""
    if kind not in _BEGUN:
        raise refused(f"{shown(kind)} is no kind of materia", "materia", did_you_mean(str(kind), _BEGUN))
    if not is_text(id_) or id_ != id_.strip() or len(id_) > _LONGEST_ID or not id_.isprintable():
        hint = f"use some text on one line, at most {_LONGEST_ID} characters"
        raise refused(f"{shown(id_)} cannot be the name of a materia", "materia", hint)
    if id_ in definitions:
        raise refused(
            f"there is a materia {id_!r} already", "materia", "choose another name, or edit that one"
        )
    return Change(document, f"made the {kind} {id_}", {id_: dict(_BEGUN[kind])})
