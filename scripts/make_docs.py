"""Write the generated parts of the documentation: ``python scripts/make_docs.py``.

The script generates pages and parts of pages below docs/, pictures, tests of the gallery, the cheat sheet, the types
of the page's messages, the schema in config/, and the copy of config/default.json in the package. ``--check`` writes
nothing and fails if a generated file is out of date.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from pathlib import Path
from textwrap import fill

from make_cheatsheet import SOURCE, sheet
from make_messages import TARGET as MESSAGES
from make_messages import messages_page
from make_walk import calls_of, walk
from materia_nb import Workbench
from materia_nb.agents import Turn
from materia_nb.cast.gallery import Card, gallery
from materia_nb.cast.repairs import ACTIONS, FAILURE_KINDS, OTHER
from materia_nb.cast.views.loadout_views import ExploreView
from materia_nb.cast.views.status import overlay_of
from materia_nb.display.graph_parts import CastOverlay
from materia_nb.display.svg import graph_svg
from materia_nb.engine import events
from materia_nb.loadout.design.document import OPERATIONS
from materia_nb.loadout.fields import FieldRow
from materia_nb.loadout.json_schema import config_schema
from materia_nb.loadout.models import MODELS
from materia_nb.loadout.report import PROBLEM_CODES
from materia_nb.loadout.rules import HINT_CODES
from materia_nb.magics import verbs as _verbs  # noqa: F401 - importing it registers the verbs
from materia_nb.magics.registry import FAMILIES, VERBS, Argument, Verb, groups, subverbs
from materia_nb.widgets.cast_parts import standalone_names

ROOT = Path(__file__).resolve().parent.parent
FORMAT = Path("docs/loadout-format.md")
MAGICS = Path("docs/commands.md")
PROBLEMS = Path("docs/problems-and-hints.md")
RUN_DIRECTORY = Path("docs/run-directory.md")
PANEL = Path("docs/panel.md")
RECOVERY = Path("docs/change-and-recover.md")
DESIGNING = Path("docs/designing.md")
GALLERY = Path("docs/gallery.md")
GLOSSARY = Path("docs/glossary.md")
LOADOUTS = Path("docs/loadouts.md")
TERMS = Path("scripts/glossary.toml")
ARCHITECTURE = Path("docs/architecture.md")
CARDS = Path("materia_nb/gallery")
IMAGES = Path("docs/images")
CHEATSHEET = Path("materia_nb/cheatsheet")
RULES_IN_SHORT = ROOT / SOURCE
PICTURE = IMAGES / "plan-build-eval.svg"
SCHEMA = Path("config/schema.json")
BUNDLED = Path("materia_nb/loadout/bundled/default.json")
COMMAND = "python scripts/make_docs.py"
_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

MAGICS_HEAD = f"""\
<!-- Generated from the registry of verbs by `{COMMAND}`: change the verbs, not this file. -->
# Commands

Look up a command of `%materia`. Each block shows the form of a command, then an example. Most commands also exist
[in a terminal](command-line-and-ci.md), as `materia COMMAND`.

```ipython
%load_ext materia_nb
%materia help why
```

- Commands work on the workbench in the variable `wb` and on its current cast. The first command creates `wb`;
  `%load_ext` alone does not. A command returns its view, so `x = %materia state` works.
- Only `$name` in a line is replaced, by the value of a variable. Quotes keep words together. After `--` no word is an
  option. An argument that ends with `...` takes the rest of the line.
- `%%materia COMMAND` takes the cell as text. Write a request that ends with `?` in quotes or in such a cell.
- Tab completes commands, options, names and files.
- Arguments in brackets can be left out. These have the same meaning in several commands:
"""
COMMON_ARGUMENT_USES = 3
"""Minimum number of commands that share an argument so that it is described once, at the top of the page."""


def main(arguments: Sequence[str]) -> int:
    """Write the generated parts, or list the outdated parts with ``--check``. Return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing, and fail if a generated file is out of date"
    )
    check = parser.parse_args(arguments).check
    stale = 0
    for path, content in generated().items():
        target = ROOT / path
        if target.exists() and target.read_text(encoding="utf-8") == content:
            continue
        stale += 1
        if check:
            print(f"{path} is out of date: run `{COMMAND}`", file=sys.stderr)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")
            print(f"wrote {path}")
    return 1 if check and stale else 0


def generated() -> dict[Path, str]:
    """Return the content of each generated file, by its path in the project."""
    return {
        FORMAT: with_tables((ROOT / FORMAT).read_text(encoding="utf-8"), config_fields()),
        PROBLEMS: with_codes((ROOT / PROBLEMS).read_text(encoding="utf-8")),
        MAGICS: magics_page(),
        RUN_DIRECTORY: with_events((ROOT / RUN_DIRECTORY).read_text(encoding="utf-8")),
        PANEL: with_parts((ROOT / PANEL).read_text(encoding="utf-8")),
        DESIGNING: with_operations((ROOT / DESIGNING).read_text(encoding="utf-8")),
        RECOVERY: with_failures((ROOT / RECOVERY).read_text(encoding="utf-8")),
        LOADOUTS: with_loadouts((ROOT / LOADOUTS).read_text(encoding="utf-8")),
        GLOSSARY: glossary_page(),
        ARCHITECTURE: with_walk((ROOT / ARCHITECTURE).read_text(encoding="utf-8")),
        **loadout_pictures(),
        **gallery_pages(),
        **gallery_tests(),
        **cheatsheet(),
        MESSAGES: messages_page(COMMAND),
        PICTURE: picture(),
        SCHEMA: json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n",
        BUNDLED: (ROOT / "config" / "default.json").read_text(encoding="utf-8"),
    }


# -- the events of the journal ---------------------------------------------------------


def with_events(page: str) -> str:
    """Insert the table of events between its markers."""
    lines = ["| type | data | when |", "|---|---|---|"]
    for event in events.EVENTS.values():
        # The text above the table describes the lane and the two words that stand for several fields.
        words = ["visit"] if "about" in event.annotations else []
        described = {"lane", "visit"} if words else {"lane"}
        if issubclass(event, events.Output):
            words.append("output")
            described |= events.Output.annotations.keys()
        names = [f"`{field.key}`" for field in events.FIELDS[event].values() if field.name not in described]
        when = (event.__doc__ or "").splitlines()[0].removesuffix(".").replace("``", "`")
        lines.append(f"| `{event.type}` | {', '.join(words + names) or 'nothing'} | {cell(when)} |")
    return _PART.sub(lambda match: "\n".join([f"{match[1]}", *lines, "", match[3]]), page)


# -- the walk through the code ---------------------------------------------------------


def with_walk(page: str) -> str:
    """Insert the path of an answer through the code, traced from a real cast, between its markers."""
    with bench() as wb:
        cast = wb.cast("a short guide", loadout="Plan-Build-Eval", agents={"*": _answer})
        cast.run(steps=5)
        calls = calls_of(lambda: (cast.step(), cast.why()._repr_mimebundle_()))
    return _PART.sub(lambda match: "\n".join([f"{match[1]}", *walk(calls), "", match[3]]), page)


# -- the parts of the panel ------------------------------------------------------------


def with_parts(page: str) -> str:
    """Insert the names of the panel's parts that can be shown separately between their markers."""
    names = ", ".join(f"`{name}`" for name in standalone_names())
    return _PART.sub(lambda match: f"{match[1]}{names}\n{match[3]}", page)


# -- the operations of a design -----------------------------------------------------------


def with_operations(page: str) -> str:
    """Insert the design operations with their parameters between their markers."""
    lines = ["", "```text"]
    for name, operation in OPERATIONS.items():
        parameters = ", ".join(
            f"{parameter.name}=" if parameter.kind is parameter.KEYWORD_ONLY else parameter.name
            for parameter in operation.parameters.values()
        )
        lines.append(f"{name}({parameters})")
    lines.append("```")
    return _PART.sub(lambda match: "\n".join([match[1].rstrip(), *lines, "", match[3]]), page)


# -- failures ------------------------------------------------------------------------------


def with_failures(page: str) -> str:
    """Insert the actions after a failure, and the kinds of failure that offer each action, between their markers."""
    descriptions = {
        "materia": "MATERIA",
        "socket": "SOCKET",
        "folders": "folder:DIR",
        "more": "N more allowed",
        "before": "STEP",
    }
    acts = ["| on the button | does | verbs | offered where |", "|---|---|---|---|"]
    acts += [
        f"| {act.label.format(**descriptions)} | {cell(act.does.format(**descriptions))} | {act.verbs.format(**descriptions)} | {act.when} |"
        for act in ACTIONS.values()
    ]
    kinds_by_acts = defaultdict(list)
    for name, kind in FAILURE_KINDS.items():
        kinds_by_acts[kind.acts, kind.note].append(f"`{name}` ({kind.description})")
    kinds_by_acts[OTHER.acts, OTHER.note].append("any other kind")
    kinds = ["| kinds | the likeliest ways to continue |", "|---|---|"]
    for (acts_of_kind, note), names in kinds_by_acts.items():
        labels = ", ".join(ACTIONS[act].label.format(**descriptions) for act in acts_of_kind[:2])
        kinds.append(f"| {', '.join(names)} | {labels}{note and f' ({note})'} |")
    tables = {"acts": acts, "kinds": kinds}
    return _PART.sub(lambda match: "\n".join([match[1], *tables[match[2]], "", match[3]]), page)


# -- the tables of the format ---------------------------------------------------------


def config_fields() -> list[FieldRow]:
    """Return every field of the loadout format, grouped by object."""
    return [row for model in MODELS for row in model.rows.values()]


def with_tables(page: str, rows: Iterable[FieldRow]) -> str:
    """Insert the table of each model between its markers. Each model must have markers, and each marker a model.

    The fields that both kinds of materia have are in one table, and models with the same table share it.
    """
    rows_by_model = {model: list(group) for model, group in groupby(rows, key=lambda row: row.model)}
    kinds = ("AgentMateria", "UtilityMateria")
    agent_lines, utility_lines = (set(map(table_line, rows_by_model[kind])) for kind in kinds)
    shared = agent_lines & utility_lines
    rows_by_model["Materia"] = [row for row in rows_by_model[kinds[0]] if table_line(row) in shared]
    for kind in kinds:
        rows_by_model[kind] = [row for row in rows_by_model[kind] if table_line(row) not in shared]
    tables: dict[str, str] = {}
    for model, model_rows in rows_by_model.items():
        if (table := field_table(model_rows)) not in tables.values():
            tables[model] = table
    part_names = [match[2] for match in _PART.finditer(page)]
    if sorted(part_names) != sorted(tables):
        missing, unknown = sorted(set(tables) - set(part_names)), sorted(set(part_names) - set(tables))
        sys.exit(f"{FORMAT}: no markers for {missing}, no model for {unknown}, or duplicate markers")
    return _PART.sub(lambda match: f"{match[1]}{tables[match[2]]}{match[3]}", page)


def with_codes(page: str) -> str:
    """Insert links to the sections of all codes of findings between their markers."""
    codes = {"problems": PROBLEM_CODES, "hints": HINT_CODES}
    return _PART.sub(
        lambda match: f"{match[1]}\n{', '.join(f'[`{code}`](#{code})' for code in codes[match[2]])}\n\n{match[3]}", page
    )


def field_table(rows: Sequence[FieldRow]) -> str:
    """Return a table of fields, followed by the fields that are reserved for other tools or accepted without effect."""
    lines = ["| field | what it looks like | what it means | rules |", "|---|---|---|---|"]
    reserved = [row for row in rows if row.description.startswith("Reserved for ")]
    lines += [table_line(row) for row in rows if row.ignored_reason is None and row not in reserved]
    if len(lines) == 2:
        lines.clear()
    if reserved:
        names = ", ".join(f"`{row.field}`" for row in reserved)
        lines += ["", f"Reserved for the reference engine and its editor: {names}."]
    ignored = [row for row in rows if row.ignored_reason is not None]
    if ignored:
        lines += ["", "Accepted, without effect:", ""] if lines else ["Accepted, without effect:", ""]
        lines += [f"- `{row.field}`: {row.ignored_reason}." for row in ignored]
    return "\n".join(["", *lines, "", ""])


def table_line(row: FieldRow) -> str:
    """Return the line of a field in its table."""
    return f"| `{row.field}` | {cell(row.shape)} | {cell(row.description)} | {rule_links(row.rules)} |"


def rule_links(rules: Iterable[str]) -> str:
    """Return links to the paragraphs of the rules."""
    return ", ".join(f"[{rule}](rules.md#{rule.lower()})" for rule in rules)


def paragraph(text: str) -> str:
    """Return the text wrapped at 120 characters."""
    return fill(text, 120, break_long_words=False, break_on_hyphens=False)


def cell(text: str) -> str:
    """Return the text escaped for a table cell."""
    return " ".join(text.split()).replace("|", "\\|")


# -- the magics -----------------------------------------------------------------------


def magics_page() -> str:
    """Return the reference of the verbs, grouped and in the order of the help."""
    uses = Counter(argument_line(argument) for verb in VERBS.values() for argument in verb.arguments)
    common = [line for line, count in uses.items() if count >= COMMON_ARGUMENT_USES]
    parts = [MAGICS_HEAD, "\n".join(["| argument | meaning |", "|---|---|", *common, ""])]
    for title, words in groups().items():
        parts.append(f"## {title}\n")
        parts += [word_section(word, common) for word in words]
    return "\n".join(parts)


def word_section(word: str, common: Sequence[str]) -> str:
    """Return the section of all verbs that begin with a word."""
    parts = [verb_section(VERBS[word], common)] if word in VERBS else [f"### {word}\n\n{FAMILIES[word]}\n"]
    return "\n".join([*parts, *(verb_section(VERBS[f"{word} {second}"], common) for second in subverbs(word))])


def verb_section(verb: Verb, common: Sequence[str]) -> str:
    """Return the section of one verb: summary, usage with an example, and the arguments that are not common."""
    usage = [verb.usage]
    if verb.cell == "may":
        usage.append(f"%%materia {verb.name}    with the text in the cell")
    example = [] if verb.example == verb.usage else ["", verb.example]
    lines = [f"### {verb.name}", "", verb.summary, "", "```text", *usage, *example, "```", ""]
    rows = [line for line in map(argument_line, verb.arguments) if line not in common]
    if rows:
        lines += ["| argument | meaning |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def argument_line(argument: Argument) -> str:
    """Return the row of an argument in a table."""
    return f"| `{argument.name}` | {cell(argument.help)} |"


# -- the glossary ---------------------------------------------------------------------

GLOSSARY_HEAD = f"""\
<!-- Generated from {TERMS.as_posix()} by `{COMMAND}`: change the terms, not this file. -->
# Glossary

Look up a term of Materia NB. Each entry links to the page that explains it.
"""


def glossary_page() -> str:
    """Return the glossary page: each term with its definition and a link to the page that explains it."""
    terms = tomllib.loads((Path(__file__).parent / TERMS.name).read_text(encoding="utf-8"))
    anchors = {term.lower(): f"#{term.lower().replace(' ', '-')}" for term in terms}

    def link(match: re.Match[str]) -> str:
        term = match[1].lower()
        return f"[{match[1]}]({anchors.get(term) or anchors[term.removesuffix('s')]})"

    parts = [GLOSSARY_HEAD]
    for term, entry in terms.items():
        text = re.sub(r"\[([^\]]+)\](?!\()", link, entry["text"])
        definition = paragraph(f"{text} See {entry['see']}.")
        parts.append(f"## {term}\n\n{definition}\n")
    return "\n".join(parts)


# -- the bundled loadouts --------------------------------------------------------------


def with_loadouts(page: str) -> str:
    """Insert the sections of the bundled loadouts between their markers: the picture and the description of each."""
    config = json.loads((ROOT / "config" / "default.json").read_text(encoding="utf-8"))
    sections = []
    for name, loadout in config["loadouts"].items():
        materia_names = ", ".join(socket["materia"] for socket in loadout["sockets"].values())
        sections += [f"## {name}", f"![{materia_names}](images/{name.lower()}.svg)", paragraph(loadout["description"])]
    return _PART.sub(lambda match: "\n\n".join([match[1], *sections, match[3]]), page)


# -- the cheat sheet ------------------------------------------------------------------


def cheatsheet() -> dict[Path, str]:
    """Return the cheat sheet as SVG and as PDF. The documentation shows the copy in the package."""
    svg, pdf = sheet(RULES_IN_SHORT.read_text(encoding="utf-8"))
    return {CHEATSHEET / "cheatsheet.svg": svg, CHEATSHEET / "cheatsheet.pdf": pdf}


# -- the gallery ----------------------------------------------------------------------

GALLERY_HEAD = f"""\
<!-- Generated from materia_nb/gallery/ by `{COMMAND}`: change the cards, not this file. -->
# The gallery

Start a loadout from one of fourteen patterns, or diagnose ten classic mistakes. Each card has a small loadout, answers for a
cast of it, points to look at, and tests.

```ipython
%load_ext materia_nb
%materia gallery
%materia gallery critic-loop
```

The second command writes the card as a notebook next to yours, `critic-loop.ipynb`, to run and change. In Python:

```python
import materia_nb

wb = materia_nb.Workbench()
card = wb.gallery()["critic-loop"]
wb.load(card.document)
cast = wb.cast(card.request, agents={{"*": card.answers}})
assert cast.run() == "complete"
for step in cast.steps:
    print(step.socket, step.output)
```

```text
Socket-1 Come to our party!
Socket-2 {{"satisfied":false,"context":"It says neither when nor where."}}
Socket-1 Come to our party on 3 July, at 6 in the garden.
Socket-2 {{"satisfied":true}}
```

The tests of a card (`card.cases`) cover this cast and each of its endings. `pytest --pyargs materia_nb.gallery` runs all
tests.
"""


def gallery_pages() -> dict[Path, str]:
    """Return the page of the gallery and its pictures."""
    cards, parts = gallery(), [GALLERY_HEAD]
    parts += ["## Patterns\n", *map(pattern_section, cards.of("pattern"))]
    parts += ["## Classic mistakes\n", *map(mistake_section, cards.of("mistake"))]
    graphs = {IMAGES / f"gallery-{card.name}.svg": card.graph for card in cards.values()}
    pictures = {path: graph_svg(graph, CastOverlay()) + "\n" for path, graph in graphs.items() if graph is not None}
    return {GALLERY: "\n".join(parts), **pictures}


def gallery_tests() -> dict[Path, str]:
    """Return the test cases of each gallery card: one for each possible end of the cast, and one for all routes."""
    cards = {}
    with tempfile.TemporaryDirectory() as folder:
        for card in gallery().values():
            if card.graph is None:
                continue
            card_folder = Path(folder, card.name)
            explored = ExploreView(card.graph, range(4))
            for path in explored.save_tests(card_folder, follows=card_folder.parent / f"{card.name}.json"):
                cards[CARDS / card.folder.name / card.name / path.name] = path.read_text(encoding="utf-8")
    return cards


def pattern_section(card: Card) -> str:
    """Return the section of a pattern: picture, purpose, and points to look at."""
    look = "".join(f"- {line}\n" for line in card.look)
    return f"### {card.name}\n\n{card.purpose}\n\n![{card.title}](images/gallery-{card.name}.svg)\n\n{look}"


def mistake_section(card: Card) -> str:
    """Return the section of a mistake: symptom, picture, points to look at, and the folded diagnosis."""
    parts = [f"### {card.name}", f"*{card.purpose}*"]
    if card.graph is not None:
        parts.append(f"![{card.title}](images/gallery-{card.name}.svg)")
    parts.append("\n".join(f"- {line}" for line in card.look))
    if card.diagnosis is not None:
        why = f"`{card.diagnosis.code}`, at {card.diagnosis.socket}: {card.diagnosis.why}"
        parts.append(f"<details>\n<summary>What is wrong</summary>\n\n{why}\n\n</details>")
    return "\n\n".join(parts) + "\n"


# -- the pictures ---------------------------------------------------------------------


@contextmanager
def bench() -> Iterator[Workbench]:
    """Yield a workbench that does not use the user's loadouts."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MATERIA_PROFILE_DIR"] = folder
        os.environ.pop("MATERIA_CONFIG", None)
        os.environ.pop("PI_MATERIA_PROFILE_DIR", None)
        with closing(Workbench(folder)) as wb:
            yield wb


def loadout_pictures() -> dict[Path, str]:
    """Return the pictures of the bundled loadouts before a cast, by path. The picture in the README is not included."""
    with bench() as wb:
        paths = {name: IMAGES / f"{name.lower()}.svg" for name in wb.loadouts}
        return {
            path: graph_svg(wb.graph(name), CastOverlay()) + "\n" for name, path in paths.items() if path != PICTURE
        }


def picture() -> str:
    """Return the README's picture: Plan-Build-Eval after a cast in which one item was reworked."""
    with bench() as wb:
        cast = wb.cast("a short guide", loadout="Plan-Build-Eval", agents={"*": _answer})
        cast.run()
        return graph_svg(cast.graph, overlay_of(cast.now)) + "\n"


def _answer(turn: Turn) -> object:
    if turn.materia_id == "Plan":
        items = [("Outline", "Three headings."), ("Draft", "A paragraph under each.")]
        return {"workItems": [{"title": title, "context": context} for title, context in items]}
    if turn.materia_id == "Eval":
        return {"satisfied": turn.visit > 1, "context": "There are four headings."}
    return {"satisfied": True} if turn.materia_id == "Maintain" else "done"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
