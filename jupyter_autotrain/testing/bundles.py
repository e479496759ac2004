"""Small bundles and trials, written by hand as capture writes them."""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from jupyter_autotrain.agent.json import to_json
from jupyter_autotrain.agent.trial.trial_file import TrialFile
from jupyter_autotrain.backends.local.trial_directory import trial_file_content
from jupyter_autotrain.core.backend import Backend, BackendContext, JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Bundle, Placement, TrialSpec

_Found = TypeVar("_Found")
_LEAST_PAUSE_S = 0.01
_MOST_PAUSE_S = 0.1


def write_bundle(
    directory: Path,
    code: str,
    *,
    data: Mapping[str, object] | None = None,
    files: Mapping[str, str] | None = None,
    source_map: Sequence[str] | None = None,
    python: str = sys.executable,
) -> Bundle:
    """Write a bundle folder.

    Args:
        directory: Where; made when missing.
        code: The script, indented as the caller likes.
        data: Objects for `__autotrain_data__`, by name.
        files: Shipped files: path to text.
        source_map: "cell label:line" per line of the script; `cell 1` throughout when not given.
        python: The interpreter of its trials.
    """
    script = textwrap.dedent(code)
    lines = source_map if source_map is not None else [f"cell 1:{n + 1}" for n in range(script.count("\n") + 1)]
    for folder in (directory, directory / "data", directory / "files"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (directory / "main.py").write_text(script, encoding="utf-8")
    for name, value in (data or {}).items():
        (directory / "data" / f"{name}.pkl").write_bytes(pickle.dumps(value))
    for path, text in (files or {}).items():
        target = directory / "files" / path
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    bundle = Bundle(sha256=_digest(directory), python=python, source_map=tuple(lines), files=tuple(files or ()))
    (directory / "bundle.json").write_text(json.dumps(to_json(bundle)), encoding="utf-8")
    return bundle


def _digest(directory: Path) -> str:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(directory)}\n" for path in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def trial_of(
    home: Home,
    code: str,
    *,
    experiment_id: str = "e1",
    number: int = 1,
    python: str = sys.executable,
    **spec: object,
) -> TrialSpec:
    """Return a trial of its own experiment, with its bundle written; `spec` sets fields of `TrialSpec`."""
    bundle = home.bundle(experiment_id)
    if not (bundle / "main.py").exists():
        write_bundle(bundle, code, python=python)
    attempt = spec.pop("attempt", 1)
    assert isinstance(attempt, int)
    digest = json.loads((bundle / "bundle.json").read_text())["sha256"]
    return TrialSpec(experiment_id, number, attempt, digest, **spec)  # type: ignore[arg-type] # by name


def trial_file(home: Home, trial: TrialSpec) -> TrialFile:
    """Return the content of `trial.json` of a trial that the local backend runs."""
    return trial_file_content(trial, Placement(), Profile("local", "local"), BackendContext(home))


def wait_until(condition: Callable[[], _Found | None], what: str, *, within_s: float = 240.0) -> _Found:
    """Wait for a condition to hold; gives what it gave then.

    Raises:
        AssertionError: When it does not hold in time.
    """
    begun = time.monotonic()
    while not (found := condition()):
        waited_s = time.monotonic() - begun
        assert waited_s < within_s, f"after {within_s:g} s still waiting for: {what}"
        time.sleep(min(max(_LEAST_PAUSE_S, waited_s / 20), _MOST_PAUSE_S))  # asking is work, too
    return found


def wait_for_end(backend: Backend, ref: JobRef, *, within_s: float = 240.0) -> JobStatus:
    """Wait until a job has ended beyond doubt; gives its status. Errors as `wait_until`."""

    def final() -> JobStatus | None:
        status = backend.poll([ref])[0]
        return status if status.state.is_final and not status.doubt else None

    return wait_until(final, f"the end of {ref.job_id}", within_s=within_s)
