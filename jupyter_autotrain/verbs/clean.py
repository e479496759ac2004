"""The verb `clean`: finished experiments, and what killed processes left.

`doctor --repair`: saves what can be read of a damaged store, brings back what it lacks, and names the rest. What a
store lacks, as after the loss of its file or log, comes from the folders of experiments and trials.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from jupyter_autotrain import backends, manager
from jupyter_autotrain.agent.environments import eviction
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.client import Experiment, leftovers, orphans, recovery
from jupyter_autotrain.client.fetching import fetched
from jupyter_autotrain.client.orphans import no_submitter
from jupyter_autotrain.client.recovery import RestoredReports, restore_reports
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.text_format import count, first_of
from jupyter_autotrain.errors import AutotrainError, ManagerError, OutdatedError
from jupyter_autotrain.store import Restored, Store, repair
from jupyter_autotrain.verbs.context import CommandContext

_SHOWN = 8


def clean(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Delete finished experiments, by name or by age in days; without `--yes` only list them.

    Without names also the leftovers of killed processes: drafts, folders of submits that never became experiments,
    objects and jobs in clusters that no experiment of this home needs; and virtual environments that no trial uses.
    """
    chosen = _chosen(command, arguments)
    running = [experiment.name for experiment in chosen if not experiment.state.is_final]
    if running:
        raise AutotrainError(
            f"Still running: {', '.join(running)}.", "Expected: finished experiments.", f"Stop first: stop {running[0]}"
        )
    lines = [_clean_experiments(chosen, delete=arguments.yes)] if chosen else []
    if not arguments.experiment:
        lines += _clean_leftovers(command, delete=arguments.yes)
        lines += _clean_environments(command, delete=arguments.yes)
        lines += _clean_fetched(command, delete=arguments.yes)
        lines += _clean_places(command, delete=arguments.yes)
    if not lines:
        command.write("Nothing to clean. Name experiments, or give --older DAYS.\n")
        return
    if not arguments.yes:
        lines.append("Add --yes to do it.")
    command.write("\n".join(lines) + "\n")


def _clean_experiments(chosen: Sequence[Experiment], *, delete: bool) -> str:
    total = format_bytes(sum(experiment.size_bytes() for experiment in chosen))
    names = first_of([experiment.name for experiment in chosen], _SHOWN)
    what = count(len(chosen), "experiment")
    if not delete:
        elsewhere_bytes = sum(experiment.elsewhere_bytes() for experiment in chosen)
        lost = (
            f" {format_bytes(elsewhere_bytes)} on other machines can then no longer be pulled."
            if elsewhere_bytes
            else ""
        )
        return f"Would delete {what} ({total}): {names}.{lost}"
    for experiment in chosen:
        experiment.delete()
    return f"Deleted {what}, {total} freed: {names}"


def _clean_leftovers(command: CommandContext, *, delete: bool) -> list[str]:
    with Store.open(command.home) as store:
        found = orphans.remove(command.home, store) if delete else orphans.find(command.home, store)
    if not found:
        return []
    total, origins = orphans.summary(found)
    what = f"{count(len(found), 'leftover')} of killed processes"
    return [f"Deleted {what}, {total} freed: {origins}" if delete else f"Would delete {what} ({total}): {origins}."]


def _clean_environments(command: CommandContext, *, delete: bool) -> list[str]:
    """Return the virtual environments of this machine that no trial uses."""
    with Store.open(command.home) as store:
        if store.journal != "wal" and store.unfinished():
            return []  # several machines share this home, and may not show each other what they have locked
    root = str(command.home.environments)
    found = eviction.unused(root)
    if delete:
        found = [one for one in found if eviction.remove(root, one[0])]
    if not found:
        return []
    what = count(len(found), "virtual environment")
    total = format_bytes(sum(size_bytes for _, size_bytes in found))
    return [f"Deleted {what}, {total} freed" if delete else f"Would delete {what} that no trial uses ({total})."]


def _clean_fetched(command: CommandContext, *, delete: bool) -> list[str]:
    """Return the revisions of labels and files that no experiment was submitted with."""
    found = [*fetched.unused(command.home, [record for _, record in command.listed()])]
    if not found:
        return []
    total = format_bytes(sum(map(orphans.folder_bytes, found)))
    if delete:
        fetched.remove(found)
    what = count(len(found), "fetched revision")
    return [f"Deleted {what}, {total} freed" if delete else f"Would delete {what} that no experiment uses ({total})."]


def _clean_places(command: CommandContext, *, delete: bool) -> list[str]:
    profiles, _ = backends.header_context(command.cwd, command.environ).profiles()
    found = (profiles.find(name)[0] for name in profiles.definitions)
    usable = [*filter(None, found)]
    with Store.open(command.home) as store:
        work = leftovers.remove if delete else leftovers.find
        return [_place_line(one, delete=delete) for one in work(command.home, store, usable)]


def _place_line(found: leftovers.PlaceLeftovers, *, delete: bool) -> str:
    if found.fault:
        return f"{found.backend}: cannot tell what is left there: {found.fault}"
    shown = first_of(found.names, _SHOWN)
    return f"{'Deleted' if delete else 'Would delete'} {count(len(found.names), 'object')} on {found.backend}: {shown}"


def _chosen(command: CommandContext, arguments: argparse.Namespace) -> list[Experiment]:
    if arguments.experiment:
        return [*map(command.find, arguments.experiment)]
    if arguments.older is None:
        return []
    return [experiment for experiment in command.all() if _is_old(command, experiment.record, arguments.older)]


def _is_old(command: CommandContext, record: ExperimentRecord, days: float) -> bool:
    """Tell whether it has ended and was submitted so long ago, whatever jumps the wall clock made since."""
    age_s = record.now_s(command.now(), BootTime.now()) - record.created_s
    return record.state.is_final and age_s > days * 86_400


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
        receipts = list(map(recovery.stop, recovery.find(command.home, store)))
        left = recovery.find(command.home, store)
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


def _lost_lines(experiments: Sequence[Path], reports: RestoredReports) -> Iterator[str]:
    for folder in reports.lost_trials:
        yield f"Lost: the trial of which these files are left: {folder}"
    for folder in experiments:
        yield f"Lost: the experiment of which these files are left: {folder}"


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
