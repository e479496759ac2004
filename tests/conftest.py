"""Fixtures shared by all tests, and how two processes share them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# The same examples in every run, and no judgement on how fast the machine is just now.
SLOW_MACHINE = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile("suite", derandomize=True, deadline=None, database=None, suppress_health_check=SLOW_MACHINE)
settings.load_profile("suite")


class FolderScheduling(LoadScopeScheduling):
    """The tests of a folder stay in one process: they share servers, and what there is once on a machine.

    Unit tests share nothing, so each of their folders is one.
    """

    def _split_scope(self, nodeid: str) -> str:
        _, folder, inner, *_ = nodeid.split("/")
        return f"{folder}/{inner}" if folder == "unit" else folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FolderScheduling:
    return FolderScheduling(config, log)


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
