"""`report()` and notes: one line of JSON, one write, no waiting."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable

from jupyter_autotrain.agent import wire

_MOST_KINDS = 50
_REDUCTIONS = frozenset({"mean", "sum", "min", "max"})
_NEW = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class InvalidReports:
    """The counts of invalid reports, by metric and kind of fault.

    The first of a kind is noted at once, and printed on stderr; its count is sent again at 10, 100, 1000 ... and at
    the end, so that a report that is invalid in each step costs next to nothing.

    Args:
        note: Sends a note to the user: level, text, how often so far.
    """

    def __init__(self, note: Callable[[str, str, int], None]) -> None:
        self._note = note
        self._texts: dict[tuple[str, str], str] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._sent: dict[tuple[str, str], int] = {}

    def add(self, metric: str, kind: str, text: str) -> None:
        """Count one report; `text` is why it was not kept, and only that of the first of its kind is sent."""
        key = (metric, kind)
        if key not in self._counts and len(self._counts) >= _MOST_KINDS:
            key = ("", "more")
            text = "reports of further kinds were not kept; only the first 50 kinds are counted apart"
        count = self._counts.get(key, 0) + 1
        self._counts[key] = count
        if count == 1:
            self._texts[key] = text
            print_to_stderr(f"autotrain: {text}")
        if count == 1 or count == 10 * self._sent[key]:
            self._send(key)

    def first_of(self, metric: str) -> tuple[str, str]:
        """Return the kind and text of the first invalid report of a metric; two empty texts when it has none."""
        for key, text in self._texts.items():
            if key[0] == metric:
                return key[1], text
        return "", ""

    def flush(self) -> None:
        """Send the counts as they stand at the end."""
        for key, count in self._counts.items():
            if count != self._sent[key]:
                self._send(key)

    def _send(self, key: tuple[str, str]) -> None:
        self._sent[key] = self._counts[key]
        self._note("warning", self._texts[key], self._counts[key])


def print_to_stderr(text: str) -> None:
    """Write a line to the trial's own stderr, also when the user has closed it."""
    try:
        print(text, file=sys.stderr)  # noqa: T201 - the trial's own stderr
    except (OSError, ValueError):
        return


class Reporter:
    """The writer of one trial's frames.

    Nothing here raises into the training, and nothing waits: a frame is one `write` to a file, so that what was
    reported is kept even when the process is killed the next moment.

    Args:
        directory: The trial directory.
        redact: Takes secret values out of a text.
        rank: That of the worker; each writes a file of its own.
        ranks: How many workers the trial has.
    """

    def __init__(self, directory: str, redact: Callable[[str], str] = str, rank: int = 0, ranks: int = 1) -> None:
        self._redact = redact
        self._ranks = ranks
        # Seconds since the epoch, counted on a clock that does not jump when the other is set.
        self._epoch_s = time.time() - time.monotonic()
        self.seen: set[str] = set()
        self.invalid = InvalidReports(self.note)
        self.step = -1
        self._steps: dict[str, int] = {}  # the last one of each metric
        self.latest: dict[str, str] = {}  # the last value of each metric, as JSON
        self._earlier: dict[str, int] = {}  # those that an earlier run has reported
        self._keys: dict[str, str] = {}
        self._own: set[str] = set()  # what the cell has reported
        self._automatic: set[str] = set()  # what a library has reported by itself
        self.lost = ""  # why a report could not be written
        self._torn = False
        self.path = f"{directory}/{wire.stream_of_rank(wire.METRICS, rank)}"
        self._fd = -1
        try:
            self._fd = os.open(self.path, _NEW, 0o600)
            if os.fstat(self._fd).st_size == 0:
                self._write(f'["v", {wire.VERSION}]\n')
            else:
                self._go_on()
        except OSError as error:
            self.lost = error.strerror or type(error).__name__
            print_to_stderr(f"autotrain: metrics cannot be kept: {error}")

    def _go_on(self) -> None:
        """Go on with the steps of an earlier run in this directory; report none of them again."""
        from jupyter_autotrain.agent.trial.partial_results import last_steps  # noqa: PLC0415 - only trials that go on pay

        self._torn, self._earlier = last_steps(self.path)
        self._steps = dict(self._earlier)
        self.step = max(self._steps.values(), default=-1)

    def __call__(
        self, step: int | None = None, *unnamed: object, all_ranks: bool | str = False, **metrics: object
    ) -> None:
        """Report metrics of one step. See `agent.ranks.api.report`."""
        try:
            self._own |= metrics.keys()
            self._report(step, unnamed, metrics, self._reduction(all_ranks))
        except Exception as error:  # noqa: BLE001 - never raises into the training
            self.invalid.add("report", type(error).__name__, f"report() failed: {error}")

    def automatic(self, step: int, metrics: dict[str, object]) -> None:
        """Report what a library has logged, except for metrics that the cell reports; the cell's own steps stay."""
        others = {name: value for name, value in metrics.items() if name not in self._own}
        self._automatic |= others.keys()
        before = self.step
        if others:
            self._report(step, (), others, "")
        self.step = before

    def last_step(self, names: Iterable[str]) -> int:
        """Return the last step of these metrics; -1 where none has any."""
        return max((self._steps.get(name, -1) for name in names), default=-1)

    def _reduction(self, all_ranks: bool | str) -> str:
        """Return the name of the reduction over all ranks; "" for a report of this rank alone."""
        how = "mean" if all_ranks is True else all_ranks or ""
        if how and how not in _REDUCTIONS:
            text = f"all_ranks={how!r} is not known; True (the mean), 'sum', 'min' or 'max' was expected; mean is taken"
            self.invalid.add("all_ranks", how, text)
            how = "mean"
        return how if self._ranks > 1 else ""

    def _report(self, step: object, unnamed: tuple[object, ...], metrics: dict[str, object], how: str) -> None:
        if unnamed or not metrics:
            self._reject_unnamed(unnamed if unnamed or step is None else (step,))
        number = self._number_of(step, metrics) if metrics else None
        if number is None:
            return
        body = []
        for name, value in metrics.items():
            if not self._is_in_order(name, number):
                continue
            text = repr(value) if type(value) is float else self._text(name, value)
            if text in {"nan", "inf", "-inf"}:
                text = self._unusual(name, text)
            if text is None:
                continue
            if key := self._keys.get(name) or self._key(name):
                self._steps[name] = number
                self.latest[name] = text
                body.append(f"{key}{text}")
        if body:
            self.step = number
            content = f"{number},{self._now_s():.6f},{{{','.join(body)}}}"
            self._write(f'["r",{content},"{how}"]\n' if how else f'["m",{content}]\n')

    def _now_s(self) -> float:
        return self._epoch_s + time.monotonic()

    def _number_of(self, step: object, metrics: dict[str, object]) -> int | None:
        """Return the number of a report's step: the one given, else the next after the last one and its metrics'."""
        if step is None:
            return max(self.step, *(self._steps.get(name, -1) for name in metrics)) + 1
        number = step if type(step) is int else _integer(step)
        if number is None:
            text = f"step must be a whole number, not {_short(step)}; this report was not kept"
            self.invalid.add("step", "type", text)
        return number

    def _is_in_order(self, name: str, number: int) -> bool:
        """Tell whether a metric may have this step: each metric counts its own, and none goes back."""
        if number <= self._earlier.get(name, -1):
            return False
        last = self._steps.get(name, -1)
        if number < last and name not in self._automatic:  # else the cell repeats what was reported already
            text = f"{name} of step {number} comes after its step {last}; steps of a metric may not go back"
            self.invalid.add(name, "order", f"{text}, so it was not kept")
        return number >= last

    def _key(self, name: str) -> str:
        """Return a metric's name as it is written; "" for one that cannot be kept."""
        if fault := _fault_of_name(name):
            self.invalid.add("report", "name", f"a metric's name has {fault}, {_short(name)}; it was not kept")
            return ""
        self.seen.add(name)
        self._keys[name] = key = f"{json.dumps(self._redact(name))}:"
        return key

    def _text(self, name: str, value: object) -> str | None:
        """Return the value as JSON text; None (and one warning) when it is no number."""
        try:
            number = _number(value)
        except Exception:  # noqa: BLE001 - a value may do anything when converted to a number
            number = None
        if number is None:
            kind = type(value).__name__
            self.invalid.add(name, kind, f"{name} is {_short(value)} ({kind}), not one number; it was not kept")
            return None
        return repr(number)

    def _unusual(self, name: str, text: str) -> str | None:
        if text == "nan":
            return "null"
        why = f"{name} is {text}; infinite values are not kept (a diverged run? report NaN instead)"
        self.invalid.add(name, text, why)
        return None

    def _reject_unnamed(self, values: tuple[object, ...]) -> None:
        """Tell of values given by position, `report(0.5)`, and of a report with none at all."""
        shown = ", ".join(map(_short, values))
        right = "report(**metrics)" if any(isinstance(value, dict) for value in values) else "report(loss=0.5)"
        found = "a value without a name was not kept" if values else "a report without a metric was not kept"
        self.invalid.add("report", "unnamed", f"report({shown}): {found}; name each metric: {right}")

    def note(self, level: str, text: str, count: int = 1) -> None:
        """Send a note to the user; level is info, warning or error. A repeated text replaces its count."""
        frame = ["n", round(self._now_s(), 6), level, self._redact(text), *([count] if count > 1 else [])]
        self._write(json.dumps(frame) + "\n")

    def ask_for_gpus(self, turn: int, *, wanted: bool) -> None:
        """Say that a session wants its GPUs for a turn, or that they are free after it."""
        self._write(json.dumps(["g", turn, wanted]) + "\n")

    def _write(self, line: str) -> None:
        data = line.encode()
        if self._torn:
            data = b"\n" + data
        try:
            self._torn = os.write(self._fd, data) != len(data)
        except OSError as error:
            if not self.lost:
                self.lost = error.strerror or type(error).__name__
                print_to_stderr(f"autotrain: metrics are being lost: {error}")


def _fault_of_name(name: str) -> str:
    """Return the reason why a metric cannot have this name; "" where it can."""
    if len(name) > wire.LONGEST_NAME:
        return f"{len(name)} characters, {wire.LONGEST_NAME} at most were expected"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "a lone surrogate"
    return ""


def _short(value: object) -> str:
    import reprlib  # noqa: PLC0415 - only invalid reports pay

    text = " ".join(reprlib.repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _integer(step: object) -> int | None:
    number = _number(step)
    if number is None or (isinstance(number, float) and not (math.isfinite(number) and number.is_integer())):
        return None
    return int(number)


def _number(value: object) -> int | float | None:
    """Return a Python number for a bool, int, float, or anything of one element with `.item()`; else None."""
    if isinstance(value, (bool, int)):
        return int(value) if -(2**63) <= value < 2**64 else float(value)
    if isinstance(value, float):
        return float(value)
    item = getattr(value, "item", None)
    if item is not None:
        try:
            inner = item()
        except (TypeError, ValueError, RuntimeError):
            return None
        return _number(inner) if isinstance(inner, (bool, int, float)) else None
    if hasattr(type(value), "__float__") and not isinstance(value, (str, bytes)):
        return float(value)  # type: ignore[arg-type] # a Decimal or a Fraction: it has __float__
    return None
