"""Fixtures shared by all tests, and how two processes share them."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests import matrices

# What fails there says which values it found.
pytest.register_assert_rewrite("jupyter_autotrain.testing", "tests.sessions")
# The same examples in every run, and no judgement on how fast the machine is just now.
SLOW_MACHINE = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile("suite", derandomize=True, deadline=None, database=None, suppress_health_check=SLOW_MACHINE)
settings.load_profile("suite")

# Thousands of processes import the package: each module is compiled once, also where the environment forbids it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Threads of a matrix product that wait for one another leave the CPU to other tests, instead of turning in a loop.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# The grammar by which jsonschema checks IRIs, of which nothing here has any, takes seconds to compile in each process.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # its import fails


# In this order: what mostly waits or takes longest begins first, so that no process is left alone with it at the end.
ORDER = (
    "tests/slurm/",
    "tests/parallel/",
    "tests/ssh/",
    "tests/journeys/test_example_notebooks.py",
    "tests/browser/",
    "tests/contract/",
    "tests/journeys/",
    "tests/fault/",
    "tests/server/",
    "tests/kubernetes/",
    "tests/portable/",
    "tests/oracle/",
    "tests/patterns/",
    "tests/capture/",
)


# So many processes have what tests of a folder share for the whole run: hosts, a cluster, ranks, a browser.
HOLDERS = {"ssh": 3, "slurm": 1, "parallel": 1, "browser": 2}


class SharedScheduling(LoadScopeScheduling):
    """Tests of a file stay in one process, and those of a folder that shares more in a few of them.

    Unit tests share nothing, so that fewer and larger parts do: each of their folders. Each notebook is one of its own.
    """

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        self._holders: defaultdict[str, set[WorkerController]] = defaultdict(set)

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith("tests/unit/"):
            return "/".join(nodeid.split("/")[:3])
        return nodeid if "test_example_notebooks" in nodeid else nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Assign the next part that suits a process; where none does, the next one."""
        suiting = (scope for scope in self.workqueue if self._suits(node, scope))
        scope = next(suiting, next(iter(self.workqueue)))
        self.workqueue.move_to_end(scope, last=False)
        self._holders[scope.split("/")[1]].add(node)
        super()._assign_work_unit(node)

    def _suits(self, node: WorkerController, scope: str) -> bool:
        """Return whether a process holds what a part shares, or one more may."""
        folder = scope.split("/")[1]
        holders = self._holders[folder].intersection(self.nodes)
        return node in holders or len(holders) < HOLDERS.get(folder, len(self.nodes))


LEFT_OUT = {"long": ("AUTOTRAIN_LONG_TESTS", "test-all"), "soak": ("AUTOTRAIN_SOAK", "soak")}  # unless asked for


def is_left_out(item: pytest.Item) -> bool:
    """Return whether a test runs only where it was asked for."""
    return any(item.get_closest_marker(mark) and not os.environ.get(LEFT_OUT[mark][0]) for mark in LEFT_OUT)


def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Make no tests that are left out anyway, in each of several processes, unless a test is asked for by its name."""
    marks = getattr(obj, "pytestmark", None)
    names = {mark.name for mark in marks if isinstance(mark, pytest.Mark)} if isinstance(marks, list) else set[str]()
    if not any(mark in names and not os.environ.get(LEFT_OUT[mark][0]) for mark in LEFT_OUT):
        return None
    return None if any("::" in word for word in collector.config.args) else []


def pytest_itemcollected(item: pytest.Item) -> None:
    """Have tests of places take long that prove what the same ones prove on this machine."""
    if matrices.is_tested_here(item):
        item.add_marker(pytest.mark.long)


@pytest.fixture
def patient_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let cells wait for what a place says however long that takes: on a loaded machine longer than a person waits."""
    from jupyter_autotrain.client import waiting

    monkeypatch.setattr(waiting.Patience.__init__, "__defaults__", (240.0,))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep all that is made while tests are collected: to look through it for garbage takes a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, and put the longest first where processes share the tests."""
    left_out = dict.fromkeys(filter(is_left_out, items))
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]
    if hasattr(config, "workerinput"):
        items.sort(key=turn)


def turn(item: pytest.Item) -> int:
    """Return the place of a test in the order."""
    return next((place for place, start in enumerate(ORDER) if item.nodeid.startswith(start)), len(ORDER))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharedScheduling:
    return SharedScheduling(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Each reason why tests were skipped once, with their number."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    if reasons:
        terminalreporter.section("skipped tests")
    for reason, count in reasons.most_common():
        terminalreporter.line(f"{count:5d}  {reason}")
    for mark, (variable, target) in LEFT_OUT.items():
        if not os.environ.get(variable):
            terminalreporter.line(f"Marked {mark} and left out: {variable}=1 runs them, as `make {target}` does")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden-update", action="store_true", help="rewrite the golden files")
