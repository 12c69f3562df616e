"""User code that mypy checks together with the package; it is never run.

Mypy must accept the correct code and find each mistake. A mistake has an ignore comment with its error code. Unused
ignore comments are errors, so ``make lint`` fails if mypy no longer finds a mistake.
"""

from __future__ import annotations

from materia_nb import Workbench
from materia_nb.agents import AgentLike, Reply, Turn


class Later:
    name = "later"

    async def answer(self, turn: Turn) -> Reply:
        return Reply("stopped" if turn.stop.is_set() else turn.prompt)


def right(wb: Workbench) -> None:
    def build(item: str, state: dict[str, object]) -> str:
        return f"{item} {len(state)}"

    async def later(turn: object) -> str:
        return str(turn)

    who: AgentLike = {"Plan": ["one", "two"]}
    wb.agent("Build", build)
    wb.agent("Build", later)
    wb.agent("Build", lambda turn: turn.item_label)
    wb.agent("Build", lambda item: item["title"].lower())
    wb.agent("Build", lambda visit: {"satisfied": visit > 1})
    wb.agent("Build", lambda: "x")
    wb.agent("Build", Later())
    cast = wb.cast("a", agents={"Plan": who, "*": "openai:gpt-4o", "Eval": ["pi", "-p"], "Build": build})
    cast.agents.set("Build", lambda turn: turn.prompt)
    print(cast.status == "complete", cast.run() == "person", wb.casts(status="failed"))
    swept = wb.sweep(
        ["Two"], ["rain"], {"small": "openai:gpt-5-mini"}, checks={"short": lambda cast: len(cast.steps) < 9}
    )
    print([row.why for row in swept.failures], swept.cost, wb.quests.add("rain").id)


def slips(wb: Workbench) -> None:
    wb.agent("Build", 42)  # type: ignore[call-overload]
    cast = wb.cast("a", agents={"Plan": 3})  # type: ignore[dict-item]
    cast.agents.set("Build", 3)  # type: ignore[arg-type]
    wb.agents.set("Build", 3)  # type: ignore[arg-type]
    print(cast.status == "done")  # type: ignore[comparison-overlap]
    print(cast.run() == "finished")  # type: ignore[comparison-overlap]
    wb.casts(status="faild")  # type: ignore[arg-type]
    wb.cast(3)  # type: ignore[arg-type]
    wb.sweep(["Two"], loadout="Two")  # type: ignore[call-arg]
    wb.quests.add(3)  # type: ignore[arg-type]
