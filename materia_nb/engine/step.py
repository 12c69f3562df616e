"""The transitions of a cast: pure functions from a state and an input to the next state (R1, R2).

Each returns a :class:`Step`: the new state, what happened as events, and, when the
way on was decided, the decision. Nothing here touches files, clocks or processes.
"""

from materia_nb.engine.entering import begin, enter, prompt_for
from materia_nb.engine.outputs import answered, called, check_answer, decided, finalize, output
from materia_nb.engine.recovery import abort, fail, recast, resend, revive, set_budget, spend
from materia_nb.engine.routing import CORRECT_THE_UTILITY, Event, Step, about, short, telling

__all__ = [
    "CORRECT_THE_UTILITY",
    "Event",
    "Step",
    "abort",
    "about",
    "answered",
    "begin",
    "called",
    "check_answer",
    "decided",
    "enter",
    "fail",
    "finalize",
    "output",
    "prompt_for",
    "recast",
    "resend",
    "revive",
    "set_budget",
    "short",
    "spend",
    "telling",
]
