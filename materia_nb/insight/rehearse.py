"""Many casts in memory, answered by chance: how they end, how long they take, where they go."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Final, NamedTuple

from materia_nb.engine import entering
from materia_nb.engine.rules import Rules
from materia_nb.errors import MateriaError
from materia_nb.handoff.protocol import SAMPLE
from materia_nb.insight.answers import Answers, Scripted, quiet
from materia_nb.insight.odds import Chance, Chances, PerSocket, chances_of, check_names
from materia_nb.insight.space import Taken, arrive, end_of, visit
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.vocabulary import SENDING_BACK, Result
from materia_nb.sharing import Bar, Progress, shared

BATCH: Final = 250
"""How many casts one worker does at a time."""
MOST_VISITS: Final = 10_000
"""Visits after which one cast is given up."""
UNFINISHED: Final = "unfinished"
"""The end of a cast that was given up."""


@dataclass(frozen=True)
class Rehearsal:
    """What came of many casts.

    Attributes:
        graph: the loadout.
        n: how many there were.
        items: how long every list was.
        seed: what the chances were drawn from.
        nothing: the sockets that may have said nothing of ``satisfied``, with the chance of it; see :class:`.odds.Odds`.
        failed: the chance of each socket that its agent or process fails, where that was given.
        ends: how many ended so, by ``complete`` or the kind of a failure.
        turns: how many turns agents had, one number a cast.
        retries: how many edges that send work back were taken, one number a cast.
        visits: how often each socket was visited, in all.
        taken: how often each edge (socket, number from 1) and each exit (its ``edge_id``) was taken, in all.
    """

    graph: Graph
    n: int
    items: int
    seed: int
    nothing: Mapping[str, float]
    failed: Mapping[str, float]
    ends: Mapping[str, int]
    turns: tuple[int, ...]
    retries: tuple[int, ...]
    visits: Mapping[str, int]
    taken: Mapping[Taken, int]

    @property
    def traversals(self) -> dict[str, int]:
        """How often each edge was taken, by ``"A->B"`` (R21)."""
        found: Counter[str] = Counter()
        for edge, count in self.taken.items():
            if isinstance(edge, tuple):
                found[f"{edge[0]}->{self.graph.sockets[edge[0]].edges[edge[1] - 1].to}"] += count
        return dict(found)


class Job(NamedTuple):
    """Some of the casts of a rehearsal: those numbered from ``start`` up to ``end``.

    Attributes:
        graph: the loadout, pickled: a worker makes it ready once, for all jobs that bring the same.
        chances: how likely it is what is said of ``satisfied``, by socket.
        items: how long every list is.
        seed: what the chances are drawn from.
        start: the number of the first cast.
        end: the number behind the last one.
    """

    graph: bytes
    chances: Mapping[str, Chance]
    items: int
    seed: int
    start: int
    end: int


class Batch(NamedTuple):
    """What came of a job: one end, number of turns and number of retries a cast, and what was visited and taken in all."""

    ends: tuple[str, ...]
    turns: tuple[int, ...]
    retries: tuple[int, ...]
    visits: Mapping[str, int]
    taken: Mapping[Taken, int]


def rehearse(
    graph: Graph,
    n: int = 1000,
    satisfied: Chances = 0.5,
    items: int = 3,
    seed: int = 1,
    executor: Executor | None = None,
    *,
    failed: PerSocket = 0.0,
    progress: Progress = False,
) -> Rehearsal:
    """Cast a loadout many times with stub agents; the numbers are the same whoever works on them.

    Args:
        graph: the loadout.
        n: how many casts.
        satisfied: the chance that an output says ``satisfied: true``, or a pair of that and of saying nothing: one
            for all, or by socket or materia. An agent that is not asked for it says nothing unless it is named.
        items: how long every list is.
        seed: what the chances are drawn from, for each cast anew.
        executor: who works on it in batches; this thread if left out, and for batches whose worker was lost.
        failed: the chance that an agent or process fails, where an edge waits for that: for all, or by socket or materia.
        progress: whether a bar is printed; or what is called with how many casts are done and how many there are.

    Raises:
        MateriaError: a chance is missing or none, or a socket takes no scripted answer (``no_answer``).
    """
    if n < 1 or items < 0:
        raise MateriaError("A rehearsal needs casts and a length of lists.", hint="n from 1, items from 0")
    check_names(graph, satisfied, failed)
    small = quiet(graph)
    chances = chances_of(Rules(small), satisfied, failed)
    sent = pickle.dumps(small)
    jobs = [Job(sent, chances, items, seed, at, min(at + BATCH, n)) for at in range(0, n, BATCH)]
    batches: dict[int, Batch] = {}
    bar = Bar(progress, n, "casts")
    try:
        for done in shared(run_job, jobs, executor):
            job = jobs[done.place]
            batches[done.place] = run_job(job) if done.result is None else done.result
            bar.add(job.end - job.start)
    finally:
        bar.close()
    visits: Counter[str] = Counter(dict.fromkeys(graph.sockets, 0))
    taken: Counter[Taken] = Counter()
    whole = [batches[place] for place in range(len(jobs))]
    for one in whole:
        visits.update(one.visits)
        taken.update(one.taken)
    return Rehearsal(
        graph,
        n,
        items,
        seed,
        {socket: chance.nothing for socket, chance in chances.items() if chance.nothing},
        {socket: chance.failed for socket, chance in chances.items() if chance.failed},
        Counter(dict(Counter(end for one in whole for end in one.ends).most_common())),
        tuple(turns for one in whole for turns in one.turns),
        tuple(retries for one in whole for retries in one.retries),
        dict(visits),
        dict(taken),
    )


@lru_cache(maxsize=8)
def ready(graph: bytes, items: int) -> tuple[Rules, Answers]:
    """Make a pickled loadout ready; a worker does it once for all batches of a rehearsal."""
    rules = Rules(pickle.loads(graph))  # noqa: S301 - our own, from the rehearsal that sent it
    return rules, Answers(rules, (items,))


def run_job(job: Job) -> Batch:
    """Do the casts of a job, each with a seed of its own."""
    rules, answers = ready(job.graph, job.items)
    visits: Counter[str] = Counter()
    taken: Counter[Taken] = Counter()
    runs = [
        _run(rules, answers, job.chances, Random(f"{job.seed}:{number}"), visits, taken)  # noqa: S311 - chances, no secrets
        for number in range(job.start, job.end)
    ]
    ends, turns, retries = zip(*runs, strict=True)
    return Batch(ends, turns, retries, visits, taken)


def _run(
    rules: Rules,
    answers: Answers,
    chances: Mapping[str, Chance],
    rng: Random,
    visits: Counter[str],
    all_taken: Counter[Taken],
) -> tuple[str, int, int]:
    """Do one cast, and count what it visits and takes; returns its end, turns and retries."""
    state, passed = arrive(rules, entering.begin(rules, SAMPLE))
    taken: Counter[Taken] = Counter(passed)
    turns = 0
    for _ in range(MOST_VISITS):
        if state.status != "waiting" or state.at is None:
            break
        here = rules.sockets[state.at.socket]
        visits[here.socket.id] += 1
        answer = drawn(answers.of(here), chances.get(here.socket.id), rng)
        done = visit(rules, here, state, answer)
        turns += 0 if here.socket.is_utility else done.turns
        taken.update(done.taken)
        state = done.state
    all_taken.update(taken)
    return end_of(state) or UNFINISHED, turns, _retries(rules.graph, taken)


def drawn(given: tuple[Scripted, ...], chance: Chance | None, rng: Random) -> Scripted:
    """Draw what happens to a visit; the first of what can happen where no chance decides."""
    if chance is None:
        return given[0]
    number = rng.random()
    if chance.failed:
        if number < chance.failed:
            return next(one for one in given if one.result is Result.FAILED)
        number = (number - chance.failed) / (1 - chance.failed)
    result = (
        Result.YES if number < chance.yes else Result.NOTHING if number >= 1 - chance.nothing else Result.NO
    )
    return next((one for one in given if one.result is result), given[0])


def _retries(graph: Graph, taken: Mapping[Taken, int]) -> int:
    return sum(
        count
        for edge, count in taken.items()
        if isinstance(edge, tuple) and graph.sockets[edge[0]].edges[edge[1] - 1].when in SENDING_BACK
    )
