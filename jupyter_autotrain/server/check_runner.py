"""Checks of backends in threads of their own: followed step by step, bounded in number and time, cancellable."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Literal

from jupyter_autotrain.core.backend_check import CheckStep
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.server.problems import not_found, problem

_MOST_RUNNING: Final = 4
_MOST_KEPT: Final = 16
_MOST_STEPS: Final = 1000
_LIMIT_S: Final = 900.0
_ID_BYTES: Final = 16

Steps = Generator[CheckStep, None, None]


@dataclass(slots=True)
class BackendCheck:
    """One check, as its thread sees it.

    Attributes:
        steps: What has come of it until now.
        ended_as: Why no step follows; "" while it runs.
    """

    backend: str
    steps: list[CheckStep] = field(default_factory=list)
    ended_as: Literal["", "done", "cancelled", "too long"] = ""
    cancelled: threading.Event = field(default_factory=threading.Event)
    begun_s: float = field(default_factory=time.monotonic)
    thread: threading.Thread | None = None

    @property
    def state(self) -> str:
        """The state that a page shows.

        A check that is cancelled is so at once, also where a host still has to answer.
        """
        return self.ended_as or ("cancelled" if self.cancelled.is_set() else "running")

    def run(self, make_steps: Callable[[Callable[[], bool]], Steps]) -> None:
        """Take the steps until they end or are not wanted any more, and then clean up the work they have begun."""
        with closing(make_steps(self._is_over)) as steps:
            try:
                for step in steps:
                    self.steps.append(step)
                    if self._is_over():
                        break
            except (AutotrainError, OSError) as error:
                self.steps.append(CheckStep("", "check", False, str(error)))
        late = "cancelled" if self.cancelled.is_set() else "too long"
        self.ended_as = late if self._is_over() else "done"  # type: ignore[assignment]  # one of the two words above

    def _is_over(self) -> bool:
        too_long = time.monotonic() - self.begun_s > _LIMIT_S
        return self.cancelled.is_set() or too_long or len(self.steps) >= _MOST_STEPS


class CheckRunner:
    """The checks of a server."""

    def __init__(self) -> None:
        self._checks: dict[str, BackendCheck] = {}
        self._lock = threading.Lock()

    def start(self, backend: str, make_steps: Callable[[Callable[[], bool]], Steps]) -> str:
        """Begin a check, and return its id.

        Args:
            backend: What is checked.
            make_steps: Makes its steps; given a function that says whether they are still wanted to end.

        Raises:
            ProblemError: Too many run already.
        """
        check_id = secrets.token_hex(_ID_BYTES)
        check = BackendCheck(backend)
        with self._lock:
            self._make_room()
            self._checks[check_id] = check
            # A daemon, so that a host that does not answer keeps no server from ending.
            check.thread = threading.Thread(target=check.run, args=(make_steps,), name="check", daemon=True)
            check.thread.start()
        return check_id

    def find(self, check_id: str) -> BackendCheck:
        """Return a check by its id.

        Raises:
            ProblemError: There is none, or it ended long ago.
        """
        with self._lock:
            found = self._checks.get(check_id)
        if found is None:
            raise not_found(f"check {check_id}", "The id that a check was begun with; the last ones are kept.")
        return found

    def _make_room(self) -> None:
        running = sum(not check.ended_as for check in self._checks.values())
        if running >= _MOST_RUNNING:
            raise problem(
                HTTPStatus.CONFLICT, f"{count(running, 'check')} run already.", f"At most {_MOST_RUNNING}.",
                "Wait until one has ended, or cancel one.",
            )  # fmt: skip
        ended = [check_id for check_id, check in self._checks.items() if check.ended_as]
        for check_id in ended[: max(0, len(self._checks) - _MOST_KEPT + 1)]:
            del self._checks[check_id]
