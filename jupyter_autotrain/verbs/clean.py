"""The verb `clean`: finished experiments, and what killed processes left."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from jupyter_autotrain import backends
from jupyter_autotrain.client import Experiment, orphans, place_leftovers
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Store
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.worker.environments import eviction

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
        lines += _clean_places(command, delete=arguments.yes)
    if not lines:
        command.write("Nothing to clean. Name experiments, or give --older DAYS.\n")
        return
    if not arguments.yes:
        lines.append("Add --yes to do it.")
    command.write("\n".join(lines) + "\n")


def _clean_experiments(chosen: Sequence[Experiment], *, delete: bool) -> str:
    total = format_bytes(sum(experiment.size_bytes() for experiment in chosen))
    names = ", ".join(experiment.name for experiment in chosen[:_SHOWN]) + (" ..." if len(chosen) > _SHOWN else "")
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
    total = format_bytes(sum(leftover.size_bytes for leftover in found))
    origins = ", ".join(sorted({leftover.origin for leftover in found}))
    what = f"{count(len(found), 'leftover')} of killed processes"
    return [f"Deleted {what}, {total} freed: {origins}" if delete else f"Would delete {what} ({total}): {origins}."]


def _clean_environments(command: CommandContext, *, delete: bool) -> list[str]:
    """The virtual environments of this machine that no trial uses."""
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


def _clean_places(command: CommandContext, *, delete: bool) -> list[str]:
    profiles, _ = backends.header_context(command.cwd, command.environ).profiles()
    named = [profiles.find(name)[0] for name in profiles.definitions]
    usable = [profile for profile in named if profile is not None]
    with Store.open(command.home) as store:
        work = place_leftovers.remove if delete else place_leftovers.find
        return [_place_line(found, delete=delete) for found in work(command.home, store, usable)]


def _place_line(found: place_leftovers.PlaceLeftovers, *, delete: bool) -> str:
    if found.fault:
        return f"{found.backend}: cannot tell what is left there: {found.fault}"
    shown = ", ".join(found.names[:_SHOWN]) + (" ..." if len(found.names) > _SHOWN else "")
    return f"{'Deleted' if delete else 'Would delete'} {count(len(found.names), 'object')} on {found.backend}: {shown}"


def _chosen(command: CommandContext, arguments: argparse.Namespace) -> list[Experiment]:
    if arguments.experiment:
        return [command.find(reference) for reference in arguments.experiment]
    if arguments.older is None:
        return []
    found = [(experiment, experiment.record) for experiment in command.all()]
    old_s = arguments.older * 86_400
    return [e for e, record in found if record.state.is_final and _age_s(command, record) > old_s]


def _age_s(command: CommandContext, record: ExperimentRecord) -> float:
    """How long ago it was submitted, whatever jumps the wall clock made since."""
    return record.now_s(command.now(), BootTime.now()) - record.created_s
