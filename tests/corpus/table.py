"""The table of a corpus, for people."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from tests.corpus.outcome import VERDICTS, Outcome


def table(outcomes: Sequence[Outcome]) -> str:
    """Verdicts by project, the time of submissions, and one line for each cell that is not equal."""
    projects = sorted({_project(outcome) for outcome in outcomes})
    rows = [_row(name, _of_project(name, outcomes)) for name in projects]
    head = f"{'project':44}{'cells':>7}" + "".join(f"{verdict:>10}" for verdict in VERDICTS)
    parts = [head, *rows, _row("all", outcomes), "", _variables(outcomes), _times(outcomes), ""]
    return "\n".join([*parts, *(_line(outcome) for outcome in outcomes if outcome.verdict != "equal")])


def _of_project(name: str, outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if _project(outcome) == name]


def _project(outcome: Outcome) -> str:
    return outcome.notebook.partition("/")[0]


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    counts = Counter(outcome.verdict for outcome in outcomes)
    judged = len(outcomes) - counts["left out"]
    return f"{name[:43]:44}{judged:>7}" + "".join(f"{counts[verdict]:>10}" for verdict in VERDICTS)


def _variables(outcomes: Sequence[Outcome]) -> str:
    compared = sum(outcome.compared for outcome in outcomes)
    left_out = sum(len(outcome.left_out) for outcome in outcomes)
    alike = sum(outcome.verdict == "equal" and bool(outcome.why) for outcome in outcomes)
    return f"{compared} variables compared, {left_out} vary from run to run; {alike} cells end with an error here too"


def _times(outcomes: Sequence[Outcome]) -> str:
    taken = [
        ("capture and submit", [outcome.submit_s for outcome in outcomes if outcome.submit_s is not None]),
        ("of it processor time", [outcome.submit_cpu_s for outcome in outcomes if outcome.submit_cpu_s is not None]),
    ]
    return "\n".join(f"{name}: {_quantiles(times)}" for name, times in taken)


def _quantiles(times_s: Sequence[float]) -> str:
    if len(times_s) < 2:
        return "too few"
    p95_s = statistics.quantiles(times_s, n=20)[-1]
    return f"median {statistics.median(times_s):.3f} s, p95 {p95_s:.3f} s, most {max(times_s):.3f} s"


def _line(outcome: Outcome) -> str:
    why = " ".join(outcome.why.split())
    told = f" | told: {' / '.join(outcome.notice)}" if outcome.notice else ""
    return f"{outcome.verdict}: {outcome.notebook} cell {outcome.cell}: {why}{told}"
