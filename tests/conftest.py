"""Fixtures shared by all tests, and how two processes share them."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

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
    "tests/ssh/",
    "tests/journeys/test_example_notebooks.py",
    "tests/browser/",
    "tests/slurm/",
    "tests/parallel/",
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


class SharedScheduling(LoadScopeScheduling):
    """Tests that share a server stay in one process: those of a file; each process has laboratories of its own.

    Unit tests share nothing, so that fewer and larger parts do: each of their folders. Each notebook is one of its own.
    """

    def _split_scope(self, nodeid: str) -> str:
        _, folder, inner, *_ = nodeid.split("/")
        if folder == "parallel":  # its ranks, which take long to start, are started once
            return folder
        if folder == "unit":
            return f"{folder}/{inner}"
        return nodeid if "test_example_notebooks" in nodeid else nodeid.partition("::")[0]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Skip what takes long, unless it was asked for."""
    for marker, variable, target in (("long", "AUTOTRAIN_LONG_TESTS", "test-all"), ("soak", "AUTOTRAIN_SOAK", "soak")):
        if item.get_closest_marker(marker) and not os.environ.get(variable):
            reason = f"takes long: {variable}=1 runs it, as `make {target}` does"
            item.add_marker(pytest.mark.skip(reason=reason))


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
    """Put the longest first where processes share the tests."""
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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden-update", action="store_true", help="rewrite the golden files")
