"""The common ground of the operations: the home, stores to read it, threads for that, and subscribers to changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.home import Home, make_private
from jupyter_autotrain.errors import StoreError, UnknownExperimentError
from jupyter_autotrain.server.check_runner import CheckRunner
from jupyter_autotrain.server.problems import ProblemError
from jupyter_autotrain.store import Store

_THREADS: Final = 8
_SLOW_THREADS: Final = 2


class ReadStores:
    """Handles of a home's store that only read; each is used by one thread at a time.

    Args:
        home: The home. None is made where there is none.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._idle: list[Store] = []

    @contextmanager
    def reading(self) -> Iterator[Store]:
        """Yield a store to read.

        Raises:
            ProblemError: The home is not the user's alone.
            UnknownExperimentError: There is no home yet, so there is no experiment.
        """
        check_owner(self._home)
        if not self._home.store.is_file():
            raise UnknownExperimentError("There is no experiment yet.", "A home with experiments.", "Run a cell first.")
        store = self._take()
        try:
            yield store
        finally:
            self._idle.append(store)

    def _take(self) -> Store:
        try:
            return self._idle.pop()
        except IndexError:
            return Store.open(self._home, is_read_only=True)


@dataclass(frozen=True, slots=True)
class ServerContext:
    """The context that every operation is given.

    Attributes:
        home: The home of the experiments.
        root: The folder that the Jupyter server shows.
        environ: The server's variables.
        base_url: The path below which the API lies.
        stores: Stores to read.
        threads: Where operations run.
        slow_threads: Where those run that ask other machines.
        checks: The checks of backends that run, and the last that have ended.
    """

    home: Home
    root: Path
    environ: Mapping[str, str]
    base_url: str
    stores: ReadStores
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_THREADS))
    slow_threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_SLOW_THREADS))
    checks: CheckRunner = field(default_factory=CheckRunner)

    @contextmanager
    def writing(self, experiment_id: str) -> Iterator[Experiment]:
        """Yield an experiment whose store can be written.

        Raises:
            UnknownExperimentError: There is none with this id.
        """
        with self.stores.reading() as store:
            store.experiment(experiment_id)
        with Store.open(self.home) as store:
            yield Experiment(self.home, store, experiment_id, self.environ)


def check_owner(home: Home) -> None:
    """Make sure that a home that is there is the user's alone.

    Raises:
        ProblemError: It belongs to another user, or others could write to it.
    """
    if not home.root.is_dir():
        return
    try:
        make_private(home)
    except StoreError as error:
        raise ProblemError(HTTPStatus.FORBIDDEN, error) from None
