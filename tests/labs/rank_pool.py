"""Ranks that stay: processes with torch imported, which run one distributed function after another.

A start costs 10 to 25 s on a busy machine, mostly imports; a run in ranks that are there costs its own work. A run that
fails in one rank fails whole: the others are ended, and the next run starts new ones.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import Any

ENDS_S = 1.0  # after which a rank whose link was lost has ended
LONGEST_S = 240.0  # a run, on a machine that others use; the first one pays for the imports


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


class RankPool:
    """Processes that are started when first needed, and ended by `close`.

    Args:
        folder: Where ranks of a run meet.
    """

    def __init__(self, folder: Path) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._folder = folder
        self._runs = 0

    def run(self, count: int, function: Callable[..., Any], **words: Any) -> list[Any]:
        """Return what a function of a module returns in each of `count` ranks of one process group.

        Raises:
            RankFailedError: One of them raised, or ended.
        """
        self._runs += 1
        store = f"{self._folder}/store-{self._runs}"
        while len(self._processes) < count:
            self._processes.append(_started())
        answers: Queue[tuple[int, bool, Any]] = Queue()
        for rank in range(count):
            run = Run(function, words, rank, count, store)
            threading.Thread(target=_ask, args=(self._processes[rank], run, answers), daemon=True).start()
        return self._collect(count, answers)

    def pid(self, rank: int) -> int:
        """Return the process id of a rank that has run before."""
        return self._processes[rank].pid

    def close(self) -> None:
        """End all processes."""
        for process in self._processes:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream:
                    stream.close()
        self._processes = []

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
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(ENDS_S)
        ended = [number for number, process in enumerate(self._processes) if process.poll() is not None]
        by_itself = RankFailedError(rank, text)
        if ended and rank != ended[0]:
            by_itself = RankFailedError(ended[0], f"ended with {self._processes[ended[0]].wait()}")
        self.close()
        return by_itself


def _started() -> subprocess.Popen[bytes]:
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "TRANSFORMERS_VERBOSITY": "error"}
    command = [sys.executable, "-c", f"from {__name__} import serve; serve()"]
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root, env=settings)


def _ask(process: subprocess.Popen[bytes], run: Run, answers: Queue[tuple[int, bool, Any]]) -> None:
    assert process.stdin
    assert process.stdout
    try:
        pickle.dump(run, process.stdin)
        process.stdin.flush()
        answers.put((run.rank, *pickle.load(process.stdout)))
    except (EOFError, OSError, ValueError):
        answers.put((run.rank, False, f"ended with {process.wait()}"))


def serve() -> None:
    """Run what comes on stdin, one after another, and answer each on what was stdout; prints go to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            run = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(_answer(run), answers)
        answers.flush()


def _answer(run: Run) -> tuple[bool, Any]:
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    try:
        if run.count > 1:
            at = f"file://{run.store}"
            distributed.init_process_group("gloo", init_method=at, rank=run.rank, world_size=run.count)
        value = run.function(**run.words)
        if run.count > 1:
            distributed.barrier()  # a rank that left at once would cut those that still connect
            distributed.destroy_process_group()
            gc.collect()  # what a later run forks cannot end the threads of this group
    except Exception:  # noqa: BLE001 - the pool ends all ranks and says it
        return False, traceback.format_exc(limit=-6)
    return True, value
