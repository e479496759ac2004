"""Which trials are on nodes that do not answer: one sentence per node, for every view, and one per trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from jupyter_autotrain.core.records import UnreachableNode
from jupyter_autotrain.core.text_format import clock_time
from jupyter_autotrain.manager.attempt import Attempt, Silence
from jupyter_autotrain.manager.experiment_run import ExperimentRun


def find(run: ExperimentRun, backends: Mapping[str, str], now_s: float) -> list[UnreachableNode]:
    """The nodes with trials of an experiment that do not answer, by name.

    Args:
        run: The experiment.
        backends: Why a backend as a whole does not answer, by its name.
        now_s: The wall clock, for those that are new.
    """
    trials = Counter(name for attempt in run.attempts.values() for name in silent_nodes(attempt, backends))
    since_s = {node.name: node.since_s for node in run.published.nodes}
    return [UnreachableNode(name, since_s.get(name, now_s), trials[name]) for name in sorted(trials)]


def block_reasons(run: ExperimentRun, backends: Mapping[str, str], nodes: Sequence[UnreachableNode]) -> dict[int, str]:
    """Of each trial on such a node: the rest of a sentence that begins with the trial."""
    since = {node.name: clock_time(node.since_s) for node in nodes}
    return {
        number: _sentence(attempt, silence, since)
        for number, attempt in run.attempts.items()
        if (silence := _silence(attempt, backends))
    }


def _sentence(attempt: Attempt, silence: Silence, since: Mapping[str, str]) -> str:
    names = node_names(attempt)
    silent = silence.nodes or names
    cause = "" if "not answer" in silence.reason else f": {silence.reason}"
    if len(names) == 1:
        return f"is on {names[0]}, which does not answer since {since[names[0]]}{cause}"
    told = ", ".join(f"{name} does not answer since {since[name]}" for name in silent)
    rest = ", ".join(name for name in names if name not in silent)
    held = f"; until then {rest} stays taken (`lost_after` of the place limits that)" if rest else ""
    return f"is on {', '.join(names)}; {told}{cause}{held}"


def _silence(attempt: Attempt, backends: Mapping[str, str]) -> Silence | None:
    if reason := backends.get(attempt.placement.backend):
        return Silence(reason)
    return attempt.unreachable or attempt.uncancelled


def silent_nodes(attempt: Attempt, backends: Mapping[str, str]) -> tuple[str, ...]:
    """The nodes of an attempt that do not answer."""
    silence = _silence(attempt, backends)
    return () if silence is None else silence.nodes or node_names(attempt)


def starting_reasons(run: ExperimentRun, before_s: float) -> dict[int, str]:
    """Of each trial that its backend was given before a tick and does not confirm to have: a sentence as above."""
    return {
        number: f"is being started on {', '.join(node_names(attempt))}"
        for number, attempt in run.attempts.items()
        if attempt.is_being_started and attempt.submitted_s < before_s
    }


def node_names(attempt: Attempt) -> tuple[str, ...]:
    """The nodes that an attempt is on; its backend where they are not known."""
    return tuple(placed.node for placed in attempt.placement.nodes) or (attempt.placement.backend,)
