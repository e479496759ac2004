"""Checks of a spec before it is submitted: whether its backends can run it, and what the first would receive.

What was found when a distant backend was checked for a cell: for some minutes it need not be asked again. A file in
the home, so that all notebooks know it; only success is remembered.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from jupyter_autotrain import backends
from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import to_json
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import manager_client, requirements
from jupyter_autotrain.client.waiting import CELL_S, Patience
from jupyter_autotrain.core.attempt import trial_spec
from jupyter_autotrain.core.backend import Backend, BackendContext, Probe, Submission
from jupyter_autotrain.core.backend_check import TrialCheckingBackend
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import BackendChoice
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.spec import ExperimentSpec, Placement, TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError, DataError

_KNOWN_S: Final = 600.0


class CheckMemory:
    """Of one profile, and of all that a spec needs there.

    Args:
        home: Where it is kept; nothing is where there is no home yet.
        choice: The profile, with what the spec sets for it.
        spec: What is to be submitted.
    """

    def __init__(self, home: Home, choice: BackendChoice, spec: ExperimentSpec) -> None:
        bundle = spec.bundle
        known = (choice.options, spec.python_environment, bundle.python_packages, bundle.python_version)
        asked = [choice.profile.key, sorted(requirements.paths(spec, choice.profile.name)), *map(to_json, known)]
        content = json.dumps(asked, sort_keys=True)
        self._home = home
        self._path = home.checks / hashlib.sha256(content.encode()).hexdigest()[:24]

    def recall(self) -> list[str] | None:
        """Return the differences that were found; None where it has to be checked."""
        try:
            age_s = time.time() - self._path.stat().st_mtime
            lines = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return list(map(str, lines)) if 0.0 <= age_s < _KNOWN_S else None

    def keep(self, differences: list[str]) -> None:
        """Remember a check that found nothing wrong."""
        with suppress(OSError):  # then it is checked again
            if self._home.root.exists():
                self._path.parent.mkdir(mode=0o700, exist_ok=True)
                wire.write_atomically(str(self._path), json.dumps(differences).encode())

    def forget(self) -> None:
        """Remember nothing of it."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class CheckedSpec:
    """A spec that can be run.

    Attributes:
        spec: With the backends that can do what it asks.
        notes: How the packages of backends differ from those here, and which backends are left out or cannot be used
            now; a line each.
    """

    spec: ExperimentSpec
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Finding:
    """The outcome of checking one backend.

    Attributes:
        missing: What it cannot do.
        probe: Whether it can be used; usable where it was not asked.
        error: Why the cell cannot run there as it is: its data or its packages are not there.
        differences: Of its packages.
        is_silent: Whether it has not answered in time, so that nothing of it is known.
    """

    choice: BackendChoice
    missing: tuple[str, ...] = ()
    probe: Probe = Probe(True, "")  # noqa: RUF009 - frozen
    error: AutotrainError | None = None
    differences: list[str] = field(default_factory=list)
    is_silent: bool = False

    @property
    def name(self) -> str:
        return self.choice.profile.name

    @property
    def can_run(self) -> bool:
        return not self.missing and self.probe.usable and self.error is None and not self.is_silent

    @property
    def is_kept(self) -> bool:
        """Return whether it gets trials, now or when it can be used again."""
        return self.can_run or self.is_silent or not (self.missing or self.error or self.probe.is_lasting)


def check(spec: ExperimentSpec, home: Home, *, afresh: bool = False, patience: Patience | None = None) -> CheckedSpec:
    """Make sure that one of the spec's backends can be used from here and has what the spec asks of it.

    A backend that cannot do it is left out; one that only does not answer now stays, and gets trials when it does.
    A manager that runs connects to what is asked here at the same time. No backend is waited for longer than `patience`
    allows: then a note says that it could not be asked, and the manager finds out.

    Args:
        spec: What is to be submitted.
        home: Where; it remembers for ten minutes what was found of a distant backend.
        afresh: True to ask all backends, whatever is remembered; nothing is submitted, so the manager is told nothing.
        patience: How long to wait for their answers.

    Raises:
        BackendUnavailableError: No backend can; names everything that is missing.
        DataError: What `data:` says is there already is nowhere, or not with a client.
    """
    findings = _ask_all(spec, home, patience or Patience(), afresh=afresh)
    if not any(finding.can_run or finding.is_silent for finding in findings):
        raise _refusal(findings)
    if spec.federated and (unfit := [finding for finding in findings if not finding.is_kept]):
        raise _refusal(unfit)
    kept = tuple(finding.choice for finding in findings if finding.is_kept)
    notes = requirements.notes(spec)
    for finding in findings:
        notes += finding.differences if finding.can_run else [_note(finding)]
    return CheckedSpec(replace(spec, backends=kept), tuple(notes))


def _ask_all(spec: ExperimentSpec, home: Home, patience: Patience, *, afresh: bool) -> list[_Finding]:
    """Ask all backends of a spec at the same time."""
    calls = [partial(_examine, spec, home, choice, afresh=afresh) for choice in spec.backends]
    answers = zip(spec.backends, patience.ask(calls), strict=True)
    return [finding or _Finding(choice, is_silent=True) for choice, finding in answers]


def _examine(spec: ExperimentSpec, home: Home, choice: BackendChoice, *, afresh: bool) -> _Finding:
    with closing(backends.create(choice.profile, BackendContext(home))) as backend:
        if missing := tuple(requirements.missing(spec, backend)):
            return _Finding(choice, missing)
        if backend.capabilities.shares_home:
            return _ask(spec, choice, backend)
        memory = CheckMemory(home, choice, spec)
        remembered = None if afresh else memory.recall()
        if remembered is not None:
            return _Finding(choice, differences=remembered)
        if not afresh:
            manager_client.prepare(home, choice.profile)
        finding = _ask(spec, choice, backend)
        if finding.can_run:
            memory.keep(finding.differences)
        else:
            memory.forget()
        return finding


def _ask(spec: ExperimentSpec, choice: BackendChoice, backend: Backend) -> _Finding:
    probe = backend.probe()
    if not probe.usable:
        return _Finding(choice, probe=probe)
    try:
        requirements.check_data(spec, backend)
        notes = list(_check_trial(spec, choice, backend))
        return _Finding(choice, differences=notes + requirements.check_packages(spec, backend))
    except (DataError, BackendError) as error:
        return _Finding(choice, error=error)


def _check_trial(spec: ExperimentSpec, choice: BackendChoice, backend: Backend) -> Sequence[str]:
    """Ask a backend that can say so whether it would take the first trial; gives its notes."""
    if not isinstance(backend, TrialCheckingBackend):
        return ()
    return backend.check_trial(_first_trial(requirements.with_sizes(replace(spec, backends=(choice,)))))


def _first_trial(spec: ExperimentSpec) -> TrialSpec:
    """Return the first trial of a spec at its first backend; there it is a client's where the spec has clients."""
    if spec.federated is None:
        return trial_spec(spec, TrialRecord("dry-run", 1, TrialState.WAITING, {}))
    number = spec.federated.first_at(spec.backends[0].profile.name)
    params = {"client": spec.federated.clients[number - 1].name}
    return trial_spec(spec, TrialRecord("dry-run", number, TrialState.WAITING, params))


def _note(finding: _Finding) -> str:
    name = finding.name
    if finding.is_silent:
        return (
            f"Backend {name!r} could not be asked: no answer within {CELL_S:g} s. "
            "Trials start there when it answers; what it lacks is told then."
        )
    if finding.missing:
        return f"Backend {name!r} is left out, it cannot do this: {'; '.join(finding.missing)}."
    if finding.error is not None:
        return f"Backend {name!r} is left out: {' '.join(finding.error.found.split())}"
    if finding.probe.is_lasting:
        return f"Backend {name!r} is left out, it cannot be used here: {finding.probe.reason}"
    return f"Backend {name!r} gets trials as soon as it can be used: {finding.probe.reason}"


def _refusal(findings: Sequence[_Finding]) -> AutotrainError:
    """Why no backend can run it: the nearest thing to running first."""
    for finding in findings:
        if finding.error is not None:
            return finding.error
    silent = [one for one in findings if not one.missing]
    if silent:
        return BackendUnavailableError(
            " ".join(f"The backend {one.name!r} cannot be used here: {one.probe.reason}" for one in silent),
            "Expected a backend that can be used from here.",
            "See which are with '%autotrain backends', and why one is not with '%autotrain backends check NAME'.",
        )
    return BackendUnavailableError(
        " ".join(f"The backend {one.name!r} cannot do this: {'; '.join(one.missing)}." for one in findings),
        "The header may ask only for what its backend has.",
        "Remove these keys, or choose another backend ('%autotrain backends' lists what each can do).",
    )


def preview(spec: ExperimentSpec, home: Home) -> Submission:
    """Return what the backend would receive for the first trial; nothing is stored or started."""
    profile = spec.backends[0].profile

    def render() -> Submission:
        with closing(backends.create(profile, BackendContext(home))) as backend:
            return backend.render(_first_trial(spec), Placement())

    return Patience().ask_one(profile.name, render)
