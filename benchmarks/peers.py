"""Run the work of the benchmarks without an engine, with the library transitions, and with burr."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import work
from ours import folder


def bare_loop(items: int) -> tuple[int, float]:
    """Do the work in plain Python: parse the replies, read the verdict, and count."""
    begin = time.perf_counter()
    visits, outputs = 1, 0
    for item in json.loads(work.plan(items))["workItems"]:
        for reply in (work.BUILT, work.VERDICT, work.NOTED):
            visits += 1
            outputs += len(reply) + len(item["title"])
            if reply is work.VERDICT and not json.loads(reply)["satisfied"]:
                raise RuntimeError("the verdict is always satisfied")
    return visits, time.perf_counter() - begin


def bare_writes(items: int) -> tuple[int, float]:
    """Do only the writes of a durable visit: one artifact file and one flushed line."""
    peer_folder = folder()
    begin = time.perf_counter()
    with (peer_folder / "events.jsonl").open("a", encoding="utf-8") as journal:
        visits = 3 * items + 1
        for visit in range(visits):
            name = f"{peer_folder}/{visit}.md"
            with open(name, "w", encoding="utf-8") as artifact:  # noqa: PTH123 - the plainest way to write
                artifact.write(work.BUILT)
            journal.write(json.dumps({"ts": visit, "type": "socket_complete", "data": {"artifact": name}}) + "\n")
            journal.flush()
    return visits, time.perf_counter() - begin


def same_files(run_dir: Path) -> float:
    """Rewrite the files of a run directory, flush after each line of the journal, and return the seconds."""
    contents = {path.relative_to(run_dir): path.read_bytes() for path in run_dir.rglob("*") if path.is_file()}
    lines = contents.pop(Path("events.jsonl")).splitlines(keepends=True)
    peer_folder = folder()
    for name in contents:
        (peer_folder / name).parent.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    for name, content in contents.items():
        with open(f"{peer_folder}/{name}", "wb") as file:  # noqa: PTH123 - the plainest way to write
            file.write(content)
    with (peer_folder / "events.jsonl").open("ab") as journal:
        for line in lines:
            journal.write(line)
            journal.flush()
    return time.perf_counter() - begin


def bare_line(visits: int, size: int) -> float:
    """Write one flushed line of ``size`` bytes per visit, the minimum for any journal, and return the seconds."""
    peer_folder, line = folder(), "x" * (size - 1) + "\n"
    begin = time.perf_counter()
    with (peer_folder / "events.jsonl").open("a", encoding="utf-8") as journal:
        for _ in range(visits):
            journal.write(line)
            journal.flush()
    return time.perf_counter() - begin


class _Desk:
    """Model object for a state machine of the library transitions. It answers, reads verdicts and moves the cursor."""

    def __init__(self, items: int) -> None:
        self.items: list[Any] = []
        self.cursor, self.visits, self.satisfied, self.output = 0, 0, False, ""
        self.plan_text = work.plan(items)

    def on_enter_plan(self) -> None:
        self.visits += 1
        self.items = json.loads(self.plan_text)["workItems"]

    def on_enter_build(self) -> None:
        self.visits += 1
        self.output = work.BUILT

    def on_enter_evaluate(self) -> None:
        self.visits += 1
        self.satisfied = json.loads(work.VERDICT)["satisfied"]

    def on_enter_maintain(self) -> None:
        self.visits += 1
        self.output = work.NOTED
        self.cursor += 1

    def is_satisfied(self) -> bool:
        return self.satisfied

    def has_more(self) -> bool:
        return self.cursor < len(self.items)


def transitions_machine(items: int) -> tuple[int, float]:
    """Do the work with the library transitions, in memory."""
    from transitions import Machine

    desk: Any = _Desk(items)
    Machine(
        desk,
        states=["start", "plan", "build", "evaluate", "maintain", "done"],
        initial="start",
        transitions=[
            {"trigger": "go", "source": "start", "dest": "plan"},
            {"trigger": "go", "source": "plan", "dest": "build"},
            {"trigger": "go", "source": "build", "dest": "evaluate"},
            {"trigger": "go", "source": "evaluate", "dest": "maintain", "conditions": "is_satisfied"},
            {"trigger": "go", "source": "evaluate", "dest": "build"},
            {"trigger": "go", "source": "maintain", "dest": "build", "conditions": "has_more"},
            {"trigger": "go", "source": "maintain", "dest": "done"},
        ],
    )
    begin = time.perf_counter()
    while desk.state != "done":
        desk.go()
    return desk.visits, time.perf_counter() - begin


def burr_machine(items: int, *, tracked: bool) -> tuple[int, float, int]:
    """Do the work with burr, in memory or with its file tracker. Return the visits, seconds and bytes on disk."""
    from burr.core import ApplicationBuilder, State, action, default, when
    from burr.tracking import LocalTrackingClient

    @action(reads=[], writes=["items", "cursor", "visits"])
    def plan(state: State) -> State:
        return state.update(items=json.loads(work.plan(items))["workItems"], cursor=0, visits=1, more=True)

    @action(reads=["visits"], writes=["output", "visits"])
    def build(state: State) -> State:
        return state.update(output=work.BUILT, visits=state["visits"] + 1)

    @action(reads=["visits"], writes=["satisfied", "visits"])
    def evaluate(state: State) -> State:
        return state.update(satisfied=json.loads(work.VERDICT)["satisfied"], visits=state["visits"] + 1)

    @action(reads=["visits", "cursor", "items"], writes=["output", "visits", "cursor", "more"])
    def maintain(state: State) -> State:
        cursor = state["cursor"] + 1
        return state.update(
            output=work.NOTED, visits=state["visits"] + 1, cursor=cursor, more=cursor < len(state["items"])
        )

    @action(reads=[], writes=[])
    def done(state: State) -> State:
        return state

    peer_folder = folder()
    builder = (
        ApplicationBuilder()
        .with_actions(plan=plan, build=build, evaluate=evaluate, maintain=maintain, done=done)
        .with_transitions(
            ("plan", "build", default),
            ("build", "evaluate", default),
            ("evaluate", "maintain", when(satisfied=True)),
            ("evaluate", "build", default),
            ("maintain", "build", when(more=True)),
            ("maintain", "done", default),
        )
        .with_entrypoint("plan")
    )
    if tracked:
        builder = builder.with_tracker(LocalTrackingClient(project="bench", storage_dir=str(peer_folder)))
    application = builder.build()
    begin = time.perf_counter()
    application.run(halt_after=["done"])
    seconds = time.perf_counter() - begin
    on_disk = sum(os.path.getsize(path) for path in Path(peer_folder).rglob("*") if path.is_file())  # noqa: PTH202
    return application.state["visits"], seconds, on_disk
