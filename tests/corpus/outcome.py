"""Outcome of one training cell, and the rule that says so."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

VERDICTS = ("equal", "told", "refused", "different", "failed", "left out")
_HEAD = "In a trial, other than here:"
_VARYING = re.compile(r"random|seed|generator|the order of", re.IGNORECASE)
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class Outcome:
    """One training cell.

    Attributes:
        notebook: Its path in the corpus.
        cell: The number of the cell among the code cells, from 1.
        verdict: One of `VERDICTS`.
        why: What differs, what was refused, or why it was left out; empty when all is equal.
        notice: The lines of the notice that tell what differs in a trial.
        compared: How many variables were compared.
        left_out: Variables that differ in themselves from run to run, or cannot be pickled.
        submit_s: From running the cell with its first line to the acknowledgement; None when refused.
        submit_cpu_s: The processor time of it in the kernel.
    """

    notebook: str
    cell: int
    verdict: str = "left out"
    why: str = ""
    notice: Sequence[str] = ()
    compared: int = 0
    left_out: Sequence[str] = field(default_factory=list)
    submit_s: float | None = None
    submit_cpu_s: float | None = None

    def keep(self, path: Path) -> None:
        """Append it to a file of outcomes."""
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(asdict(self), ensure_ascii=False)}\n")


def load(path: Path) -> list[Outcome]:
    """Return the outcomes kept in a file."""
    return [Outcome(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def told_lines(notice: str) -> list[str]:
    """Return the lines of a notice that tell what differs in a trial."""
    _, head, rest = notice.partition(_HEAD)
    lines = rest.splitlines()[1:] if head else []
    told = []
    for line in lines:
        if not line.startswith("  "):
            break
        told.append(line.strip())
    return told


def is_told(path: str, told: Sequence[str]) -> bool:
    """Tell whether a line of the notice names the variable that differs, or what varies by chance or with order."""
    name = _WORD.match(path)
    return any(_VARYING.search(line) or (name and name[0] in _WORD.findall(line)) for line in told)


def unexplained(trial: Sequence[str], again: Sequence[str]) -> list[str]:
    """Return the paths at which the trial differs, without those at which a second ordinary run differs too.

    A variable that is random in itself may agree in parts of it by accident, so it is left out as a whole; not so one
    of which only measured times differ.
    """
    if any("time" not in path for path in again):
        return []
    return [path for path in trial if not path.startswith(tuple(again))]


def lines_that_differ(here: str, again: str, trial: str) -> list[str]:
    """Return the printed lines that differ in the trial, where two ordinary runs agree; as paths."""
    first, second, third = (_lines(text) for text in (here, again, trial))
    if len(first) != len(second):
        return []
    stable = [index for index, (one, other) in enumerate(zip(first, second, strict=True)) if one == other]
    if len(first) != len(third):
        return [f"stdout ({len(third)} lines instead of {len(first)})"] if len(stable) == len(first) else []
    return [
        f"stdout line {at + 1}: {third[at][:60]!r} instead of {first[at][:60]!r}"
        for at in stable
        if first[at] != third[at]
    ]


def _lines(printed: str) -> list[str]:
    return [_ADDRESS.sub("0x", line) for line in printed.splitlines() if not line.startswith("[picture: ")]


def judge(outcome: Outcome, errors: Mapping[str, str], paths: Sequence[str]) -> None:
    """Give the verdict.

    Args:
        outcome: Where to write it.
        errors: The type of the error that ended the cell, `here` and in the `trial`, and the trial's `reason`.
        paths: Where the trial differs from the ordinary run, without what differs from run to run.
    """
    if errors["here"] != errors["trial"]:
        outcome.verdict = "failed" if errors["trial"] else "different"
        outcome.why = f"{errors['trial'] or 'no error'} instead of {errors['here'] or 'no error'}: {errors['reason']}"
        if any(set(_WORD.findall(line)) & set(re.findall(r"'(\w+)'", errors["reason"])) for line in outcome.notice):
            outcome.verdict = "told"
        return
    outcome.why = "; ".join(paths[:4]) + (f"; and {len(paths) - 4} more" if len(paths) > 4 else "")
    if not paths:
        outcome.verdict = "equal"
        outcome.why = f"both end with {errors['here']}" if errors["here"] else ""
    else:
        outcome.verdict = "told" if all(is_told(path, outcome.notice) for path in paths) else "different"
