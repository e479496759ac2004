"""The verb `stacks`: where the ranks of a running trial stand, grouped where they stand alike."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from jupyter_autotrain.agent.json import to_json
from jupyter_autotrain.agent.trial import stacks as texts
from jupyter_autotrain.client.stacks import RankStacks, take_stacks
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.results import write_json


def stacks(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Print where the ranks stand now: a sentence, then the stack of each group, the call that is running last."""
    experiment = command.find(arguments.experiment)
    found = take_stacks(experiment, arguments.trial)
    if arguments.json:
        write_json(command, [to_json(one) for one in found])
        return
    answered = [one for one in found if one.text]
    if answered:
        sentence = texts.sentence({one.rank: one.place for one in answered})
        command.write(f"{experiment.name}: {sentence}.\n")
    for one in found:
        if one.fault:
            command.write(f"rank {one.rank}: {one.fault}\n")
    for group in _groups(answered):
        command.write(f"\n{texts.named([one.rank for one in group])}, {group[0].place}:\n")
        command.write(group[0].text if arguments.threads else _main_stack(group[0]))


def _groups(found: Sequence[RankStacks]) -> list[list[RankStacks]]:
    """Return the ranks whose main threads stand at the same lines together, the smallest group first."""
    by_frames: dict[tuple[texts.Frame, ...], list[RankStacks]] = {}
    for one in found:
        by_frames.setdefault(one.main_thread, []).append(one)
    return sorted(by_frames.values(), key=len)


def _main_stack(found: RankStacks) -> str:
    lines = []
    for file, number, function in reversed(found.main_thread):
        lines.append(f"  {file}, line {number}, in {function}\n")
    return "".join(lines) or "  (no Python code)\n"
