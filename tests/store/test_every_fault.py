"""Every call into the system for files fails once, in every way: nothing is lost, locked or left open.

A cast is started, stepped, edited, forked, resumed, closed. Its calls are counted; then for each of them the process
dies before it, or in the middle of it where it writes, or the call is refused (no room, no handle, broken disk), or Ctrl-C
comes right then. After each, what was left is gone on with, and is in the end what it is undisturbed.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from functools import partial
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb import platform
from materia_nb.cast import open_cast, resume_cast
from materia_nb.errors import MateriaError
from materia_nb.store import rundir
from materia_nb.store.journal import read_journal

LONG = "x" * 70_000
"""More than stands in the journal, so that its artifact is the only copy."""
CALLS = (
    "open", "close", "read", "pread", "write", "pwrite", "fsync", "fstat", "ftruncate", "fchmod", "replace", "rename",
    "unlink", "mkdir", "rmdir", "stat", "lstat", "scandir", "listdir",
)  # fmt: skip
TAKES_ROOM = {"create", "write", "pwrite", "fsync", "replace", "mkdir"}
CHANGES = TAKES_ROOM | {"ftruncate", "fchmod", "rename", "unlink", "rmdir", "flock"}
"""To die before any other call is to die before the next one of these: the disk is the same."""
OPENS = {"create", "open", "scandir", "listdir"}
READS = {"read", "pread", "open", "scandir", "listdir"}


class Shim:
    """Counts the calls of some names, and does ``fault`` at the ``at``-th one."""

    looks = False
    """Whether the test itself looks at the disk."""

    def __init__(self, monkeypatch, only, at, fault):
        self.only, self.at, self.fault, self.count, self.name = only, at, fault, 0, None
        for name in CALLS:
            monkeypatch.setattr(os, name, self.around(name, getattr(os, name)))
        monkeypatch.setattr(platform, "_FLOCK", self.around("flock", platform._FLOCK))

    def around(self, name, real):
        def call(*given, **named):
            kind = "create" if name == "open" and given[1] & os.O_CREAT else name
            if kind in self.only and not Shim.looks:
                self.count += 1
                if self.count == self.at:
                    self.name = kind
                    self.fault(kind, real, given)
            return real(*given, **named)

        return call


def dies(name, real, given):
    os._exit(9)


def dies_within(name, real, given):
    if name in {"write", "pwrite"}:
        real(given[0], bytes(given[1][: len(given[1]) // 2]), *given[2:])
    os._exit(9)


def refuses(number):
    def fault(name, real, given):
        raise OSError(number, os.strerror(number))

    return fault


def interrupts(name, real, given):
    signal.raise_signal(signal.SIGINT)


FAULTS = {
    "dies": (dies, CHANGES),
    "dies within": (dies_within, {"write", "pwrite"}),
    "ENOSPC": (refuses(errno.ENOSPC), TAKES_ROOM),
    "EIO": (refuses(errno.EIO), CHANGES | READS),
    "EMFILE": (refuses(errno.EMFILE), OPENS),
    "interrupt": (interrupts, CHANGES | READS),
    "EIO, forced": (refuses(errno.EIO), {"fsync"}),
}


class Never:
    """The timer of what is written soon, which the next pause writes anyway: else the clock would count calls."""

    def __init__(self, seconds, act):
        pass

    def cancel(self):
        pass


@pytest.fixture(autouse=True, scope="module")
def no_timers():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rundir, "call_later", Never)
        yield


LOADOUT = h.config(
    {"Socket-1": h.at("Plan", ("always", "Socket-2"), parse="json"), "Socket-2": h.at("Tell")},
    {"Plan": h.agent("Plan {{request}}"), "Tell": h.agent("Tell {{state.context}}")},
)
ANSWERS = {"Plan": lambda: json.dumps({"context": LONG}), "Tell": lambda: "told"}
AGENTS = h.table(ANSWERS)


def begun(root):
    """The directories of the casts in which something was recorded, the first one first, its fork behind it."""
    Shim.looks = True
    try:
        return [path.parent for path in sorted(root.glob("casts/*/events.jsonl")) if read_journal(path).lines]
    finally:
        Shim.looks = False


def go_on(root, held, sync):
    """Do what was not done yet; casts that are at hand go into ``held``."""

    def kept(cast):
        held.append(cast)
        return cast

    def resumed(path):
        return kept(resume_cast(path, AGENTS, sync=sync))

    casts = begun(root)
    cast = resumed(casts[0]) if casts else kept(h.start(root, LOADOUT, ANSWERS, sync=sync))
    while not any(step.turns for step in cast.steps):
        cast.step()
    if "note" not in cast.state:
        cast.edit.set("note", "by a person")
    if len(begun(root)) == 1:
        fork = kept(cast.fork(1))
        fork.run()
        fork.close()
    cast.close()
    cast = resumed(begun(root)[0])
    if cast.status != "complete":
        cast.run()
    if not cast.labels.of().name:
        cast.labels.add(name="good")
    cast.close()
    fork = resumed(begun(root)[1])
    if fork.status != "complete":
        fork.run()
    fork.close()


def told(root):
    """What must be the same in the end."""
    found = []
    for path in begun(root):
        cast = open_cast(path)
        assert (cast.now.messages, cast.now.differences) == ([], ())
        assert cast.verify().good, cast.verify()
        files = {
            str(one.relative_to(path)): one.read_bytes()
            for folder in ("sockets", "contexts")
            for one in (path / folder).rglob("*")
            if one.is_file()
        }
        found.append(
            (
                cast.status,
                cast.route,
                dict(cast.state),
                [s.output for s in cast.steps],
                files,
                cast.labels.of().name,
            )
        )
        assert (path / "manifest.json").exists()
        left = list(path.rglob("*.tmp"))
        assert left == []
    return found


def handles(root):
    """What of the casts is open in this process."""
    return [
        found
        for one in Path("/proc/self/fd").glob("*")
        if (found := os.path.realpath(one)).startswith(str(root))
    ]


def in_a_child(act):
    """Run it in a copy of this process; "died" when it did so as wanted, None when it came to its end."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return {9: "died", 0: None}[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="it looks there at what is open")
@pytest.mark.parametrize("kind", FAULTS)
def test_nothing_is_lost_whatever_fails(tmp_path, kind):
    (fault, only), sync = FAULTS[kind], kind == "EIO, forced"
    go_on(tmp_path / "undisturbed", [], sync)
    wanted, at, met, name = told(tmp_path / "undisturbed"), 0, [], "none"
    while name is not None:
        root, held, error = tmp_path / f"run{at}", [], None
        at += 1
        with pytest.MonkeyPatch.context() as patched:
            shim = Shim(patched, only, at, fault)
            if kind.startswith("dies"):
                name = in_a_child(partial(go_on, root, [], sync))
            else:
                try:
                    go_on(root, held, sync)
                except (MateriaError, KeyboardInterrupt) as raised:
                    error = raised  # and with it the frames of all that was under way
                name = shim.name
        for cast in held:
            cast.close()
        go_on(root, [], sync)
        assert told(root) == wanted, f"call {at}, {name}: {error!r}"
        error = None
        assert handles(root) == [], f"call {at}, {name}"
        shutil.rmtree(root)
        met.append(name)
    # Fewer would mean that the shim does not see what is called.
    assert len(met) > 12 if sync else len(met) > 30
