"""The samples that a trial was least sure of, by the file `uncertain.csv` that its cell has written.

A line of it names an entry of `data:`, a file below it, and a number that is larger the less sure the model was:

    data,file,uncertainty
    pool,images/17.png,0.93

The file is a trial's, so it can only name files that the experiment was submitted with: nothing else is sent.
"""

from __future__ import annotations

import csv
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupyter_autotrain.agent import files
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.core.attempt import trial_spec
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.data import DataManifest
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.errors import AutotrainError

FILE: Final = "uncertain.csv"
_COLUMNS: Final = ("data", "file", "uncertainty")
_MOST_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample as a trial has named it, and where it lies on this machine."""

    path: Path
    uncertainty: float


def samples_of(experiment: Experiment, trial: TrialRecord) -> list[Sample]:
    """Return all samples of a trial's file, the least sure first.

    Raises:
        AutotrainError: There is no such file here, or a line of it is not as it must be.
    """
    manifests = _manifests(experiment, trial)
    found = [_sample(number, row, manifests) for number, row in enumerate(_rows(experiment, trial), 2)]
    return sorted(found, key=lambda sample: -sample.uncertainty)


def staged(samples: Sequence[Sample], folder: Path) -> list[tuple[Path, float]]:
    """Copy samples to an empty folder, under names that begin with their ranks, so that no two have one name."""
    copies = []
    for rank, sample in enumerate(samples, 1):
        copy = folder / f"{rank:04}-{sample.path.name}"
        shutil.copyfile(sample.path, copy)
        copies.append((copy, sample.uncertainty))
    return copies


def _manifests(experiment: Experiment, trial: TrialRecord) -> dict[str, DataManifest]:
    context = BackendContext(experiment.home)
    spec = trial_spec(experiment.record.spec, trial)
    found = ((source.name, context.data(spec, source.name)) for source in spec.data)
    return {name: manifest for name, manifest in found if manifest is not None}


def _rows(experiment: Experiment, trial: TrialRecord) -> Iterator[Mapping[str, str]]:
    outputs = {output.name: output for output in experiment.outputs(trial)}
    output = outputs.get(FILE)
    if output is None or output.is_elsewhere:
        where = "is still on another machine" if output else "is not among its files"
        raise AutotrainError(
            f"label: {FILE} of {experiment.name}, trial {trial.number}, {where}.",
            f"A file {FILE} with the columns {', '.join(_COLUMNS)}, written by the cell.",
            f"Run: %autotrain pull {experiment.name}" if output else "See: %autotrain help label",
        )
    text = files.read(experiment.directory(trial), output.source, _MOST_BYTES).decode("utf-8", "replace")
    rows = csv.DictReader(text.splitlines())
    if not set(_COLUMNS) <= set(rows.fieldnames or ()):
        raise _unfit(1, f"has the columns {', '.join(rows.fieldnames or ('nothing',))}")
    yield from rows


def _sample(number: int, row: Mapping[str, str], manifests: Mapping[str, DataManifest]) -> Sample:
    manifest = manifests.get(row["data"] or "")
    if manifest is None:
        raise _unfit(number, f"names {row['data']!r}, which is none of the data that was sent from here")
    below = f"{manifest.name}/{row['file']}" if row["file"] else manifest.name
    if below not in {file.path for file in manifest.files}:
        raise _unfit(number, f"names {row['file']!r}, which is no file of data.{row['data']}")
    try:
        uncertainty = float(row["uncertainty"] or "")
    except ValueError:
        uncertainty = math.nan
    if not math.isfinite(uncertainty):
        raise _unfit(number, f"has the uncertainty {row['uncertainty']!r}")
    return Sample(Path(manifest.root, below), uncertainty)


def _unfit(number: int, what: str) -> AutotrainError:
    return AutotrainError(
        f"label: line {number} of {FILE} {what}.",
        f"Lines such as pool,images/17.png,0.93 below {','.join(_COLUMNS)}.",
        "Correct the cell that writes it, and run it again.",
    )
