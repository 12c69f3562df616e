"""Data sets of pydantic-evals as the requests of a sweep, and their evaluators as its checks (the extra ``evals``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from materia_nb.cast import Cast
from materia_nb.cast.sweep.verdicts import Verdict
from materia_nb.errors import MateriaError
from materia_nb.insight import sides
from materia_nb.jsonvalue import compact

_NO_SPANS: Final = "spans are sent by cast.export.otel, not kept for evaluators"


def is_dataset(given: object) -> bool:
    """Whether something is a data set: it has cases, and evaluators."""
    return hasattr(given, "cases") and hasattr(given, "evaluators")


def requests_of(dataset: Any) -> dict[str, str]:
    """Return the request of each case by its name; inputs that are no text are sent as JSON.

    Raises:
        MateriaError: two cases ask for the same, so that nobody could tell whose expected output counts (``usage``).
    """
    found: dict[str, str] = {}
    for place, case in enumerate(dataset.cases, start=1):
        text = case.inputs if isinstance(case.inputs, str) else compact(case.inputs)
        if text in found.values():
            raise MateriaError(
                f"Case {place} of the data set asks for what an earlier one asks for.",
                hint="repeat=2 casts a request twice",
                kind="usage",
            )
        found[case.name or f"case {place}"] = text
    return found


def checks_of(dataset: Any) -> dict[str, Evaluation]:
    """Return the evaluators of a data set as checks by name; those of single cases say nothing of the others."""
    by_request = dict(zip(requests_of(dataset).values(), dataset.cases, strict=True))
    everywhere = [(one, by_request) for one in dataset.evaluators]
    alone = [(one, {text: case}) for text, case in by_request.items() for one in case.evaluators]
    found: dict[str, Evaluation] = {}
    for evaluator, cases in (*everywhere, *alone):
        name = evaluator.get_default_evaluation_name()
        known = found.get(name)
        if known is None:
            found[name] = Evaluation([(evaluator, cases)])
        else:
            known.parts.append((evaluator, cases))
    return found


class Evaluation:
    """A check that asks the evaluators of one name about the cases that they are for."""

    def __init__(self, parts: list[tuple[Any, Mapping[str, Any]]]) -> None:
        """``parts`` are evaluators, each with its cases by request."""
        self.parts = parts

    def __call__(self, cast: Cast) -> Verdict:
        """Return what they say of a cast together: it holds if it does for each of them."""
        said = [
            verdict_from(evaluator.evaluate_sync(_context(cases[cast.request], cast)))
            for evaluator, cases in self.parts
            if cast.request in cases
        ]
        if not said:
            return Verdict(value=True, why="not asked of this case")
        if len(said) == 1:
            return said[0]
        return Verdict(
            all(one.value for one in said), "; ".join(one.why for one in said if one.why and not one.value)
        )


def verdict_from(said: Any) -> Verdict:
    """Return what an evaluator gave as a verdict: a value with or without a reason, a label, or several by name."""
    if isinstance(said, Mapping):
        parts = {name: verdict_from(one) for name, one in said.items()}
        wrong = [f"{name}: {one.why or one.value}" for name, one in parts.items() if not one.value]
        return Verdict(not wrong, "; ".join(wrong))
    value, why = getattr(said, "value", said), getattr(said, "reason", None) or ""
    if isinstance(value, bool | int | float):
        return Verdict(value, why)
    return Verdict(value=True, why=f"{value}: {why}" if why else str(value))  # a label judges nothing


def _context(case: Any, cast: Cast) -> Any:
    from pydantic_evals.evaluators import EvaluatorContext
    from pydantic_evals.otel import SpanTreeRecordingError

    last = cast.steps[-1] if cast.steps else None
    taken = sum(sides.took(step) or 0 for step in cast.steps)
    usage = cast.now.usage
    return EvaluatorContext(
        name=case.name,
        inputs=case.inputs,
        metadata=case.metadata,
        expected_output=case.expected_output,
        output=None if last is None else sides.answer(last),
        duration=taken / 1000,
        _span_tree=SpanTreeRecordingError(_NO_SPANS),
        attributes={"cast": cast.id, "route": [step.socket for step in cast.steps], "ends": cast.status},
        metrics={"steps": len(cast.steps), "tokens": usage.tokens, "cost": usage.cost},
    )
