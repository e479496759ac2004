"""The verb `mcp`: an agent reads experiments and, where the user allows it, submits cells and stops."""

from __future__ import annotations

import argparse
from typing import Final

from jupyter_autotrain.client.agent_request import Grant, Permissions
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header.document import UnfitError
from jupyter_autotrain.header.quantities import parse_duration
from jupyter_autotrain.verbs.context import CommandContext

_ACTIONS: Final = frozenset({"submit", "stop"})


def mcp(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Serve an agent until it leaves.

    Raises:
        AutotrainError: A notebook was asked to, an action is unknown, or a grant has no limits.
        MissingExtraError: The MCP SDK is not installed.
    """
    permissions = _permissions(arguments)
    if command.serve is None:
        raise AutotrainError(
            "A notebook serves no agent: its standard input and output are the kernel's.",
            "A program that an agent starts.",
            "Give the agent the command: jupyter autotrain mcp",
        )
    command.serve(permissions)


def _permissions(arguments: argparse.Namespace) -> Permissions:
    actions = {action.strip() for action in arguments.allow.split(",") if action.strip()}
    if unknown := sorted(actions - _ACTIONS):
        raise AutotrainError(
            f"mcp --allow: there is no action {unknown[0]!r}.",
            "submit, stop, or submit,stop; what only reads is always allowed.",
            "See: %autotrain help mcp",
        )
    return Permissions(_grant(arguments) if "submit" in actions else None, "stop" in actions)


def _grant(arguments: argparse.Namespace) -> Grant:
    limits = {"--trials": arguments.trials, "--time": arguments.time, "--places": arguments.places}
    missing = [name for name, value in limits.items() if not value]
    if missing or arguments.trials < 1:
        raise AutotrainError(
            f"mcp --allow submit: no limit by {', '.join(missing) or 'a positive --trials'}.",
            "Limits on trials, time and places.",
            "As in: jupyter autotrain mcp --allow submit --trials 20 --time 2h --places local",
        )
    try:
        time_s = parse_duration(arguments.time)
    except UnfitError as error:
        raise AutotrainError(f"mcp --time: {arguments.time!r} is not a time.", str(error), "Write it as 2h.") from None
    places = tuple(place.strip() for place in arguments.places.split(",") if place.strip())
    return Grant(arguments.trials, time_s, places)
