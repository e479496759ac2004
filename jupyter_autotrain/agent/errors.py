"""The errors that code at a place raises on purpose; `jupyter_autotrain.errors` has the whole tree."""

from __future__ import annotations

from jupyter_autotrain.agent.terminal import printable

_MOST_LINES = 6


class AutotrainError(Exception):
    """The base of the tree.

    Args:
        found: What was found.
        expected: What was expected, with the nearest match when there is one.
        action: What to do next.
    """

    def __init__(self, found: str, expected: str = "", action: str = "") -> None:
        clauses = printable(found), printable(expected), printable(action)  # they quote files, trials and users
        self.found, self.expected, self.action = clauses
        super().__init__("\n".join(filter(None, clauses)))

    def __reduce__(self) -> tuple[type[AutotrainError], tuple[str, str, str]]:
        return type(self), (self.found, self.expected, self.action)

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows in place of a traceback: the clauses, six lines at most."""
        lines = f"{type(self).__name__}: {self}".splitlines()
        return lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], lines[-1]]


class DataError(AutotrainError):
    """An error of the header's `data:`: it is not there, cannot be fetched, has changed, or does not fit."""


class BackendError(AutotrainError):
    """An error of a backend that refused or failed a request."""


class BackendUnavailableError(BackendError):
    """An error of a backend that cannot be used from here."""


class SubmitUnknownError(BackendUnavailableError):
    """An error of a backend that fell silent during a start: the trial may run, so it is started nowhere else."""
