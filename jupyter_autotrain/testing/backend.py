"""The backend contract as a test suite."""

from __future__ import annotations

from jupyter_autotrain.testing.data import DataContract
from jupyter_autotrain.testing.ending import EndingContract
from jupyter_autotrain.testing.files import FilesContract
from jupyter_autotrain.testing.running import RunningContract


class BackendContract(RunningContract, FilesContract, DataContract, EndingContract):
    """Tests that every backend passes; subclasses define `make`. Tests of missing capabilities are skipped."""
