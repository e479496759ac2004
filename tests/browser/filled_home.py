"""The home of the browser tests' server, filled by hand: no manager runs, nothing of other tests is in it."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from jupyter_autotrain.core.home import Home
from tests.browser.jupyter_lab import Server
from tests.browser.lab_page import cleared, empty_page, no_errors
from tests.server.jupyter import Filler, end_manager


class FilledHome:
    """Fill it while the context lasts; it is empty before and after."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.home = Home(server.home)
        self.root = server.notebooks

    def __enter__(self) -> FilledHome:
        end_manager(self.home)
        self.fill = Filler(self)
        self._empty()
        return self

    def __exit__(self, *_: object) -> None:
        end_manager(self.home)
        self._empty()
        self.fill.store.close()

    def _empty(self) -> None:
        for experiment_id in self.fill.store.ids():
            self.fill.store.delete_experiment(experiment_id)
        shutil.rmtree(self.home.root / "experiments", ignore_errors=True)  # ids come again

    def some_experiments(self) -> None:
        """One that waits, one that runs, one that has ended, one that has failed."""
        fill = self.fill
        fill.experiment("s1", "sleeping cats")
        fill.experiment("s2", "running dogs")
        for number in (1, 2, 3):
            fill.begin("s2", number, lr=0.1 / number, width=32 * number)
            fill.report("s2", number, curve(number, 40))
            fill.file("s2", number, "stdout", b"epoch 1\n" * 30)
        fill.end("s2", 3)
        fill.done("s3", name="flown birds")
        fill.experiment("s4", "broken fish", trials=1)
        fill.begin("s4", 1, lr=9.0)
        fill.end("s4", 1, "FAILED", "ran out of memory: 2.1 GB of 2.0 GB; lower width or batch size")
        fill.store.close_experiment("s4", time.time())

    @contextmanager
    def shown_in(self, tab: Any) -> Iterator[Any]:
        """Yield the page that the tests of a file share, with nothing open; no script may fail in it."""
        with no_errors(cleared(tab, self.server, width=1400)):
            yield tab

    def page(self, browser: Any) -> AbstractContextManager[Any]:
        """Yield a page of JupyterLab with nothing else open; it may not have raised an error when the context ends."""
        return empty_page(browser, self.server, width=1400)


def curve(seed: int, steps: int) -> list[float]:
    """Values that rise and flatten."""
    return [1 - math.exp(-step / (5 + seed)) for step in range(steps)]
