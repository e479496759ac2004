"""The one pipeline of every submission: a cell, a decorated function, `submit` and a stored experiment sent again.

capture_settings → capture → Draft → submit_draft: check → before_rerun ─┐
resubmit (its code is there) ───────┴→ send: data, bundle, store, manager
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypedDict

from jupyter_autotrain import capture, tuners
from jupyter_autotrain.agent import durable
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends import create
from jupyter_autotrain.backends.trial_content import saved_attempt
from jupyter_autotrain.client.check import check
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.lookup import find
from jupyter_autotrain.client.requirements import with_requirements
from jupyter_autotrain.client.rerun import Dialogue, before_rerun
from jupyter_autotrain.client.send import send
from jupyter_autotrain.client.waiting import Patience, Progress
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.federated import GLOBAL, check_packages
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Origin, TrialSource
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header import Header

_LIMITS: Final = capture.CaptureLimits()
_LAUNCHED_BY_NAME: Final = frozenset({"tensorflow", "paddle"})  # libraries with a launcher


class CaptureSettings(TypedDict):
    """The settings of a header about capture, as arguments of `capture.capture` and `capture.from_function`."""

    cwd: Path
    parameters: frozenset[str]
    ship: tuple[str, ...]
    limits: capture.CaptureLimits
    not_secrets: tuple[str, ...]
    returns: tuple[str, ...]
    seed: int | None
    trials: int
    variables: tuple[str, ...]
    data: Mapping[str, str]
    setup: tuple[int, ...]


def capture_settings(header: Header, cwd: Path) -> CaptureSettings:
    """Return what a header says about capture.

    Args:
        header: The header.
        cwd: The folder that files travel from.
    """
    ship = header.ship
    return CaptureSettings(
        cwd=cwd,
        parameters=frozenset(header.search),
        ship=ship.patterns,
        limits=replace(_LIMITS, files=ship.limits.files, file_bytes=ship.limits.size),
        not_secrets=header.not_secrets,
        returns=header.returns,
        seed=header.seed,
        trials=header.trial_count,
        variables=header.variables,
        data=header.data_paths,
        setup=header.setup,
    )


@dataclass(frozen=True, slots=True)
class Draft:
    """An experiment that is read and captured, not yet sent.

    Attributes:
        header: Its header.
        captured: Its code and what that needs.
        name: The experiment's name.
        origin: The notebook and session that it comes from.
        cwd: The folder it was captured in.
        environ: Where values of secrets and passed variables are looked up.

    Raises:
        CaptureError: Nothing reports the objective.
    """

    header: Header
    captured: capture.Capture
    name: str
    origin: Origin
    cwd: Path
    environ: Mapping[str, str]

    def __post_init__(self) -> None:
        objective = self.header.objective
        metric = objective[0].metric if objective else ""
        if self.header.mode == "federated":
            metric = metric.removeprefix(GLOBAL)  # of the global model, made of what clients report
        capture.check_reports(self.captured.reports, metric, autolog=self.header.autolog)

    def spec(self) -> ExperimentSpec:
        """Return the spec of the experiment; its bundle is not written yet.

        Raises:
            AutotrainError: Its tuner or early-stopping rule cannot be made here, or a package is missing for it.
        """
        spec = self.header.to_spec(bundle=self.captured.bundle, name=self.name, environ=self.environ)
        spec = tuners.prepared(replace(spec, launcher=self._launcher(spec)))
        if training := spec.federated or spec.flower:
            check_packages(training, by_flower=spec.flower is not None)
        return with_requirements(replace(spec, origin=self.origin), self.cwd)

    def _launcher(self, spec: ExperimentSpec) -> str:
        """Return the header's launcher; where it names none, several workers of TensorFlow or Paddle have their own."""
        if "launcher" in self.header.model_fields_set or spec.resources.ranks == 1:
            return spec.launcher
        used = self.captured.reports.imports & _LAUNCHED_BY_NAME
        return next(iter(used)) if len(used) == 1 else spec.launcher


@dataclass(frozen=True, slots=True)
class Submitted:
    """A submitted experiment, and an earlier run of the same code that still runs."""

    experiment: Experiment
    earlier: Experiment | None


def find_source(reference: str, home: Home, origin: Origin | None) -> TrialSource:
    """Return the trial that `start_from:` names: `digits#3`, or `digits` for its best trial.

    Raises:
        UnknownExperimentError: There is no such experiment.
        StoreError: It has no such trial.
        AutotrainError: It has no best trial, or the trial has saved no checkpoint.
    """
    name, _, digits = reference.rpartition("#") if "#" in reference else (reference, "", "")
    experiment = find(name, home, origin)
    number = int(digits) if digits else experiment.best_trials(1)[0]
    trial = experiment.store.trial(experiment.id, number)
    label = f"{experiment.name}#{number}"
    attempt = saved_attempt(home, trial)
    profile = experiment.record.spec.choice(trial.backend).profile
    if attempt is None and create(profile, BackendContext(home)).capabilities.shares_home:
        raise AutotrainError(
            f"start_from: {label} has saved no checkpoint.",
            "A trial whose cell has called checkpoint.save(...).",
            "Name another one, or run its cell with checkpoints.",
        )
    return TrialSource(experiment.id, number, attempt or trial.attempt, label)


def submit_draft(
    draft: Draft, home: Home, dialogue: Dialogue, progress: Progress, plan: JsonObject | None = None
) -> Submitted:
    """Send a draft; when this returns, the experiment is on disk.

    Args:
        draft: What to send.
        home: Where to keep it.
        dialogue: Tells what is wrong with a backend, and asks what happens to an earlier run.
        progress: Shows how much has been read and written.
        plan: A plan to keep with the experiment.

    Raises:
        AutotrainError: The trial that it is to start from is not there, or has saved nothing.
        BackendUnavailableError: No backend can run it.
        StoreError: It cannot be stored; then nothing was started.
    """
    patience = Patience()
    spec = draft.spec()
    if draft.header.start_from is not None:
        spec = replace(spec, start_from=find_source(draft.header.start_from, home, draft.origin))
    checked = check(spec, home, patience=patience)
    for note in checked.notes:
        dialogue.say(f"{note}\n")
    earlier = before_rerun(home, checked.spec, draft.environ, draft.header.on_rerun, dialogue, patience)
    with progress:
        write = partial(capture.write_bundle, draft.captured, progress=progress.written, cwd=str(draft.cwd), plan=plan)
        experiment = send(home, checked.spec, write, draft.environ, folder=draft.cwd, progress=progress)
    return Submitted(experiment, earlier)


def resubmit(home: Home, record: ExperimentRecord, secrets: Mapping[str, str]) -> Experiment:
    """Submit a stored experiment again, with its data as they are now. When this returns, the new one is on disk.

    Args:
        home: The home of both.
        record: The experiment to submit again.
        secrets: Where the values of its secrets are looked up.

    Raises:
        AutotrainError: Its code is gone, or a secret is not set.
        DataError: What it reads besides is gone.
        StoreError: It could not be stored; then nothing was started.
        ManagerError: No manager can be started.
    """
    bundle = home.bundle(record.id)
    if not (bundle / record.spec.bundle.script).is_file():
        raise AutotrainError(
            f"The code of {record.label} is gone: {bundle} does not hold it.",
            "The captured cell as it was submitted.",
            "Run the notebook cell again.",
        )

    def copy_bundle(folder: Path) -> Bundle:
        _copy_synced(bundle, folder)
        return record.spec.bundle

    return send(home, record.spec, copy_bundle, secrets, folder=Path(record.spec.bundle.cwd or home.root))


def _copy_synced(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True)
    for folder, _, names in os.walk(target):
        for path in [*map(Path(folder).joinpath, names), Path(folder)]:
            if not path.is_symlink():
                durable.sync_path(path)
