"""The store: all sections over one file."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.store.database import open_database
from jupyter_autotrain.store.decisions import AnnotationTable, DecisionTables
from jupyter_autotrain.store.experiments import ExperimentTable
from jupyter_autotrain.store.ingest import IngestTables, MeasurementTable
from jupyter_autotrain.store.listing import ListingTables
from jupyter_autotrain.store.metrics import MetricTables
from jupyter_autotrain.store.mixin import ChangeTable
from jupyter_autotrain.store.requests import HookDeliveryTable, LeaseTable, RequestTable
from jupyter_autotrain.store.row_files import RestoringTables
from jupyter_autotrain.store.trials import StateChangeTable, TrialTable


class Store(
    ExperimentTable,
    TrialTable,
    StateChangeTable,
    DecisionTables,
    IngestTables,
    MetricTables,
    RequestTable,
    LeaseTable,
    HookDeliveryTable,
    AnnotationTable,
    ChangeTable,
    ListingTables,
    RestoringTables,
    MeasurementTable,
):
    """The durable history; safe to use from several threads and several processes.

    Every method is one transaction. Every failure of SQLite or of the disk comes as a `StoreError`, and then nothing
    was changed. Ids, not times, give the order.
    """

    @classmethod
    def open(cls, home: Home, *, busy_timeout_s: float = 5.0, is_read_only: bool = False) -> Self:
        """Open the store of a home; make both when they do not exist.

        Args:
            home: Where it lies.
            busy_timeout_s: How long to wait for another process that writes.
            is_read_only: Nothing can be written by this handle, except that an older store is brought up to date.

        Raises:
            StoreError: The store cannot be made, read or written, or is of a newer version.
        """
        return cls(open_database(home, busy_timeout_s, is_read_only=is_read_only))

    @property
    def journal(self) -> str:
        """`wal`, or `delete` where a write-ahead log cannot work, as on network file systems."""
        return self._database.journal

    def damage(self) -> list[str]:
        """Return what SQLite finds wrong in the file, ten findings at most; reads all of it."""
        with self._database.read() as connection:
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(10)")]
        return [] if found == ["ok"] else found

    def data_version(self) -> int:
        """Return a number that differs after any change by anyone; asking costs microseconds."""
        return self._database.data_version()

    def close(self) -> None:
        """Give the file back."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
