"""Verbs that look into a running trial: `stacks` says where ranks stand, `debug` opens pdb in those that stopped."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from jupyter_autotrain.agent.json import to_json
from jupyter_autotrain.agent.trial import stacks as texts
from jupyter_autotrain.client.debugging import (
    RankAnswer,
    RankDebugging,
    RankStacks,
    channel_to,
    running_trial,
    take_stacks,
)
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.results import write_json


def stacks(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Print where the ranks stand now: a sentence, then the stack of each group, the call that is running last."""
    experiment = command.find(arguments.experiment)
    found = take_stacks(experiment, arguments.trial)
    if arguments.json:
        write_json(command, list(map(to_json, found)))
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


def debug(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Open pdb in ranks that stand; each command goes to all of them, equal answers are shown once."""
    experiment = command.find(arguments.experiment)
    ranks = _ranks(arguments.ranks)
    trial = running_trial(experiment, arguments.trial)
    with channel_to(experiment, trial) as (backend, ref):
        opened = RankDebugging(backend, ref, ranks, experiment.record.spec.resources.ranks)
        _show(command, opened.answers)
        given = arguments.command
        while opened.ranks:
            line = _next_command(given, opened.ranks)
            if line is None:
                go_on = f"%autotrain debug {experiment.name} -c continue"
                command.write(f"Still stopped: {texts.named(opened.ranks)}. Let them go on: {go_on}\n")
                return
            _show(command, opened.send(line))


def _ranks(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return sorted(set(map(int, text.split(","))))
    except ValueError:
        raise AutotrainError(
            f"debug: {text!r} names no ranks.", "Numbers such as 0,2.", "See: %autotrain help debug"
        ) from None


def _next_command(given: list[str] | None, ranks: Sequence[int]) -> str | None:
    """Return what is to be done next: of the commands that are given, else what the user says; None: no more."""
    if given is not None:
        return given.pop(0) if given else None
    try:
        return input(f"({texts.named(ranks)}) ")
    except (EOFError, KeyboardInterrupt):
        return None


def _show(command: CommandContext, answers: Mapping[int, RankAnswer]) -> None:
    by_text: dict[RankAnswer, list[int]] = {}
    for rank, answer in sorted(answers.items()):
        by_text.setdefault(answer, []).append(rank)
    for answer, ranks in by_text.items():
        state = f"at {answer.place}" if answer.is_stopped else "released"
        command.write(f"[{texts.named(ranks)}: {state}]\n{answer.text}")
