"""The checkpoints of a trial that goes on at another backend than the one that has them: they come by the home.

All of them come, or the trial begins anew and says so: it never goes on from a part of them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from jupyter_autotrain.core.backend import Backend
from jupyter_autotrain.core.kept_checkpoints import KeptCheckpoints
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError
from jupyter_autotrain.manager.context import Clocks

_PATIENCE_S = 60.0  # with a backend that does not answer, for each file
_PAUSE_S = 2.0
_log = logging.getLogger(__name__)


def begun_anew(trial: TrialSpec, kept: KeptCheckpoints, reason: str) -> TrialSpec:
    """The attempt without the checkpoints of the one before; the trial itself tells its user of that."""
    size = format_bytes(kept.size_bytes)
    note = f"begins anew: {size} of its checkpoints stay on {kept.ref.backend}: {reason}"
    return replace(trial, resume_attempt=None, resume_note=note)


@dataclass(slots=True, eq=False)
class CheckpointMove:
    """Brings checkpoints into the home that are needed elsewhere; one thread does, another one may give it up.

    Args:
        kept: What the home has not got.
        backend: The one that has it.
        directory: The home's directory of the attempt that saved it.
        clocks: For waiting.
    """

    kept: KeptCheckpoints
    backend: Backend
    directory: Path
    clocks: Clocks
    _outcome: Literal["", "over", "abandoned"] = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def abandon(self) -> bool:
        """Give it up, so that the trial is not submitted; False when it is over already."""
        return self._end("abandoned")

    def _end(self, outcome: Literal["over", "abandoned"]) -> bool:
        with self._lock:
            self._outcome = self._outcome or outcome
            return self._outcome == outcome

    def bring_home(self, trial: TrialSpec, tell: Callable[[str], None]) -> TrialSpec | None:
        """Copy them into the home, the small ones first; what has come does not come again when this is cut short.

        Args:
            trial: The attempt that goes on from them.
            tell: Takes what is being done: the rest of a sentence that begins with the trial.

        Returns:
            What is to be submitted; None where the move was given up.
        """
        left = self.kept
        try:
            for path, _ in sorted(self.kept.sizes.items(), key=lambda one: one[1]):
                if self._outcome:
                    return None
                size = format_bytes(left.size_bytes)
                tell(f"waits for its checkpoints, of which {size} are to come from {left.ref.backend}")
                self._fetch(path)
                left = left.without(path)
                left.write(self.directory)
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises: the trial goes on without
            _log.warning("the checkpoints of %s did not come: %s", left.ref.job_id, error)
            found = error.found if isinstance(error, AutotrainError) else str(error)
            trial = begun_anew(trial, left, found)
        tell("")
        return trial if self._end("over") else None

    def _fetch(self, path: str) -> None:
        """Bring one file; a backend that does not answer for a moment is waited for."""
        deadline_s = self.clocks.tick_s() + _PATIENCE_S
        while True:
            try:
                return self.backend.fetch(self.kept.ref, path, str(self.directory / path))
            except BackendUnavailableError:
                if self._outcome or self.clocks.tick_s() >= deadline_s:
                    raise
            self.clocks.pause(_PAUSE_S)
