"""All that is said of loadouts on the way to right ones, of what they are resolved to, and of what designs make of them."""

from __future__ import annotations

import copy
import itertools
import json
import random

from builders import asks
from loadout_samples import RICH, edge, looped, route
from materia_nb.errors import MateriaError
from materia_nb.loadout import build_graph, check_config
from materia_nb.loadout.compose import compose
from materia_nb.loadout.config_files import line_of
from materia_nb.loadout.design import OPERATIONS, SOCKET_FIELDS, Design
from materia_nb.loadout.design.forms import form_of, read_field
from materia_nb.loadout.design.saving import rewrite_json
from materia_nb.loadout.design.ways import MISSING
from materia_nb.loadout.models import MODELS
from records import ROOT, WRONG, as_line, changed, check_record, examples, places, written
from stream_helpers import streams_config


def right():
    """The configs that every record starts from."""
    whole = looped({"exits": [route("Socket-3", "satisfied", "Socket-4")]})
    return [whole, streams_config(), RICH, *examples("good").values()]


def wrong(seed, count):
    """Configs with one fault or two, each of which is ``count`` times made of a right one."""
    for document in right():
        rng = random.Random(
            f"{seed} {as_line(document)}"
        )  # so that one more example changes nothing at the others
        for _ in range(count):
            made = changed(document, rng)
            yield changed(made, rng) if rng.random() < 0.3 else made


def each_wrong(document, seed, count):
    """A config with each of its values in turn replaced by ``count`` wrong ones, and left out."""
    rng = random.Random(seed)
    for place in range(len(list(places(document)))):
        for value in (MISSING, *rng.sample(WRONG, count)):
            made = copy.deepcopy(document)
            holder, key = list(places(made))[place]
            if value is MISSING:
                del holder[key]
            else:
                holder[key] = copy.deepcopy(value)
            yield made


def tried(function, *given, **named):
    """What is returned, or what the error says, where, and what to do."""
    try:
        return function(*given, **named)
    except MateriaError as error:
        return error


def said(error):
    return f"{error.kind} | {error.where} | {error} | {error.hint}"


def test_findings():
    def lines():
        whole = [*each_wrong(RICH, 12, 2), *each_wrong(streams_config(), 13, 2)]
        for document in [*examples().values(), *wrong(1, 4), *whole]:
            report = check_config(document)
            for one in (*report.problems, *report.hints):
                mend = f" | {written(one.mend)}" if one.mend is not None else ""
                yield f"{one.severity} {one} | {one.hint}{mend}"

    check_record("findings", lines())


def test_graphs():
    def lines():
        cast = [
            json.loads(line)["config"] for line in (ROOT / "tests/vectors/cast.jsonl").open(encoding="utf-8")
        ]
        for document in [*examples().values(), *cast, *wrong(2, 5)]:
            for name in document["loadouts"] if isinstance(document.get("loadouts"), dict) else ():
                graph = tried(build_graph, document, name)
                if isinstance(graph, MateriaError):
                    continue
                for part in (*graph.sockets.values(), *graph.loops.values(), *graph.derived):
                    yield written(part)
                yield written([graph.limits, graph.budget, graph.consumers, graph.regions, graph.prices])

    check_record("graphs", lines())


_GIVEN = {
    "str": ("Socket-1", "Socket-2", "Socket-3", "Socket-4", "L", "parts", "New", "P", "U", "end", "x y"),
    "str | None": ("Socket-1", "Socket-3", "Socket-4", "L", "M", "end", "always", "again", None, ""),
    "int": (0, 1, 2, 7, -1),
    "int | None": (None, 0, 1, 3),
    "JSON": (None, "json", "text", 3, {"x": "$.context"}, ["a"], True, "", "state.x", MISSING),
    "Iterable[str]": (("Socket-1",), ("Socket-2", "Socket-3"), ("Socket-2", "Nowhere"), ("Socket-4",), ()),
    "_ListSource | None": ("consumes", "iterator", None),
    "Mapping[str, JSON] | None": (None, {"items": "state.x"}, {"items": "state.rows", "as": "row"}),
    "str | Mapping[str, JSON] | None": (None, "Socket-1", {"from": "Socket-1", "output": "rows"}),
    "tuple[float, float] | None": ((3, 1), (0, 0), None),
    "Mapping[str, tuple[float, float] | None]": ({"Socket-1": (1, 2), "Socket-2": None}, {}, {"New": (0, 0)}),
    "Mapping[str, JSON]": (
        {},
        {"sockets": {"Socket-1": asks(edge("Socket-1"), edge("end", "satisfied"))}},
        {"sockets": {"Socket-2": asks(edge("Socket-3")), "Socket-3": {"materia": "P", "foreach": {"items": "x"}}},
         "layout": {"sockets": {"Socket-2": {"x": 1, "y": 2}}}},
    ),
    "when": ("always", "satisfied", "not_satisfied", "failed", "never"),
    "materia": ("P", "G", "U", "Plan", "Nobody"),
    "kind": ("agent", "utility", "thing"),
    "field": (*SOCKET_FIELDS, "description", "note", "prompt", "command", "consumes", "iterator", "edges"),
    "source": ("Socket-1", "Socket-2", "Socket-3", "Socket-4"),
    "to": ("Socket-1", "Socket-2", "Socket-4", "end", "Nowhere"),
    "loop": ("L", "parts", "M"),
}  # fmt: skip
_GIVEN |= {"condition": _GIVEN["when"], "target": _GIVEN["to"]}
"""What operations are given, by the type of a parameter or, for some of their names, by the name."""


def arguments(operation, rng):
    for name, parameter in operation.parameters.items():
        kind = parameter.annotation
        pool = _GIVEN[name] if name in _GIVEN and kind.startswith("str") else _GIVEN[kind]
        yield name, rng.choice(pool)


def test_operations():
    def lines():
        rng = random.Random(3)
        for document in right()[:30]:
            name = next(iter(document["loadouts"]))
            design = Design(name, document["loadouts"][name], document)
            for operation in 2 * list(OPERATIONS.values()):
                done = tried(getattr(design, operation.name), **dict(arguments(operation, rng)))
                if isinstance(done, MateriaError):
                    yield f"{operation.name}: {said(done)}"
                    continue
                yield f"{operation.name}: {done} {as_line(design.patch() + design.materia_patch())}"
                if design.steps and rng.random() < 0.8:
                    design.undo()

    check_record("operations", lines())


def test_mends():
    def lines():
        for document in [*examples("bad").values(), *itertools.islice(wrong(4, 2), 60)]:
            name = (
                next(iter(document["loadouts"]), None) if isinstance(document.get("loadouts"), dict) else None
            )
            if name is None:
                continue
            design = Design(name, document["loadouts"][name], document)
            for one, how in design.mends().items():
                yield f"{one.code} {one.source}: {how.label} {'?' if how.suggestion else ''} {how.words}"
            yield as_line([tried(design.mend_all), design.patch()])

    check_record("mends", lines())


def test_texts_of_saved_designs():
    def lines():
        rng = random.Random(5)
        for document, layout in zip(right()[:40], itertools.cycle(_LAYOUTS)):
            text = json.dumps(document, **layout)
            for _ in range(3):
                yield rewrite_json(text, changed(document, rng))

    check_record("saved", lines())


_LAYOUTS = ({"indent": 2}, {"indent": 4}, {}, {"indent": "\t"}, {"separators": (",", ":")})


def test_forms():
    def lines():
        rng = random.Random(6)
        names = {"socket id or end": ["Socket-1", "end"], "materia id": ["Plan"]}
        for model in MODELS:
            for row in form_of(model, {}, names):
                yield f"{model.__name__} {written(row)}"
                for typed in ("", "x", "3", "-1", "2.5", "1e3", "[1]", "{}", "a\nb", " y ", True, 7, None):
                    value = tried(read_field, model, row.name, typed)
                    yield f"{row.name} {typed!r}: {said(value) if isinstance(value, MateriaError) else as_line(value)}"
            for _ in range(5):
                raw = {row.name: rng.choice(_RAW) for row in form_of(model, {})}
                yield from (f"{model.__name__} {written(row)}" for row in form_of(model, raw, names))

    check_record("forms", lines())


_RAW = (None, "x", "a\nb", 3, 1.5, True, ["a", "b"], ["a", 1], {"x": 1}, [], "json", "end", "")


def test_compositions():
    def lines():
        rng = random.Random(8)
        known = [*examples("good").values(), *itertools.islice(wrong(9, 1), 30)]
        for _ in range(150):
            one, other = rng.sample(known, 2)
            given = {
                "loadouts": {
                    "A": next(iter(one.get("loadouts", {}).values()), {})
                    if isinstance(one.get("loadouts"), dict)
                    else {},
                    "B": next(iter(other.get("loadouts", {}).values()), {})
                    if isinstance(other.get("loadouts"), dict)
                    else {},
                },
                "materia": {**as_dict(one.get("materia")), **as_dict(other.get("materia"))},
            }
            made = tried(compose, copy.deepcopy(given), ["A", "B"])
            yield said(made) if isinstance(made, MateriaError) else written(made)

    check_record("compositions", lines())


def as_dict(value):
    return value if isinstance(value, dict) else {}


def test_lines_of_what_is_found():
    text = json.dumps(RICH, indent=1)
    sources = {one.source for document in each_wrong(RICH, 14, 1) for one in check_config(document).problems}

    def lines():
        for source in [
            *sorted(sources),
            "",
            "nowhere",
            "Build.edges[9].to",
            "loops.L.exits[1].x.y",
            "x[0]",
            "materia.P.tools[7]",
        ]:
            yield f"{source}: {line_of(text, source, 'T')} {line_of(text, source)}"

    check_record("lines", lines())
