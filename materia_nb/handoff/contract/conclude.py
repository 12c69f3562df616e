"""What a person is told at the end of the work (agent contract rules, section 12)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from materia_nb.handoff.contract.output import Output, output_of
from materia_nb.handoff.protocol import Reported
from materia_nb.handoff.wording import as_text, named
from materia_nb.jsonvalue import JSON


def conclusion(reports: Sequence[Reported]) -> list[str]:
    """Return the summary of a single agent as it wrote it, else what each one found, and what was checked and is open."""
    done = [(who, said) for who, value in reports if (said := output_of(value)).plan_status == "COMPLETE"]
    if len(done) == 1 and (summary := done[0][1].user_facing_summary):
        lines = summary.splitlines()
    else:
        lines = [line for who, said in done for line in named(who, _outcome(said))]
    outputs = [said for _, said in done]
    return [
        *lines,
        *named("Verified by", dict.fromkeys(text for said in outputs for text in _checked(said))),
        *named("Impacts elsewhere", _all(outputs, "cross_layer_impacts")),
        *named("Still open", _all(outputs, "open_gaps")),
    ]


def _outcome(said: Output) -> list[str]:
    return _texts(said.evidence["key_outputs"]) or [said.user_facing_summary or "done"]


def _checked(said: Output) -> Iterator[str]:
    """How the work was checked, as far as the agent says; a COMPLETE contract has passed."""
    for name in ("method", "details"):
        if told := as_text(said.verification.get(name) or ""):
            yield told
            return


def _all(outputs: Sequence[Output], name: str) -> list[str]:
    return list(dict.fromkeys(text for said in outputs for text in _texts(said.evidence[name])))


def _texts(entries: Sequence[JSON]) -> list[str]:
    return [as_text(entry) for entry in entries if entry is not None]
