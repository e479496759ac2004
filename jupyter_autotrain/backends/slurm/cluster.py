"""What the Slurm backend needs of a cluster: Slurm's commands, and the trial directories that its nodes share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from jupyter_autotrain.core.backend import Chunk, Cursor, JobRef
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendError

MOVED = "moved"  # in the directory of a job that ran elsewhere: its checkpoints, below their digest


class CodeGoneError(BackendError):
    """The code of a trial was removed from the cluster after it was sent, as another experiment with the same was."""

    def __init__(self) -> None:
        super().__init__(
            "The code of the trial was removed from the cluster before Slurm had the trial.",
            "It stays while an experiment there needs it.",
            "Retry.",
        )


class Cluster(Protocol):
    """Where Slurm's commands run, and where the trial directories lie as the nodes see them."""

    shares_home: bool  # the trial directories are the home's own

    def ask(self, call: str, **content: object) -> JsonValue:
        """Ask the `SlurmController` there.

        Raises:
            BackendError: Slurm refuses, or does not answer.
            BackendUnavailableError: The login node does not answer.
        """
        ...

    def ref_data(self, job_id: str) -> JsonObject:
        """What a `JobRef` of this job holds; `directory` is what the controller calls its trial directory."""
        ...

    def trials_folder(self) -> str:
        """What the controller calls the folder of all trial directories of this home."""
        ...

    def experiments_there(self) -> Mapping[str, int]:
        """As `TrialFilesBackend.experiments_there`."""
        ...

    def remove_experiments(self, experiments: Collection[str]) -> None:
        """As `TrialFilesBackend.remove_experiments`."""
        ...

    def send_bundle(self, trial: TrialSpec) -> str:
        """Make the bundle of a trial available to the nodes; gives its path there."""
        ...

    def forget_bundle(self, path: str) -> None:
        """Have a bundle sent again the next time: it is gone from there."""
        ...

    def send_checkpoints(self, kept: Path, job_id: str) -> str:
        """Make checkpoints that the home has of a job elsewhere available to the nodes; gives their path there.

        They lie in the directory that the job would have there, and go with it.
        """
        ...

    def place_data(self, trial: TrialSpec, limit_bytes: int | None) -> JsonObject:
        """Make the data of a trial available to the nodes; gives what `trial.json` says of it, where it changes.

        Raises:
            DataError: It was changed since the submission.
        """
        ...

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """As `Backend.read`."""
        ...

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        """As `Backend.put`."""
        ...

    def fetch(self, ref: JobRef, path: str, target: str) -> None:
        """As `Backend.fetch`."""
        ...

    def sizes(self, ref: JobRef, path: str) -> dict[str, int]:
        """As `Backend.sizes`."""
        ...

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:
        """As `Backend.missing_paths`."""
        ...

    def close(self) -> None:
        """As `Backend.close`."""
        ...
