"""Fixtures for all tests, which isolate each test from the settings of the machine."""

from __future__ import annotations

import functools
import gc
import itertools
import json
import os
import re
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import comm
import ipykernel.ipkernel  # noqa: F401 - see below
import nbval.kernel
import pytest
from hypothesis import HealthCheck, settings
from jupyter_client.manager import KernelManager

import cast_helpers as h
from file_kernels import FileKernelManager, stop_prepared_kernels
from magics_helpers import HELLO, end_shells, new_shell
from materia_nb import Workbench
from materia_nb.display import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from IPython.core.interactiveshell import InteractiveShell
    from xdist.scheduler import LoadScopeScheduling
    from xdist.workermanage import WorkerController

    from materia_nb.cast import Cast

# ipykernel puts comms of its own in the place of these when it is imported; imported in the middle of the tests, panels of
# before could not be closed any more.
comm.create_comm, comm.get_comm_manager = comm._create_comm, comm._get_comm_manager

assert nbval.kernel.KernelManager is KernelManager
nbval.kernel.KernelManager = FileKernelManager

SHARING: Final = (
    "tests/browser/test_[a-f]",
    "tests/browser/test_[g-l]",
    "tests/browser/",
    "tests/magics/test_notebook_record.py",
    "tests/release/test_site.py",
    "tests/release/test_wheel.py",
)
"""Patterns of tests that share a slow resource, such as a server and browser, an executed notebook, the site or the
wheel.

The browser tests form three groups of similar duration, which the workers run one after another.
"""

EXAMPLES: Final = int(os.environ.get("MATERIA_EXAMPLES", "40"))
"""Number of examples for a property that sets no number itself; increase it for a long search."""

# CI searches the same examples at each run, so that a change is judged and not luck; at home each run
# looks elsewhere. A deadline would measure the machine, and so does the check how fast examples are drawn.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=EXAMPLES,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "dev",
    deadline=None,
    max_examples=EXAMPLES,
    # The autouse fixture below must run once for each test, not once for each example.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


MEMORY: Final = "/dev/shm"
ROOM: Final = 2 * 1024**3


def pytest_configure() -> None:
    """Enable keyboard interrupts, and store temporary files in memory."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A background process of a shell ignores interrupts, and its child processes inherit this setting.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _write_to_memory()


def pytest_unconfigure() -> None:
    """Stop the process from which the kernels of notebooks were forked."""
    stop_prepared_kernels()


def _write_to_memory() -> None:
    """Use a file system in memory, because the thousands of small test files are slow on a disk."""
    if "TMPDIR" in os.environ or not Path(MEMORY).is_dir():
        return
    there = os.statvfs(MEMORY)
    if there.f_bavail * there.f_frsize >= ROOM and not there.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = MEMORY
        tempfile.tempdir = None  # otherwise tempfile keeps the folder that it found before


def pytest_collection_finish() -> None:
    """Exclude the collected tests and their imports from garbage collection, and collect less often."""
    gc.freeze()
    gc.set_threshold(20_000)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling | None:
    """Schedule all tests that share a slow resource on one worker.

    The group marker of xdist cannot be used, because it has no effect with pytest 9.2.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Sharing(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            notebook, dot, _ = nodeid.partition(".ipynb::")  # its cells share a kernel
            return next((place for place in SHARING if re.match(place, nodeid)), notebook if dot else nodeid)

        def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
            super().mark_test_complete(node, item_index, duration)
            # xdist would count the finished tests of all finished groups again after each test.
            groups, group = self.assigned_work[node], self._split_scope(self.registered_collections[node][item_index])
            if all(groups[group].values()):
                del groups[group]

    return Sharing(config, log)


@pytest.fixture(scope="session", autouse=True)
def cache_pictures() -> Iterator[None]:
    """Cache the PNG of each picture for all tests of a worker, because rendering is slow."""
    with pytest.MonkeyPatch.context() as patch:
        drawn, draw = functools.cache(blocks.png_of), blocks.png_of
        # A test may remove the renderer; then the cache is not used.
        patch.setattr(blocks, "png_of", lambda svg: drawn(svg) if sys.modules.get("resvg_py", draw) else draw(svg))
        yield


@pytest.fixture(scope="session", autouse=True)
def isolate_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Isolate the IPython settings, and replace the slow ``python3`` shim on PATH by the interpreter itself."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "python3").symlink_to(Path(sys.executable).resolve())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        yield


@pytest.fixture(scope="session")
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a new folder for each test; ``mktemp`` would search all existing folders for the next free name."""
    base = tmp_path_factory.mktemp("own")
    return (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def isolate_test(own_folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Isolate profile, config and notebook settings, and close the shells of the test."""
    own = next(own_folders)
    (own / "profile").mkdir(parents=True)
    monkeypatch.setenv("MATERIA_PROFILE_DIR", str(own / "profile"))
    monkeypatch.delenv("MATERIA_CONFIG", raising=False)
    monkeypatch.delenv("MATERIA_LEARNER", raising=False)
    monkeypatch.delenv("PI_MATERIA_PROFILE_DIR", raising=False)
    monkeypatch.setenv("MATERIA_GUESSES", str(own / "guesses.jsonl"))
    yield
    end_shells()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return an empty project folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def wb(project: Path) -> Iterator[Workbench]:
    """Return a workbench for the empty project."""
    new_bench = Workbench(project)
    yield new_bench
    new_bench.close()


@pytest.fixture
def bench(project: Path) -> Iterator[Workbench]:
    """Return a workbench with Plan-Build-Eval and its agents.

    The plan has the items a, b and c, and the first evaluation is not satisfied.
    """
    new_bench = Workbench(project)
    new_bench.use("Plan-Build-Eval")
    new_bench.agent("Plan", lambda: {"workItems": h.items("a", "b", "c")})
    new_bench.agent("Build", lambda turn: f"built {turn.item_label}")
    new_bench.agent("Maintain", lambda: {"satisfied": True})
    new_bench.agent("Narrate", lambda: "told")
    new_bench.agent("Eval", lambda turn: {"satisfied": turn.visit != 1, "context": "not yet"})
    yield new_bench
    new_bench.close()


@pytest.fixture
def cast(bench: Workbench) -> Cast:
    """Return a cast of the workbench ``bench`` before its first step."""
    return bench.cast("edit me")


@pytest.fixture
def shell(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """Return an IPython shell with the magics loaded, in the project folder with ``hello.json``."""
    monkeypatch.chdir(project)
    (project / "hello.json").write_text(json.dumps(HELLO))
    second_shell = new_shell()
    yield second_shell
    bench = second_shell.user_ns.get("wb")
    if isinstance(bench, Workbench):
        bench.close()
