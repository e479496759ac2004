"""Fixtures shared by all tests, and how two processes share them."""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling


class FolderScheduling(LoadScopeScheduling):
    """The tests of a folder stay in one process: they share servers, and what there is once on a machine."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.split("/")[1]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FolderScheduling:
    return FolderScheduling(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden-update", action="store_true", help="rewrite the golden files")
