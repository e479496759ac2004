"""Measuring the constants of the planner at a place, by an ordinary trial there, and finding them again by its name."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.states import ExperimentState
from jupyter_autotrain.client import clusters
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.lookup import default_home
from jupyter_autotrain.client.submitting import submit
from jupyter_autotrain.core.home import Home, make_private
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.measurement import Measurement
from jupyter_autotrain.errors import AutotrainError, PlanError, StoreError
from jupyter_autotrain.parallel.calibrate import SAMPLES_FILE, probe_source
from jupyter_autotrain.parallel.calibrate.calibration import Calibration, Machine, counted
from jupyter_autotrain.store import Store

MOST_WORKERS: Final = 8  # of a place without GPUs, unless more are asked for
_NAME: Final = re.compile(r"[\w.-]+")  # of a profile


def calibrate(
    backend: str = "local",
    *,
    workers: int | None = None,
    home: Home | None = None,
    say: Callable[[str], object] | None = None,
) -> Calibration:
    """Measure the constants of the planner at a place, by a trial there that takes about a minute, and keep them.

    `plan(model, inputs, "local")` then plans for that place, `plan(model, inputs, "4xlocal")` for 4 ranks of it. The
    place has to be otherwise idle for the figures to hold.

    Args:
        backend: The place: a profile, or a backend that needs none.
        workers: The most ranks that are measured, on one node; unless given, one per GPU, or per CPU up to 8, and 2 at
            least.
        home: Where trial and constants are kept; None means the user's home folder of experiments.
        say: Takes lines about the progress; unless given they are printed.

    Raises:
        HeaderError: The profile is faulty.
        BackendUnavailableError: The place cannot run it.
        AutotrainError: The trial has failed, with its reason, or its measurements cannot be used.
    """
    kept_in = home or default_home()
    tell = say or sys.stdout.write
    node = _node(backend, clusters.inventory(backend, Path.cwd(), os.environ))
    ranks = workers or len(node.accelerators) or max(2, min(MOST_WORKERS, int(node.cpus or 2)))
    cpus = float(node.cpus or ranks)
    resources = {"gpus": len(node.accelerators)} if node.accelerators else {"cpus": cpus}
    tell(f"Measuring at {backend} with up to {ranks} ranks; this takes about a minute.\n")
    experiment = submit(
        f"{probe_source()}\nmain({cpus!r})\n",
        home=kept_in,
        name=f"calibrate-{backend}",
        backend=backend,
        resources={**resources, "workers_per_node": ranks},
    )
    calibration = Calibration.of(backend, _measured(experiment), time.time())
    keep(kept_in, calibration)
    return calibration


def _node(backend: str, found: Inventory | None) -> Node:
    """Return the node that is measured: the first that can run a trial now.

    Raises:
        PlanError: There is no such place, or no node of it is known.
    """
    usable = [node for node in found.nodes if not node.unavailable] if found else []
    if not usable:
        raise PlanError(
            f"There is no place {backend!r} with a node that can run a trial now.",
            "A profile, or a backend that needs none, such as local.",
            "See which there are: %autotrain backends",
        )
    return usable[0]


def _measured(experiment: Experiment) -> Mapping[str, object]:
    """Return what the trial has written, once it has ended.

    Raises:
        AutotrainError: It has failed.
    """
    try:
        experiment.wait()
    except KeyboardInterrupt:
        experiment.stop()
        raise
    if experiment.state is not ExperimentState.SUCCEEDED:
        raise AutotrainError(
            f"The measurement {experiment.name} is {experiment.state}: {' '.join(experiment.why())}",
            "A trial that ends well; it needs torch there.",
            f"See what it printed: %autotrain logs {experiment.name} --stderr",
        )
    with tempfile.TemporaryDirectory(prefix="autotrain-calibrate-") as folder:
        experiment.pull(folder, 1, written_only=True)
        found = files.read_json(folder, SAMPLES_FILE)
    if not isinstance(found, Mapping):
        raise AutotrainError("The trial has written no measurements.", "A JSON object.", "Measure again.")
    return found


def keep(home: Home, calibration: Calibration) -> None:
    """Keep a calibration in a home, in place of an earlier one of the same place."""
    make_private(home)
    home.calibrations.mkdir(mode=0o700, exist_ok=True)
    data = json.dumps(calibration.to_json(), indent=1).encode()
    wire.write_atomically(str(home.calibration(calibration.place)), data)


def calibration_of(home: Home, place: str) -> Calibration | None:
    """Return the calibration of a place; None where it has none, or one of another version.

    Raises:
        PlanError: It is damaged.
    """
    try:
        found = files.read_json(home.calibrations, home.calibration(place).name)
        return Calibration.from_json(found) if isinstance(found, Mapping) else None
    except OSError:
        return None
    except (ValueError, TypeError, KeyError) as fault:
        raise PlanError(
            f"The calibration of {place} cannot be read: {fault}.",
            "One that this version has made.",
            f"Measure again: %autotrain calibrate --backend {place}",
        ) from None


def find(text: str) -> Machine | None:
    """Return the calibrated machine that a cluster's text names, as `local` or `4xlocal`; None where it is none.

    Raises:
        PlanError: More ranks than were measured.
    """
    place, ranks = counted(text)
    if not _NAME.fullmatch(place):
        return None
    calibration = calibration_of(default_home(), place)
    return None if calibration is None else calibration.machine(ranks)


def measured_on(devices: Collection[str], home: Home | None = None) -> list[Measurement]:
    """Return the measurements of plans on some kinds of devices, or at a place of that name, newest first.

    A home that is not there, or cannot be read, has none.
    """
    kept_in = home or default_home()
    if not kept_in.store.exists():
        return []
    try:
        with Store.open(kept_in, is_read_only=True) as store:
            rows = store.measurements()
    except StoreError:
        return []
    return [one for place, _, one in rows if set(one.devices) == set(devices) or {place} == set(devices)]
