"""Store the results of the other workbench methods, or the errors with which they are refused."""

from __future__ import annotations

import json
import shutil

import cast_helpers as h
import shown_texts
from builders import at, edge
from materia_nb import Workbench
from materia_nb.cast.breakpoint import read_breakpoints
from materia_nb.cast.cases import read_case
from materia_nb.cast.formatting import format_cost, relative_time, search_casts
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import MISSING
from materia_nb.loadout import build_graph

LOADOUT = {
    "entry": "Socket-1",
    "sockets": {"Socket-1": at("Build", edge("Socket-2")), "Socket-2": at("Tell")},
}
BROKEN = {"entry": "Socket-1", "sockets": {"Socket-1": at("Nobody", edge("Nowhere"))}}


def asked(requests, said=lambda value: value):
    """Yield the result of each request, or the error with which it is refused."""
    for words, act in requests.items():
        try:
            gave = said(act())
        except MateriaError as error:
            yield words, f"{error.kind}: {error}"
        else:
            yield (
                words,
                gave if hasattr(gave, "as_json") or isinstance(gave, list | dict | str) else repr(gave),
            )


def test_every_request_about_loadouts_succeeds_or_is_clearly_refused(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    one, other = (
        h.loop_config(),
        {"loadouts": {"Other": LOADOUT}, "materia": {"Build": h.agent("b"), "Tell": h.agent("t")}},
    )
    (project / "one.json").write_text(json.dumps(one))
    (project / "other.yaml").write_text(json.dumps(other))
    (project / "bad.json").write_text("{")
    (project / "empty.json").write_text("{}")
    bench = Workbench(project, bundled=False)
    wb = bench.loadouts
    designs = {}

    def design(*given, **named):
        made = wb.design(*given, **named)
        designs[made.name] = made
        return [made.name, str(made.home), str(made.changed)]

    def changed(name):
        designs[name].add_socket("Build")
        return designs[name].changed

    requests = {
        "nothing is there": lambda: wb,
        "none is chosen": wb.show,
        "a bad file": lambda: wb.load("bad.json"),
        "an empty file": lambda: wb.load("empty.json"),
        "no file": lambda: wb.load("none.json"),
        "load": lambda: wb.load("one.json"),
        "load another": lambda: wb.load("other.yaml"),
        "gone": lambda: wb.use("T"),
        "load it again": lambda: wb.load("one.json"),
        "unknown": lambda: wb.use("Tt"),
        "key": lambda: [wb["T"], str("X" in wb), str(len(wb))],
        "define": lambda: wb.define("Mine", LOADOUT),
        "define with materia": lambda: wb.define("Yours", {**LOADOUT, "materia": {"Extra": h.agent("e")}}),
        "define a broken one": lambda: wb.define("Bad", BROKEN),
        "and another": lambda: wb.define("Mine", BROKEN),
        "as text": lambda: wb.define("Text", json.dumps(LOADOUT)),
        "as no object": lambda: wb.define("List", "[]"),
        "with odd materia": lambda: wb.define("Odd", {**LOADOUT, "materia": []}),
        "with a bad name": lambda: wb.define("9", LOADOUT),
        "with a keyword": lambda: wb.define("class", LOADOUT),
        "a change": lambda: wb.define("T", {"description": "another"}),
        "chosen": lambda: [str(wb.chosen), str(wb.refused), repr(wb)],
        "use": lambda: wb.use("T"),
        "check": wb.check,
        "check a broken one": lambda: wb.check("Bad"),
        "graph of a broken one": lambda: wb.graph("Bad"),
        "picture of a broken one": lambda: wb.show("Bad").picture,
        "materia": lambda: wb.define_materia("Another", h.agent("a")),
        "bad materia": lambda: wb.define_materia(" ", h.agent("a")),
        "utility": lambda: wb.define_utility("My util", "print('{}')", generator=True, timeoutMs=5).name,
        "the same again": lambda: wb.define_utility("My util", "print('{}')").name,
        "one like it": lambda: wb.define_utility("My-util", "print('{}')"),
        "a utility that is no Python": lambda: wb.define_utility("Bad util", "print("),
        "of another form": lambda: wb.define_utility("Bad util", "", parse="xml"),
        "definitions": lambda: sorted(wb.definitions()[0]),
        "drafts": lambda: list(map(str, wb.drafts())),
        "no draft": lambda: design("T", draft=True),
        "design": lambda: design("T"),
        "design nothing": lambda: design("Tt"),
        "new with a name that is there": lambda: design("T", new=True),
        "new with a bad name": lambda: design("9", new=True),
        "new": lambda: design("Fresh", new=True),
        "one of the notebook": lambda: design("Yours"),
        "save unchanged": lambda: wb.save(designs["T"]),
        "change": lambda: changed("T"),
        "save": lambda: wb.save(designs["T"]),
        "save into another file": lambda: wb.save(designs["T"], "third.json"),
        "save nowhere": lambda: wb.save(designs["T"], "x/y.zip"),
        "save an empty one": lambda: wb.save(designs["Fresh"]),
        "save it anyway": lambda: wb.save(designs["Fresh"], anyway=True),
        "change that of the notebook": lambda: changed("Yours"),
        "save it there": lambda: wb.save(designs["Yours"]),
        "save it in a file": lambda: wb.save(designs["Yours"], "fourth.json"),
        "copy": lambda: wb.copy("T"),
        "copy again": lambda: wb.copy("T"),
        "copy under a name": lambda: wb.copy("Mine", "Named", materia=True),
        "copy with a bad name": lambda: wb.copy("T", "9"),
        "copy nothing": lambda: wb.copy("none"),
        "import": lambda: wb.import_graph("flowchart TD\nA[Plan] --> B{Good?}\nB -->|yes| C\nB -->|no| A"),
        "import nothing": lambda: wb.import_graph("no graph"),
        "reload": wb.load,
        "all": lambda: wb,
    }
    shown_texts.matches("requests-loadouts", asked(requests))
    bench.close()


def test_every_request_about_agents_and_pins_succeeds_or_is_clearly_refused(tmp_path):
    bench = Workbench(tmp_path / "project", bundled=False)
    document = h.loop_config()
    document["materia"]["U"] = h.python("print('{}')", parse="json")
    document["loadouts"]["Runs"] = {"entry": "Socket-1", "sockets": {"Socket-1": at("U")}}
    bench.load(document)
    for name, one in h.loop_agents(2).items():
        bench.agent(name, one)
    recording = tmp_path / "casts.json"
    requests = {
        "unknown": lambda: bench.agent("Nobody", "person"),
        "no agent": lambda: bench.agent("Plan", 7),
        "utility": lambda: bench.agent("U", "person"),
        "known": lambda: [str(bench.agents.knows(one)) for one in ("Plan", "Socket-1", "Nobody", "*")],
        "needs": lambda: bench.agents.require_known_name("Nobody"),
        "needs an agent": lambda: bench.agents.require_agent("U"),
        "no recording": lambda: bench.agents.recorded("none"),
        "pin": lambda: bench.agents.pin("Build", "pinned").words,
        "pin a socket": lambda: bench.agents.pin("Socket-4", {"a": 1}).words,
        "pin nothing": lambda: bench.agents.pin("Socket-9", "x"),
        "pin to nothing": lambda: bench.agents.pin("Build"),
        "pin to no cast": lambda: bench.agents.pin("Build", "recorded:none"),
        "cast": lambda: str(bench.cast("with pins").run()),
        "what it said": lambda: [str(step.output)[:60] for step in bench.current.steps],
        "pins": lambda: [f"{name}: {one.chosen.pin.words} {one.loadout}" for name, one in bench.agents.pins.items()],
        "record": lambda: bench.current.export.recording(recording).name,
        "pin to a recording": lambda: bench.agents.pin("Build", f"recorded:{recording}").words.replace(
            str(tmp_path), ""
        ),
        "pin to a cast": lambda: bench.agents.pin("Build", "recorded:-1").words,
        "unpin": lambda: bench.agents.unpin("Build"),
        "unpin again": lambda: bench.agents.unpin("Build"),
        "agents of a cast": lambda: bench.cast("x", agents={"Nobody": "person"}),
        "pins of a cast": lambda: bench.cast("x", pins={"Nobody": "x"}),
        "two at once": lambda: bench.cast("x", agents={"Tell": "person"}, pins={"Tell": "x"}).pins,
        "no loadout": lambda: bench.cast("x", loadout="none"),
        "no request": lambda: bench.cast(""),
        "link": lambda: bench.link("T", "Runs", request="r").graph.name,
        "link nothing": lambda: bench.link(request="r"),
        "link to an earlier one": lambda: dict(bench.link("T", "Runs", request="r", from_cast="-2").state),
        "all": lambda: bench,
    }
    shown_texts.matches("requests-agents", asked(requests))
    bench.close()


def test_every_request_to_the_store_succeeds_or_is_clearly_refused(tmp_path):
    path = tmp_path / "casts" / "breakpoints.json"
    path.parent.mkdir()
    good = {"kind": "before", "socket": "Socket-1"}
    kept = {"good": [good], "one": good, "odd": [7, good, {"kind": "x"}], "many": [good] * 2000, "null": None}
    path.write_text(json.dumps({"version": 1, "loadouts": kept}))
    shown = []
    for name in (*kept, "none"):
        found, problem = read_breakpoints(path, name)
        shown.append((f"breakpoints {name}", [str(len(found)), problem]))
    for text in ("{", "[]", "{}", '{"loadouts": 7}'):
        path.write_text(text)
        shown.append(
            (f"breakpoints {text}", [str(stored_breakpoint) for stored_breakpoint in read_breakpoints(path, "good")])
        )
    second = 1_700_049_600
    ago = (0, 1, 2, 6, 7, 40, 330, 400, -1, -10)
    shown.append(
        (
            "when",
            [relative_time((second - days * 86_400) * 1000, second).partition(" ")[0] for days in ago],
        )
    )
    shown.append(("no time", [relative_time(one, second) for one in (None, 10**20, -(10**20))]))
    shown.append(("cost", [format_cost(*one) for one in ((None, 0), (0, 0), (0.5, 0), (0.5, 2), (1, 0), (12.345, 1))]))
    bench = Workbench(tmp_path / "project", bundled=False)
    bench.load(h.loop_config())
    for name in ("alpha", "beta"):
        bench.cast(f"request of {name}", agents=h.loop_agents(1)).labels.add(
            name=name, tag=f"tag-{name}", note="noted", verdict="good"
        )
    entries = bench.casts()
    for query in (
        "",
        "alpha",
        "ALPHA request",
        "name:beta",
        "tag:alpha",
        "loadout:t",
        "status:ready",
        "verdict:good",
        "noted",
        "nothing",
        "request:beta name:alpha",
        "x:y",
    ):
        found = [cast.name for cast in search_casts(entries, query)]
        shown.append((f"sought {query}", found))
    done = bench.cast("replayed", agents=h.loop_agents(2, [1]))
    done.run()
    graph = build_graph(h.loop_config())
    requests = {
        "replay in a graph": lambda: done.replay(graph),
        "go on": lambda: done.replay(graph).continue_cast().status,
        "go on with a graph alone": lambda: (
            done.replay(graph._replace(document={})).continue_cast() if hasattr(graph, "_replace") else ""
        ),
        "replay in nothing": lambda: done.replay(7),
        "no such cast": lambda: bench.casts.open("none"),
        "resume": lambda: bench.casts.resume().now.request,
        "frame": lambda: list(done.steps.frame().columns),
        "frame of casts": lambda: [str(one) for one in bench.casts().frame()["request"]],
        "frame of usage": lambda: list(done.usage().frame().columns),
        "test": lambda: done.export.test(path.with_name("case")).name,
        "test again": lambda: done.export.test(path.with_name("case")).name,
        "test that follows": lambda: done.export.test(path.with_name("case-2"), follows=tmp_path / "none.json").name,
        "page": lambda: done.export.page(tmp_path / "page.html").name,
    }
    shown += asked(requests)
    [case] = path.parent.glob("case.*")
    whole = json.loads(case.read_text())
    shown.append(("case", read_case(case).check()))
    for name in whole:
        for how, value in (("without", MISSING), ("odd", 7), ("empty", type(whole[name])())):
            given = {key: one for key, one in whole.items() if key != name} | (
                {} if value is MISSING else {name: value}
            )
            case.write_text(json.dumps(given))
            shown += [(f"case {how} {name}", said) for _, said in asked({"": lambda: read_case(case).check()})]
    for place in range(len(whole.get("answers", []))):
        case.write_text(json.dumps({**whole, "answers": [one for n, one in enumerate(whole["answers"]) if n != place]}))
        shown += [(f"case without answer {place}", said) for _, said in asked({"": lambda: read_case(case).check()})]
    bench.close()
    shutil.rmtree(tmp_path / "project")
    shown_texts.matches("requests-kept", shown)
