"""Cast the quickstart's loadout with a language model on this machine and print the result: ``make demo-model``.

The model is very small (a quarter of a billion parameters). The demo shows prompts, the handoff format and repair
turns, but the answers rarely make sense.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from local_model import ROOT, NoLocalModelError, Served, local_model
from materia_nb import Workbench
from materia_nb.agents import ModelAgent
from materia_nb.cast import Cast

DEMO: Final = ROOT / "build" / "demo-model"

LOADOUT: Final = "Plan-Build-Eval"
"""The loadout of the quickstart, which plans items, builds and evaluates each item, and narrates the result."""
MAX_TOKENS: Final = {"Plan": 160, "Build": 40, "Eval": 60, "Maintain": 60, "Narrate": 40}
"""Maximum answer length of each materia, in tokens. Without a limit, such a small model may not stop."""


def run_demo_cast(served: Served, project: Path) -> Cast:
    """Cast the loadout with the local model in every socket, and return the cast when it has stopped."""
    bench = Workbench(project=project)
    bench.use(LOADOUT)
    for materia, max_tokens in MAX_TOKENS.items():
        # Without a penalty such a small model repeats the same item until its tokens are used up.
        settings = {"max_tokens": max_tokens, "temperature": 0.0, "frequency_penalty": 1.0}
        agent = ModelAgent(f"openai:{served.model}", base_url=served.url, settings=settings, tools=False)
        bench.agent(materia, agent)
    cast = bench.cast("write a short guide")
    cast.run()
    return cast


def show(cast: Cast) -> None:
    """Print the route, the result of each handoff, and the tokens."""
    print(f"Route of the cast ({cast.status})")
    for number, step in enumerate(cast.steps, 1):
        refused = sum(turn.reading is not None and not turn.reading.accepted for turn in step.turns)
        handoff = f"repaired after {refused} refused" if refused else "accepted"
        if step is cast.steps[-1] and cast.failure is not None:
            handoff = cast.failure.kind
        print(f"  {number:>3}. {step.socket}: {handoff}")
    if cast.failure is not None:
        print(f"Stopped: {cast.failure.message}")
    steps_with_request = [step for step in cast.steps if step.prompt and cast.now.request in step.prompt.text]
    print(f"Prompts with the request: {len(steps_with_request)} of {len(cast.steps)}")
    used = cast.now.engine.usage
    print(f"Tokens: {used.input} in, {used.output} out")
    print(f"Artifacts: {cast.run_dir.relative_to(ROOT)}")


def main() -> int:
    """Start the model, run the cast, print the result and stop the model. Return the exit code."""
    shutil.rmtree(DEMO, ignore_errors=True)
    DEMO.mkdir(parents=True)
    os.environ["MATERIA_PROFILE_DIR"] = str(DEMO / "profile")  # independent of the user's loadouts
    try:
        with local_model() as served:
            print(f"{served.model} is available at {served.url}")
            show(run_demo_cast(served, DEMO))
    except NoLocalModelError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
