"""The backend contract as a test suite."""

from __future__ import annotations

from jupyter_autotrain.testing.ending import EndingContract
from jupyter_autotrain.testing.files import FilesContract
from jupyter_autotrain.testing.running import RunningContract


class BackendContract(RunningContract, FilesContract, EndingContract):
    """Every place passes these; subclass it and give `make`. Tests of what a place says it cannot do are skipped."""
