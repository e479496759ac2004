"""The checkpoints of a trial that goes on at another backend than the one that has them: they come by the home."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain.core.backend import Backend
from jupyter_autotrain.core.kept_checkpoints import KeptCheckpoints
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.manager.experiment_run import ExperimentRun

_log = logging.getLogger(__name__)


def kept_of_attempt_before(run: ExperimentRun, number: int) -> KeptCheckpoints | None:
    """The checkpoints of a trial's attempt before, as far as only its backend has them."""
    attempt = run.trials[number].attempt
    if attempt == 1:
        return None
    kept = KeptCheckpoints.read(run.context.home.trial(run.id, number, attempt - 1))
    return kept if kept is not None and kept.sizes else None


@dataclass(frozen=True, slots=True)
class MovedCheckpoints:
    """Checkpoints that are needed elsewhere.

    Attributes:
        kept: What the home has not got.
        backend: The one that has it.
        directory: The home's directory of the attempt that saved it.
    """

    kept: KeptCheckpoints
    backend: Backend
    directory: Path

    def bring_home(self, tell: Callable[[str], None]) -> str:
        """Copy them into the home, the small ones first; gives a warning for the user where some stay, else "".

        What has come stays when this is cut short, and does not come again.

        Args:
            tell: Takes what is being done: the rest of a sentence that begins with the trial.
        """
        left = self.kept
        for path, size_bytes in sorted(left.sizes.items(), key=lambda one: one[1]):
            size = format_bytes(left.size_bytes)
            tell(f"waits for its checkpoints, of which {size} are to come from {left.ref.backend}")
            try:
                self.backend.fetch(left.ref, path, str(self.directory / path))
            except Exception as error:  # noqa: BLE001 - whatever a plugin raises: the trial goes on without
                _log.warning("%s of %s (%d bytes) did not come: %s", path, left.ref.job_id, size_bytes, error)
                found = error.found if isinstance(error, AutotrainError) else error
                return f"goes on without {size} of its checkpoints, which stay on {left.ref.backend}: {found}"
            left = left.without(path)
            left.write(self.directory)
        tell("")
        return ""
