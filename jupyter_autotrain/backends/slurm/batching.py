"""Submits that come together go to Slurm together: one call of `sbatch`, one array."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from jupyter_autotrain.core.json import JsonObject

WINDOW_S = 0.02  # a search submits its first trials within a few milliseconds
_STEPS = 4  # of the window; it ends with a step in which none came
MOST_TASKS = 500  # of one array; clusters allow 1,000 or more


class Batcher:
    """Collects tasks with the same script for a moment, and hands them over in one call.

    Args:
        submit: Hands tasks with their script over.
        window_s: How long the first of them waits for others at most; much less where none come.
    """

    def __init__(self, submit: Callable[[Sequence[JsonObject], str], None], window_s: float = WINDOW_S) -> None:
        self._submit = submit
        self._window_s = window_s
        self._lock = threading.Lock()
        self._waiting: dict[str, list[tuple[JsonObject, Future[None]]]] = {}

    def submit(self, task: JsonObject, script: str) -> None:
        """Hand a task over; returns when Slurm has it.

        Raises:
            AutotrainError: Whatever handing the batch over raises.
        """
        done: Future[None] = Future()
        with self._lock:
            group = self._waiting.get(script)
            is_first = group is None or len(group) >= MOST_TASKS
            if group is None or is_first:
                group = self._waiting[script] = []
            group.append((task, done))
        if is_first:
            self._wait_for_others(group)
            self._hand_over(group, script)
        done.result()

    def _wait_for_others(self, group: list[tuple[JsonObject, Future[None]]]) -> None:
        for _ in range(_STEPS):
            before = len(group)
            time.sleep(self._window_s / _STEPS)
            if len(group) == before:
                return

    def _hand_over(self, group: list[tuple[JsonObject, Future[None]]], script: str) -> None:
        with self._lock:
            if self._waiting.get(script) is group:
                del self._waiting[script]
        unique: dict[str, JsonObject] = {str(task["directory"]): task for task, _ in group}
        try:
            self._submit(list(unique.values()), script)
        except BaseException as error:  # noqa: BLE001 - every waiter gets it
            for _, done in group:
                done.set_exception(error)
            return
        for _, done in group:
            done.set_result(None)
