"""Every error this package raises on purpose.

```
AutotrainError                 three clauses: what was found, what was expected, what to do next
├── HeaderError                one or more faults of a cell header, each with its line
├── CaptureError               something the cell needs cannot travel, or is missing
├── ShipError                  too many files, or too many bytes, to send
├── StoreError                 the history cannot be read or written (full disk, locked, read-only)
│   ├── LeaseLostError             another manager writes it now
│   ├── OutdatedError              a newer version of this package uses it
│   └── DamagedRowError            what a row of the store holds cannot be read, as after a flipped byte
├── UnknownExperimentError     no experiment has that name
├── ManagerError               the manager cannot be started or does not answer
├── DataError                  what `data:` names is not there, cannot be fetched, or does not fit
├── BackendError               a backend refuses or fails a request
│   └── BackendUnavailableError    the backend cannot be used here; says why in one sentence
│       └── SubmitUnknownError     the link was lost while a trial was started: it may run
├── PlanError                  a model cannot be traced, priced or split
│   ├── TraceError             the model's graph cannot be captured
│   ├── InvariantError         a plan broke what holds for every plan: a fault of the search
│   └── InfeasibleError        no split fits; carries the least memory that would do
└── MissingExtraError          an optional dependency is not installed; gives the pip line
```
"""

from __future__ import annotations

from jupyter_autotrain.agent.errors import (
    AutotrainError,
    BackendError,
    BackendUnavailableError,
    DataError,
    SubmitUnknownError,
)
from jupyter_autotrain.agent.terminal import printable

__all__ = [
    "AutotrainError",
    "BackendError",
    "BackendUnavailableError",
    "CaptureError",
    "DamagedRowError",
    "DataError",
    "HeaderError",
    "InfeasibleError",
    "InvariantError",
    "LeaseLostError",
    "ManagerError",
    "MissingExtraError",
    "OutdatedError",
    "PlanError",
    "ShipError",
    "StoreError",
    "SubmitUnknownError",
    "TraceError",
    "UnknownExperimentError",
]


class HeaderError(AutotrainError):
    """All faults of a cell header; `found` holds one line per fault.

    Args:
        found: The faults to show, six lines at most.
        expected: What was expected.
        action: What to do next.
        faults: All faults, one line each.
    """

    def __init__(self, found: str, expected: str = "", action: str = "", faults: tuple[str, ...] = ()) -> None:
        super().__init__(found, expected, action)
        self.faults = tuple(map(printable, faults)) or (self.found,)

    def __reduce__(self) -> tuple[type[HeaderError], tuple[str, str, str, tuple[str, ...]]]:  # type: ignore[override]  # one argument more
        return type(self), (self.found, self.expected, self.action, self.faults)


class CaptureError(AutotrainError):
    """Something the cell needs cannot travel, or does not exist."""


class ShipError(AutotrainError):
    """The files to send exceed the limits; the text carries a size tree."""


class StoreError(AutotrainError):
    """The durable history cannot be read or written."""


class DamagedRowError(StoreError):
    """A row of the store holds something that cannot be read, as after a flipped byte."""


class LeaseLostError(StoreError):
    """Another manager has taken over; this one may write no more."""


class OutdatedError(StoreError):
    """A newer version of this package uses the home: what this one would read or write there may mean something else.

    Args:
        found: What is newer.
    """

    def __init__(self, found: str) -> None:
        super().__init__(
            found,
            "Programs that use one home run one version of jupyter-autotrain.",
            "Restart the kernel (or the program that says this); if it stays so: pip install -U jupyter-autotrain.",
        )


class UnknownExperimentError(AutotrainError):
    """No experiment has that name."""


class ManagerError(AutotrainError):
    """The manager process cannot be started or does not answer."""


class PlanError(AutotrainError):
    """A model cannot be traced, priced or split."""


class TraceError(PlanError):
    """The model's graph cannot be captured."""


class InvariantError(PlanError):
    """A plan broke what holds for every plan; a fault of the search, so no plan is given."""


class InfeasibleError(PlanError):
    """No split fits the limits.

    Args:
        found: What was found.
        expected: What was expected.
        action: What to do next.
        least_memory_bytes: The least memory per device that would do.
    """

    def __init__(self, found: str, expected: str = "", action: str = "", least_memory_bytes: int = 0) -> None:
        super().__init__(found, expected, action)
        self.least_memory_bytes = least_memory_bytes


class MissingExtraError(AutotrainError):
    """An optional dependency is not installed.

    Args:
        package: The import that failed.
        extra: The extra that brings it.
        purpose: What needs it.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed here.",
            "",
            f"Install it with: pip install 'jupyter-autotrain[{extra}]'",
        )
        self.package = package
        self.extra = extra
        self.purpose = purpose

    def __reduce__(self) -> tuple[type[AutotrainError], tuple[str, str, str]]:
        return type(self), (self.package, self.extra, self.purpose)
