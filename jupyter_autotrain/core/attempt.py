"""One attempt of a trial: the specification that a backend takes, and checkpoints that only its backend has.

The home notes such checkpoints for the attempt that follows. While some are noted, the home's own folder of that
attempt's checkpoints is a part of them, which no attempt goes on from: the newest would be missing, or a model without
its optimizer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.json import JsonValue, from_json, to_json
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.data import DataSource
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.spec import ExperimentSpec, TrialSpec


def trial_spec(spec: ExperimentSpec, trial: TrialRecord) -> TrialSpec:
    """Return the present attempt of a trial, with a seed shifted by the trial's number, from 0.

    A later attempt continues from the last checkpoints of those before, the first one from those of its source.
    """
    client = str(trial.params["client"]) if spec.federated else ""
    return TrialSpec(
        experiment_id=trial.experiment_id,
        number=trial.number,
        attempt=trial.attempt,
        bundle_sha256=spec.bundle.sha256,
        script=spec.bundle.script,
        params=trial.params,
        seed=None if spec.seed is None else spec.seed + trial.number - 1,
        objective=spec.objective.metric if spec.objective and not spec.federated else "",
        resources=spec.resources,
        launcher=spec.launcher,
        elastic=spec.elastic,
        timeout_s=spec.timeout_s,
        post_mortem=spec.post_mortem,
        stall_s=spec.stall_s if spec.resources.ranks > 1 else None,
        environment=spec.environment,
        env=spec.env,
        python_environment=spec.python_environment,
        python_packages=spec.bundle.python_packages,
        secrets=spec.secrets,
        returns=spec.returns,
        autolog=spec.autolog,
        data=_data(spec, client),
        fetch_limit_bytes=spec.fetch_limit_bytes,
        source=trial.source,
        resume_attempt=trial.attempt - 1 if trial.attempt > 1 or trial.source else None,
        client=client,
        flower=spec.flower,
        options=spec.choice(trial.placement.backend).options,
    )


def _data(spec: ExperimentSpec, client: str) -> tuple[DataSource, ...]:
    """Return the data of a trial: a client learns its own paths, and none of the others'."""
    own = spec.federated.client(client).data if spec.federated else {}
    return tuple(replace(source, local_path="", path=own.get(source.name, source.path)) for source in spec.data)


@dataclass(frozen=True, slots=True)
class KeptCheckpoints:
    """The checkpoints that an attempt has saved and the home has not got.

    Attributes:
        ref: The job that saved it.
        sizes: The bytes of each file, by its path in the trial directory.
    """

    ref: JobRef
    sizes: Mapping[str, int]

    @classmethod
    def read(cls, directory: Path) -> KeptCheckpoints | None:
        """Return the note in the home's directory of an attempt; None where there is no such note."""
        try:
            kept = from_json(cls, cast("JsonValue", files.read_json(directory, wire.KEPT_FILE)))
        except (OSError, ValueError, TypeError):
            return None
        return kept if _is_sound(kept) else None

    def write(self, directory: Path) -> None:
        """Write this note in the home's directory of the attempt, in place of the one before.

        Raises:
            OSError: It cannot be written.
        """
        wire.write_atomically(str(directory / wire.KEPT_FILE), json.dumps(to_json(self)).encode())

    def without(self, path: str) -> KeptCheckpoints:
        """Return the note for a home that has got one more of the files."""
        return replace(self, sizes={name: size for name, size in self.sizes.items() if name != path})

    @property
    def size_bytes(self) -> int:
        """The size of all files in bytes."""
        return sum(self.sizes.values())


def _is_sound(kept: object) -> bool:
    """Tell whether a note is one that `write` writes.

    A trial that runs in the home can have written it itself.
    """
    if not isinstance(kept, KeptCheckpoints) or not isinstance(kept.ref, JobRef):
        return False
    texts: tuple[object, ...] = (kept.ref.backend, kept.ref.job_id)
    mappings: tuple[object, ...] = (kept.ref.data, kept.sizes)
    if not all(isinstance(one, str) for one in texts) or not all(isinstance(one, Mapping) for one in mappings):
        return False
    return all(map(_is_file, kept.sizes.items()))


def _is_file(entry: tuple[str, object]) -> bool:
    path, size_bytes = entry
    folder, *inside = path.split("/")
    is_inside = folder == wire.CHECKPOINTS and bool(inside) and not {"", ".", ".."} & set(inside)
    return is_inside and isinstance(size_bytes, int) and size_bytes >= 0
