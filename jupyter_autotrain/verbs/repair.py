"""`doctor --repair`: saves what can be read of a damaged store and names the rest."""

from __future__ import annotations

from contextlib import suppress

from jupyter_autotrain import manager
from jupyter_autotrain.client import orphans
from jupyter_autotrain.client.drafts import no_submitter
from jupyter_autotrain.client.report_recovery import RestoredReports, restore_reports
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import AutotrainError, ManagerError
from jupyter_autotrain.store import Store, repair
from jupyter_autotrain.verbs.context import CommandContext

_NAMES = {"experiments": "experiment", "trials": "trial", "requests": "request"}


def repair_store(command: CommandContext) -> None:
    """Save what can be read into a new file, keep the damaged one, and print what was saved and lost.

    A running manager is ended first, which does not affect its trials; afterwards a new one takes over.

    Raises:
        AutotrainError: There is no store, or it is in use.
    """
    home = command.home
    if not home.store.exists():
        raise AutotrainError(
            f"There is no store in {home.root}.", "The home of a damaged store.", "Set JUPYTER_AUTOTRAIN_HOME to it."
        )
    with manager.stopped(home), no_submitter(home, wait=True):
        report = repair.repair(home.store)
        with Store.open(home) as store:
            lost = orphans.without_row(home, store)
            restored = restore_reports(home, store) if report.damaged or report.refused else RestoredReports()
            unfinished = store.unfinished()
    for line in _lines(report, home):
        command.write(f"{line}\n")
    if restored.attempts:
        command.write(f"Curves of {count(restored.attempts, 'attempt')} were read again from the trials' own files.\n")
    for folder in restored.lost_trials:
        command.write(f"Lost: the trial of which these files are left: {folder}\n")
    for folder in lost:
        command.write(f"Lost: the experiment of which these files are left: {folder}\n")
    if unfinished:
        with suppress(ManagerError):
            manager.ensure(home)


def _lines(report: repair.Repair, home: Home) -> list[str]:
    saved = [count(report.saved[table], name) for table, name in _NAMES.items()]
    lines = [f"Saved: {', '.join(saved)}."]
    for table, fault in report.damaged.items():
        lines.append(f"Damaged: the table {table} could not be read whole ({fault}).")
    for table, many in report.dropped.items():
        lines.append(f"Lost: {many} rows of {table} that belong to lost experiments or trials.")
    if report.refused:
        lines.append(
            f"Damaged: the file as a whole ({report.refused}); only a copy with a rebuilt header could be read."
        )
    elif not report.damaged:
        lines.append("Nothing in it was damaged.")
    lines.append(f"The file as it was is kept: {report.kept_at.relative_to(home.root)} in {home.root}")
    return lines
