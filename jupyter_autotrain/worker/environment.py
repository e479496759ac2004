"""The environment a trial's processes see. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_autotrain.core.wire import TRIAL_VARIABLE

# Set by a kernel for itself; a trial has no kernel to answer to.
_OF_THE_KERNEL = ("JPY_PARENT_PID", "JPY_SESSION_NAME", "IPY_INTERRUPT_EVENT")


def additions(trial: Mapping[str, object], inherited: Mapping[str, str]) -> dict[str, str]:
    """The variables that are set for a trial, over those it inherits.

    With GPUs given, exactly these are visible; with none given, what is visible stays as it is. The number of
    CPUs asked also bounds the threads of numerical libraries, which would otherwise start one per CPU of the machine.

    Args:
        trial: `TrialSpec` as JSON.
        inherited: The environment below.
    """
    own: dict[str, str] = {TRIAL_VARIABLE: str(trial["directory"])}
    gpus, resources, seed = trial.get("gpus"), trial.get("resources"), trial.get("seed")
    if isinstance(gpus, list | tuple) and gpus:
        own["CUDA_VISIBLE_DEVICES"] = ",".join(str(gpu) for gpu in gpus)
    cpus = resources.get("cpus") if isinstance(resources, Mapping) else None
    if isinstance(cpus, int | float) and "OMP_NUM_THREADS" not in inherited:
        own["OMP_NUM_THREADS"] = str(max(1, -int(-cpus // 1)))
    if isinstance(seed, int):
        own["PYTHONHASHSEED"] = str(seed % 2**32)
    if inherited.get("MPLBACKEND", "").startswith("module://matplotlib_inline"):
        own["MPLBACKEND"] = "Agg"
    asked = trial.get("env")
    own.update({str(k): str(v) for k, v in asked.items()} if isinstance(asked, Mapping) else {})
    return own


def complete(trial: Mapping[str, object], inherited: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of the worker."""
    kept = {name: value for name, value in inherited.items() if name not in _OF_THE_KERNEL}
    return {**kept, **additions(trial, inherited)}
