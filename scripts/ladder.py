"""Measure how often a small local model returns valid answers in each handoff protocol: ``make ladder``.

One socket plans the same requests with each protocol and each prompt form. ``ladder.py 3`` uses only three requests.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from local_model import ROOT, NoLocalModelError, Served, local_model
from materia_nb import Workbench
from materia_nb.agents import ModelAgent
from materia_nb.cast import Cast
from materia_nb.handoff.checks import COPIED_PLACEHOLDERS
from materia_nb.jsonvalue import JSON

LADDER: Final = ROOT / "build" / "ladder"
PROTOCOLS: Final = ("sparse", "envelope", "agent-contract")
FORMS: Final = ("md", "plain")
CONTEXT: Final = 4096
"""Context size of the model in tokens, prompt and answer together."""
MAX_TOKENS: Final = 400
"""Maximum answer length, in tokens. Without a limit, such a small model may not stop."""
SEED: Final = 1
REQUESTS: Final = (
    "write a short guide to bread",
    "plan a walk of a day in the hills",
    "explain tides to a child",
    "tidy a garage",
    "learn ten words of Italian",
    "repair a bicycle tyre",
    "compare two phones",
    "plant tomatoes",
    "teach a dog to sit",
    "write a letter to a landlord",
    "cook dinner for six",
    "describe how a bill becomes law",
    "pack for a week by the sea",
    "paint a small room",
    "choose a book for a birthday",
    "write tests for a calculator",
    "sort a thousand photographs",
    "prepare a talk of five minutes",
    "save water at home",
    "set up a chess club",
)


class ProtocolResult(NamedTuple):
    """The results of one protocol with one prompt form.

    Attributes:
        protocol: the handoff protocol.
        form: the prompt form, ``md`` or ``plain``.
        asked: number of requests.
        fitting: first answers that had the required form, even if placeholders of the form were left in them.
        first: first answers that were accepted.
        last: answers that were accepted after repairs.
        repairs: number of repair turns.
        copied: answers that still contained placeholders of the form.
        overflows: casts that exceeded the context size.
        other: casts that failed for another reason, such as an empty answer or a lost server.
        tokens_in: input tokens of all turns that the server counted.
        tokens_out: output tokens of all turns.
    """

    protocol: str
    form: str
    asked: int
    fitting: int
    first: int
    last: int
    repairs: int
    copied: int
    overflows: int
    other: int
    tokens_in: int
    tokens_out: int


def loadout_of(protocol: str, form: str) -> Mapping[str, JSON]:
    """Return a loadout with one socket that has the given protocol and prompt form."""
    return {
        "entry": "Plan",
        "sockets": {"Plan": {"materia": "Plan", "handoff": protocol, "promptForm": form}},
        "materia": {
            "Plan": {
                "tools": "none",
                "parse": "json",
                "generator": True,
                "prompt": "Split what is requested into two or three work items. Each has a title and a context of one sentence.",
            }
        },
    }


def count_results(protocol: str, form: str, casts: Sequence[Cast]) -> ProtocolResult:
    """Return the counted results of the casts with one protocol and prompt form."""
    turns = [[turn for step in cast.steps for turn in step.turns] for cast in casts]
    readings = [[turn.reading for turn in each if turn.reading is not None] for each in turns]
    kinds = [cast.failure.kind for cast in casts if cast.failure is not None]
    return ProtocolResult(
        protocol,
        form,
        len(casts),
        sum(bool(each) and all(issue.code == COPIED_PLACEHOLDERS for issue in each[0].issues) for each in readings),
        sum(bool(each) and each[0].accepted for each in readings),
        sum(bool(each) and each[-1].accepted for each in readings),
        sum(len(each) - 1 for each in turns if each),
        sum(
            any(issue.code == COPIED_PLACEHOLDERS for issue in reading.issues) for each in readings for reading in each
        ),
        kinds.count("context_too_long"),
        sum(kind not in ("context_too_long", "repair_exhausted") for kind in kinds),
        sum(cast.now.usage.input or 0 for cast in casts),
        sum(cast.now.usage.output or 0 for cast in casts),
    )


def table(results: Sequence[ProtocolResult]) -> Iterator[str]:
    """Yield the lines of a Markdown table with a row for each protocol and prompt form."""
    yield "| protocol | `promptForm` | requests | in the form at first | accepted at first | at last | repairs | form copied | overflows | other failures | tokens in | tokens out |"
    yield "|---" * len(ProtocolResult._fields) + "|"
    for result in results:
        yield "| " + " | ".join(f"{value:,}" if isinstance(value, int) else value for value in result) + " |"


def cast_requests(served: Served, project: Path, requests: Sequence[str] = REQUESTS) -> Iterator[ProtocolResult]:
    """Cast every request with each protocol and each prompt form."""
    # At temperature 0 such a small model copies the form and repeats a refused answer.
    settings = {"max_tokens": MAX_TOKENS, "temperature": 0.7, "frequency_penalty": 1.0, "seed": SEED}
    for protocol in PROTOCOLS:
        for form in FORMS:
            bench = Workbench(project=project / f"{protocol}-{form}")
            bench.loadouts.define("Ladder", dict(loadout_of(protocol, form)))
            agent = ModelAgent(f"openai:{served.model}", base_url=served.url, settings=settings, tools=False)
            bench.agent("*", agent)
            casts = [bench.cast(request, loadout="Ladder") for request in requests]
            for cast in casts:
                cast.run()
            yield count_results(protocol, form, casts)


def main() -> int:
    """Start the model, run the casts, print the table and stop the model. Return the exit code."""
    requests = REQUESTS[: int(sys.argv[1])] if sys.argv[1:] else REQUESTS
    shutil.rmtree(LADDER, ignore_errors=True)
    LADDER.mkdir(parents=True)
    os.environ["MATERIA_PROFILE_DIR"] = str(LADDER / "profile")
    try:
        with local_model(context=CONTEXT) as served:
            results = []
            for result in cast_requests(served, LADDER, requests):
                results.append(result)
                print(*result, file=sys.stderr, flush=True)
            print(*table(results), sep="\n")
    except NoLocalModelError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
