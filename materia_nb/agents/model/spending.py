"""What a turn costs: the tokens of all its requests, and their price where it is known (R20)."""

from __future__ import annotations

from pydantic_ai.messages import ModelResponse

from materia_nb.agents.base import Usage


class Spending:
    """Adds up the tokens of answers, also of those that broke off."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._input = self._output = 0
        self._cost: float | None = 0.0
        self._measured = False

    def add(self, response: ModelResponse) -> None:
        """Add the tokens of an answer, as far as they are known."""
        used = response.usage
        if used.unmeasured_requests or not used.has_values():
            self._cost = None
            return
        self._measured = True
        self._input += used.input_tokens
        self._output += used.output_tokens
        price = _price(response)
        self._cost = None if price is None or self._cost is None else self._cost + price

    def take(self) -> Usage | None:
        """Return the total, and begin anew."""
        if (used := self.total) is not None:  # else something is not known, which the next total must say
            self._begin()
        return used

    @property
    def total(self) -> Usage | None:
        """All of it; None when nobody said how many tokens there were. A cost that is known in part is not."""
        return Usage(self._input, self._output, self._cost) if self._measured else None


def _price(response: ModelResponse) -> float | None:
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):  # no price is known for the model
        return None
