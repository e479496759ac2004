"""`doctor --repair`: saves what can be read of a damaged store, brings back what it lacks, and names the rest.

What a store lacks, as after the loss of its file or log, comes from the folders of experiments and trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from jupyter_autotrain import manager
from jupyter_autotrain.client import orphans, stray_trials
from jupyter_autotrain.client.drafts import no_submitter
from jupyter_autotrain.client.report_recovery import RestoredReports, restore_reports
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import AutotrainError, ManagerError, OutdatedError
from jupyter_autotrain.store import Restored, Store, repair
from jupyter_autotrain.verbs.context import CommandContext

_NAMES = {"experiments": "experiment", "trials": "trial", "requests": "request"}


def repair_store(command: CommandContext) -> None:
    """Save what can be read into a new file, keep the damaged one, and print what was saved, brought back and lost.

    A running manager is ended first, which does not affect its trials; afterwards a new one takes over.

    Raises:
        AutotrainError: There is nothing to repair, or the store is in use.
    """
    home = command.home
    if not home.store.exists() and not home.experiment("").exists():
        raise AutotrainError(
            f"There is no store in {home.root}.", "The home of a damaged store.", "Set JUPYTER_AUTOTRAIN_HOME to it."
        )
    with manager.stopped(home), no_submitter(home, wait=True):
        report = repair.repair(home.store) if home.store.exists() else None
        with Store.open(home) as store:
            rows = store.restore_rows()
            is_damaged = report is not None and bool(report.damaged or report.refused)
            reports = restore_reports(home, store, None if is_damaged else rows.trials)
            lost = orphans.without_row(home, store)
            unfinished = store.unfinished()
    lines = ["There was no store."] if report is None else _lines(report, home)
    for line in [*lines, *_restored_lines(rows, reports), *_lost_lines(lost, reports)]:
        command.write(f"{line}\n")
    if unfinished:
        with suppress(ManagerError, OutdatedError):
            manager.ensure(home)


def stop_strays(command: CommandContext) -> bool:
    """End the trials that run on this machine and that no experiment knows; print a receipt of each.

    Returns:
        Whether none is left.
    """
    with Store.open(command.home) as store:
        receipts = [stray_trials.stop(stray) for stray in stray_trials.find(command.home, store)]
        left = stray_trials.find(command.home, store)
    for receipt in receipts:
        command.write(f"{receipt}\n")
    if not receipts:
        command.write("Every trial running on this machine belongs to an experiment.\n")
    return not left


def _restored_lines(rows: Restored, reports: RestoredReports) -> list[str]:
    lines = []
    if rows.experiments or rows.trials:
        parts = [count(len(rows.experiments), "experiment"), count(len(rows.trials), "trial")]
        lines.append(f"Brought back from their folders: {' and '.join(parts)}.")
    if reports.attempts:
        lines.append(f"Curves of {count(reports.attempts, 'attempt')} were read again from the trials' own files.")
    return lines


def _lost_lines(experiments: Sequence[Path], reports: RestoredReports) -> list[str]:
    trials = [f"Lost: the trial of which these files are left: {folder}" for folder in reports.lost_trials]
    return trials + [f"Lost: the experiment of which these files are left: {folder}" for folder in experiments]


def _lines(report: repair.Repair, home: Home) -> list[str]:
    saved = [count(report.saved[table], name) for table, name in _NAMES.items()]
    lines = [f"Saved: {', '.join(saved)}."]
    for table, fault in report.damaged.items():
        lines.append(f"Damaged: the table {table} could not be read whole ({fault}).")
    for table, many in report.dropped.items():
        lines.append(f"Left out: {many} rows of {table}, whose experiments or trials could not be read.")
    if report.refused:
        lines.append(
            f"Damaged: the file as a whole ({report.refused}); only a copy with a rebuilt header could be read."
        )
    elif not report.damaged:
        lines.append("Nothing in it was damaged.")
    lines.append(f"The file as it was is kept: {report.kept_at.relative_to(home.root)} in {home.root}")
    return lines
