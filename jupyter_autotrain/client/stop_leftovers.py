"""What stopped trials have left where they ran: files that are not here, and checkpoints to go on from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from jupyter_autotrain.client import elsewhere
from jupyter_autotrain.core.kept_checkpoints import KeptCheckpoints
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.sizes import format_bytes


def sentences(name: str, trials: Iterable[TrialRecord], directory: Callable[[TrialRecord], Path]) -> tuple[str, ...]:
    """A sentence for each place that still has something.

    Args:
        name: The experiment.
        trials: The stopped trials.
        directory: Where a trial's files are here.
    """
    results_bytes: Counter[str] = Counter()
    checkpoints_bytes: Counter[str] = Counter()
    for trial in trials:
        place = str((trial.ref.data.get("host") if trial.ref else "") or trial.placement.backend)
        results_bytes[place] += sum(elsewhere.sizes(directory(trial)).values())
        kept = KeptCheckpoints.read(directory(trial))
        checkpoints_bytes[place] += kept.size_bytes if kept else 0
    found = []
    for place in sorted(results_bytes):
        parts = []
        if size_bytes := results_bytes[place]:
            parts.append(f"{format_bytes(size_bytes)} of results, which `%autotrain pull {name}` brings")
        if size_bytes := checkpoints_bytes[place]:
            parts.append(f"{format_bytes(size_bytes)} of checkpoints, from which `%autotrain retry {name}` goes on")
        if parts:
            found.append(f"Left on {place}: {'; '.join(parts)}.")
    return tuple(found)
