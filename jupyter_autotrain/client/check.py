"""Checks of a spec before it is submitted: whether its backends can run it, and what the first would receive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from jupyter_autotrain import backends
from jupyter_autotrain.client import manager_client, python_environment, requirements
from jupyter_autotrain.client.check_memory import CheckMemory
from jupyter_autotrain.client.patience import CELL_S, Patience
from jupyter_autotrain.core.attempt import trial_spec
from jupyter_autotrain.core.backend import Backend, BackendContext, Probe, Submission
from jupyter_autotrain.core.backend_check import TrialCheckingBackend
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import BackendChoice
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.spec import ExperimentSpec, Placement, TrialSpec
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError, DataError


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
    """What is wrong with a backend.

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
    def can_run(self) -> bool:
        return not self.missing and self.probe.usable and self.error is None and not self.is_silent

    @property
    def is_kept(self) -> bool:
        """Whether it gets trials, now or when it can be used again."""
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
        DataError: What `data:` says is there already is nowhere.
    """
    calls = [partial(_examine, spec, home, choice, afresh=afresh) for choice in spec.backends]
    answers = zip(spec.backends, (patience or Patience()).ask(calls), strict=True)
    findings = [finding or _Finding(choice, is_silent=True) for choice, finding in answers]
    if not any(finding.can_run or finding.is_silent for finding in findings):
        raise _refusal(findings)
    kept = tuple(finding.choice for finding in findings if finding.is_kept)
    notes = python_environment.notes(spec)
    for finding in findings:
        notes += finding.differences if finding.can_run else [_note(finding)]
    return CheckedSpec(replace(spec, backends=kept), tuple(notes))


def _examine(spec: ExperimentSpec, home: Home, choice: BackendChoice, *, afresh: bool) -> _Finding:
    backend = backends.create(choice.profile, BackendContext(home))
    try:
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
    finally:
        backend.close()


def _ask(spec: ExperimentSpec, choice: BackendChoice, backend: Backend) -> _Finding:
    probe = backend.probe()
    if not probe.usable:
        return _Finding(choice, probe=probe)
    try:
        requirements.check_data(spec, backend)
        notes = list(_check_trial(spec, choice, backend))
        return _Finding(choice, differences=notes + python_environment.check_packages(spec, backend))
    except (DataError, BackendError) as error:
        return _Finding(choice, error=error)


def _check_trial(spec: ExperimentSpec, choice: BackendChoice, backend: Backend) -> Sequence[str]:
    """Ask a backend that can say so whether it would take the first trial; gives its notes."""
    if not isinstance(backend, TrialCheckingBackend):
        return ()
    return backend.check_trial(_first_trial(requirements.with_sizes(replace(spec, backends=(choice,)))))


def _first_trial(spec: ExperimentSpec) -> TrialSpec:
    return trial_spec(spec, TrialRecord("dry-run", 1, TrialState.WAITING, {}))


def _note(finding: _Finding) -> str:
    name = finding.choice.profile.name
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
            " ".join(
                f"The backend {one.choice.profile.name!r} cannot be used here: {one.probe.reason}" for one in silent
            ),
            "Expected a backend that can be used from here.",
            "See which are with '%autotrain backends', and why one is not with '%autotrain backends check NAME'.",
        )
    return BackendUnavailableError(
        " ".join(
            f"The backend {one.choice.profile.name!r} cannot do this: {'; '.join(one.missing)}." for one in findings
        ),
        "The header may ask only for what its backend has.",
        "Remove these keys, or choose another backend ('%autotrain backends' lists what each can do).",
    )


def preview(spec: ExperimentSpec, home: Home) -> Submission:
    """What the backend would receive for the first trial; nothing is stored or started."""
    profile = spec.backends[0].profile

    def render() -> Submission:
        backend = backends.create(profile, BackendContext(home))
        try:
            return backend.render(_first_trial(spec), Placement())
        finally:
            backend.close()

    return Patience().ask_one(profile.name, render)
