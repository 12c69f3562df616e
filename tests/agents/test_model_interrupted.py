"""Test that a long cast repeats only the interrupted turns if it is often interrupted and killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import cast_helpers as h
import model_caster
from materia_nb.cast import open_cast
from model_server import LONG_S, Exchange, ModelServer, says

ITEMS, INTERRUPTS = 12, 6
TURNS = 1 + 2 * ITEMS + 1
CASTER = Path(model_caster.__file__)


class CountingServer(ModelServer):
    """A model server that counts its requests and kills or interrupts the client while it streams chosen answers."""

    def __init__(self, hits: dict[int, signal.Signals]) -> None:
        super().__init__()
        self.script = self
        self.hits = hits
        self.caster: subprocess.Popen[str] | None = None
        self.answered: Counter[str] = Counter()

    def pop(self, _: int):
        return self.answer

    def answer(self, exchange: Exchange) -> None:
        asked = exchange.body["messages"][-1]["content"]
        if (hit := self.hits.get(len(self.asked))) is not None:
            exchange.begin()
            exchange.event({"content": "so f"})
            assert self.caster is not None
            os.kill(self.caster.pid, hit)
            exchange.handler.connection.settimeout(LONG_S)
            with suppress(ConnectionError):
                assert exchange.handler.connection.recv(1) == b"", "the client hangs up"
            exchange.cut()
            return
        head = asked.partition("## Your task\n")[2].splitlines()[0]
        self.answered[head] += 1
        says(reply_to(head))(exchange)


def reply_to(asked: str) -> str:
    if asked.startswith("Plan"):
        return json.dumps({"workItems": h.items(*(f"thing {number}" for number in range(ITEMS)))})
    if asked.startswith("Check"):
        return h.YES
    return f"did: {asked}"


def caster(server: CountingServer, project: Path) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return subprocess.Popen(
        [sys.executable, str(CASTER), server.url, str(project)],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_cast_completes_even_if_it_is_repeatedly_interrupted_and_killed(tmp_path):
    chance = random.Random(6)
    at = sorted(chance.sample(range(1, TURNS + INTERRUPTS), INTERRUPTS))
    killed = set(chance.sample(at, 2))
    hits = {number: signal.SIGKILL if number in killed else signal.SIGINT for number in at}
    with CountingServer(hits) as server:
        for _ in range(len(killed) + 1):
            server.caster = process = caster(server, tmp_path)
            _, said = process.communicate(timeout=120)
            if process.returncode != -signal.SIGKILL:
                break
        assert process.returncode == 0, said
    (run_dir,) = (tmp_path / "casts").glob("2*Z")
    cast = open_cast(run_dir)
    assert cast.status == "complete"
    assert len(cast.steps) == TURNS
    assert len(server.asked) == TURNS + INTERRUPTS
    assert len(server.answered) == TURNS
    assert set(server.answered.values()) == {1}, "no answer that was given is asked for again"
    assert [step.item_key for step in cast.steps[1:-1:2]] == [f"WI-{n + 1}" for n in range(ITEMS)]
    assert cast.now.usage.tokens == 15 * TURNS
