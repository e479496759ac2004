"""A running Jupyter server, one for all tests, and a hand that fills its home."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.jupyter import Filler, JupyterServer, running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator[JupyterServer]:
    """Yield a server with experiments; tests add their own and change no other."""
    with running_server(tmp_path_factory.mktemp("jupyter")) as server:
        yield server


@pytest.fixture
def filler(server) -> Iterator[Filler]:
    opened = Filler(server)
    yield opened
    opened.store.close()
