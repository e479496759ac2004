"""Ranks that stay: processes forked from one that has torch imported, which run one distributed function after another.

To import torch and transformers takes longer than most runs, and is done once for all ranks. The process that they are
forked from does nothing else, so that no thread is lost. A run that fails in one rank fails whole: the others are
ended, and the next run starts new ones.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import threading
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from queue import Empty, Queue
from typing import Any
from unittest import mock

ENDS_S = 10.0  # after which no rank has ended by itself
LINK_LOST = "its link was lost"
MOST_RUNS = 8  # of one process: gloo keeps threads of each group, which wake all the time
LONGEST_S = 550.0  # a run, on a machine that others use; the first one pays for the imports
SETTINGS = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "TRANSFORMERS_VERBOSITY": "error"}


class RankFailedError(Exception):
    """A run that failed: the first rank that raised or ended, with its text."""

    def __init__(self, rank: int, text: str) -> None:
        super().__init__(f"rank {rank}: {text}")
        self.rank = rank
        self.text = text


@dataclass(frozen=True)
class Run:
    """One run as its ranks are told of it; with one rank there is no process group."""

    function: Callable[..., Any]
    words: dict[str, Any]
    rank: int
    count: int
    store: str


@dataclass(frozen=True)
class Rank:
    """A process, and the link by which it is asked."""

    process: ForkServerProcess
    link: Connection


class RankPool:
    """Processes that are started when first needed, and ended by `close`.

    Args:
        folder: Where ranks of a run meet.
        imported: Modules that all ranks have imported when they start.
    """

    def __init__(self, folder: Path, imported: Iterable[str] = ()) -> None:
        self._ranks: list[Rank] = []
        self._folder = folder
        self._imported = [*imported]
        self._runs = 0

    def run(self, count: int, function: Callable[..., Any], **words: Any) -> list[Any]:
        """Return what a function of a module returns in each of `count` ranks of one process group.

        Raises:
            RankFailedError: One of them raised, or ended.
        """
        if self._runs % MOST_RUNS == 0:
            self.close()
        self._runs += 1
        store = f"{self._folder}/store-{self._runs}"
        while len(self._ranks) < count:
            self._ranks.append(self._started())
        answers: Queue[tuple[int, bool, Any]] = Queue()
        for rank in range(count):
            run = Run(function, words, rank, count, store)
            threading.Thread(target=_ask, args=(self._ranks[rank], run, answers), daemon=True).start()
        return self._collect(count, answers)

    def close(self) -> None:
        """End all processes."""
        for rank in self._ranks:
            rank.process.kill()
            rank.process.join()
            rank.link.close()
        self._ranks = []

    def _started(self) -> Rank:
        forkserver.set_forkserver_preload(self._imported)
        with mock.patch.dict(os.environ, SETTINGS):
            forkserver.ensure_running()
        context = multiprocessing.get_context("forkserver")
        mine, its_own = context.Pipe()
        process = context.Process(target=serve, args=(its_own,))
        process.start()
        its_own.close()
        return Rank(process, mine)

    def _collect(self, count: int, answers: Queue[tuple[int, bool, Any]]) -> list[Any]:
        found: dict[int, Any] = {}
        while len(found) < count:
            try:
                rank, good, value = answers.get(timeout=LONGEST_S)
            except Empty:
                silent = min(set(range(count)) - set(found))
                raise self._failure(silent, f"no answer within {LONGEST_S:.0f} s") from None
            if not good:
                raise self._failure(rank, value)
            found[rank] = value
        return [found[rank] for rank in range(count)]

    def _failure(self, rank: int, text: str) -> RankFailedError:
        """End all ranks, and name the one that has ended by itself rather than one that waited for it."""
        wait([one.process.sentinel for one in self._ranks], ENDS_S)
        codes = [one.process.exitcode for one in self._ranks]
        self.close()
        for number, code in enumerate(codes):
            if code is not None and (number != rank or text == LINK_LOST):
                return RankFailedError(number, f"ended with {code}")
        return RankFailedError(rank, text)


def _ask(rank: Rank, run: Run, answers: Queue[tuple[int, bool, Any]]) -> None:
    try:
        rank.link.send_bytes(pickle.dumps(run))
        answers.put((run.rank, *pickle.loads(rank.link.recv_bytes())))
    except (EOFError, OSError):
        answers.put((run.rank, False, LINK_LOST))


def serve(link: Connection) -> None:
    """Run what comes, one after another, and answer each; prints go to stderr."""
    os.dup2(2, 1)
    while True:
        try:
            run = pickle.loads(link.recv_bytes())
        except EOFError:
            return
        link.send_bytes(pickle.dumps(_answer(run)))


def _answer(run: Run) -> tuple[bool, Any]:
    import torch
    from torch import distributed
    from torch.distributed.tensor.debug import _clear_sharding_prop_cache

    torch.set_num_threads(1)
    try:
        if run.count > 1:
            at = f"file://{run.store}"
            distributed.init_process_group("gloo", init_method=at, rank=run.rank, world_size=run.count)
        value = run.function(**run.words)
        if run.count > 1:
            distributed.barrier()  # a rank that left at once would cut those that still connect
            distributed.destroy_process_group()
            _clear_sharding_prop_cache()  # type: ignore[no-untyped-call]  # it holds equal meshes of groups that are no more
            gc.collect()  # what a later run forks cannot end the threads of this group
    except Exception:  # noqa: BLE001 - the pool ends all ranks and says it
        return False, traceback.format_exc(limit=-6)
    return True, value
