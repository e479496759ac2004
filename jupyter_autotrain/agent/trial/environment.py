"""The environment a trial's processes see. Pure."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

from jupyter_autotrain.agent import fields
from jupyter_autotrain.agent.wire import TRIAL_VARIABLE


def complete(trial: Mapping[str, object], given: Mapping[str, str]) -> dict[str, str]:
    """Return all variables of the worker.

    They are a search path, the submitter's, those set for the trial, the header's and its secrets. Nothing of the
    process that starts the trial gets in.

    Args:
        trial: `TrialSpec` as JSON.
        given: Where the values of the named secrets are.
    """
    inherited = {"PATH": os.defpath} | _texts(trial.get("environment"))
    named = trial.get("secrets")
    secrets = {name: given[name] for name in named if name in given} if isinstance(named, (list, tuple)) else {}
    return inherited | _additions(trial, inherited) | _texts(trial.get("env")) | secrets


def _additions(trial: Mapping[str, object], inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are set for a trial.

    With GPUs given, exactly these are visible; with none given, what is visible stays as it is. The number of
    CPUs asked, divided among the workers, also bounds the threads of numerical libraries, which would otherwise start
    one per CPU of the machine.
    Hashes of texts, and so the order of sets, are the same in all trials of an experiment: those of the header's seed,
    or of the submitter's `PYTHONHASHSEED`, or of seed 0.
    """
    own: dict[str, str] = {TRIAL_VARIABLE: str(trial["directory"])}
    gpus = trial.get("gpus")
    resources = trial.get("resources")
    seed = trial.get("seed")
    if isinstance(gpus, (list, tuple)) and gpus:
        own["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
    cpus = resources.get("cpus") if isinstance(resources, Mapping) else None
    if isinstance(cpus, (int, float)) and "OMP_NUM_THREADS" not in inherited:
        own["OMP_NUM_THREADS"] = str(max(1, math.ceil(cpus / fields.integer(trial.get("workers"), 1))))
    if isinstance(seed, int):
        first = seed - fields.integer(trial.get("number"), 1) + 1  # the header's: a warm process serves one hash seed
        own["PYTHONHASHSEED"] = str(first % 2**32)
    elif "PYTHONHASHSEED" not in inherited:
        own["PYTHONHASHSEED"] = "0"
    if inherited.get("MPLBACKEND", "").startswith("module://matplotlib_inline"):
        own["MPLBACKEND"] = "Agg"
    return own


def _texts(variables: object) -> dict[str, str]:
    return {str(k): str(v) for k, v in variables.items()} if isinstance(variables, Mapping) else {}
