"""The durable history of all experiments: one SQLite file, and the only package that writes SQL."""

from __future__ import annotations

from jupyter_autotrain.store.decisions import Annotation
from jupyter_autotrain.store.experiment_records import offset_from_newest
from jupyter_autotrain.store.failures import explained
from jupyter_autotrain.store.ingest import Ingest
from jupyter_autotrain.store.listing import ListedExperiment, TrialTimes, TrialValue
from jupyter_autotrain.store.metrics import Columns, MetricChunk, TimedColumns
from jupyter_autotrain.store.mixin import Change
from jupyter_autotrain.store.row_files import Restored
from jupyter_autotrain.store.store import Store

__all__ = [
    "Annotation",
    "Change",
    "Columns",
    "Ingest",
    "ListedExperiment",
    "MetricChunk",
    "Restored",
    "Store",
    "TimedColumns",
    "TrialTimes",
    "TrialValue",
    "explained",
    "offset_from_newest",
]
