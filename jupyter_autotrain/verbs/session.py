"""The verb `session`: open, list, attach, close; variables and files in and out; interrupt and restart."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.rerun import Dialogue
from jupyter_autotrain.client.sessions.connection import text_of
from jupyter_autotrain.client.sessions.handle import Session
from jupyter_autotrain.client.sessions.opening import (
    SessionRequest,
    find_session,
    open_session,
    open_sessions,
    register,
    unregister,
)
from jupyter_autotrain.client.sessions.shell import run_shell
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.core.text_format import duration
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header.quantities import parse_duration
from jupyter_autotrain.verbs.context import CommandContext

_HEADS: Final = ("session", "place", "state", "open for", "gpus", "cost")

_HOUR_S: Final = 3600.0


def session(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Do what the action says."""
    _ACTIONS[arguments.action](command, arguments)


def _open(command: CommandContext, arguments: argparse.Namespace) -> None:
    name = _word(arguments, "the session's name")
    resources = {key: getattr(arguments, key) for key in ("gpus", "cpus", "memory")}
    wanted = SessionRequest(
        name,
        arguments.place,
        {key: value for key, value in resources.items() if value is not None},
        parse_duration(arguments.idle),
        shares_gpus=arguments.hold == "training" and bool(arguments.gpus),
    )
    opened = open_session(wanted, command.home, command.cwd, command.origin, Dialogue(command.write, input))
    with _connection(command, opened):
        register(command.home, name)
        command.write(
            f"Session {opened.name} is open at {wanted.place}. Run a cell in it: %%autotrain --session {name}\n"
            f"Close it: %autotrain session close {name}\n"
        )


def _list(command: CommandContext, _: argparse.Namespace) -> None:
    rows = []
    for one in open_sessions(command.home):
        trials = one.trials
        took_s = trials[0].took_s(command.now()) if trials else None
        gpus = len(trials[0].gpus) if trials else 0
        place = (trials[0].backend if trials else "") or one.record.spec.backend_names
        time = "" if took_s is None else duration(took_s)
        rows.append((one.name, place, str(one.state), time, str(gpus), _cost(one, took_s)))
    if rows:
        command.present(Table(_HEADS, rows))
    else:
        command.write("No session is open. Open one: %autotrain session open lab\n")


def _cost(session: Experiment, took_s: float | None) -> str:
    """Return what it has cost by now, at most: with `--hold training` a GPU is given back between cells."""
    price = session.record.spec.hour_price
    if price is None or took_s is None:
        return ""
    amount, currency = price
    return f"up to {math.ceil(100 * amount * took_s / _HOUR_S) / 100:.2f} {currency}"


def _attach(command: CommandContext, arguments: argparse.Namespace) -> None:
    with _connected(command, arguments, _given(arguments)) as found:
        command.show(found.experiment)
        command.write(f"Run a cell in it: %%autotrain --session {found.name}   Its newest cell:\n")
        found.show_last(lambda one: command.write(text_of(one)))


def _close(command: CommandContext, arguments: argparse.Namespace) -> None:
    with _connected(command, arguments, _given(arguments)) as found:
        found.close_session()
        unregister(found.experiment.record.spec.name)
        command.write(f"Session {found.name} is closed.\n")


def _push(command: CommandContext, arguments: argparse.Namespace) -> None:
    name = _word(arguments, "the variable's name")
    value = command.evaluate(name)
    with _connected(command, arguments) as found:
        size_bytes = found.push(name, value)
        command.write(f"{name} ({format_bytes(size_bytes)}) is in session {found.name}.\n")


def _pull(command: CommandContext, arguments: argparse.Namespace) -> None:
    name = _word(arguments, "the variable's name")
    with _connected(command, arguments) as found:
        command.keep(name, found.pull(name))
        command.write(f"{name} is here, as session {found.name} has it.\n")


def _interrupt(command: CommandContext, arguments: argparse.Namespace) -> None:
    with _connected(command, arguments, _given(arguments)) as found:
        found.interrupt()
        command.write(f"Session {found.name}: interrupted.\n")


def _restart(command: CommandContext, arguments: argparse.Namespace) -> None:
    with _connected(command, arguments, _given(arguments)) as found:
        found.restart()
        command.write(f"Session {found.name} has a new kernel; its variables are gone.\n")


def _files(command: CommandContext, arguments: argparse.Namespace) -> None:
    with _connected(command, arguments, _given(arguments)) as found:
        rows = [(name, format_bytes(size_bytes)) for name, size_bytes in sorted(found.files().items())]
    if rows:
        command.present(Table(("file", "size"), rows, right=("size",)))
    else:
        command.write("Its working folder is empty.\n")


def _put(command: CommandContext, arguments: argparse.Namespace) -> None:
    path = command.cwd / _word(arguments, "a file here")
    with _connected(command, arguments) as found:
        found.put_file(path, path.name)
        command.write(f"{path.name} is in the working folder of session {found.name}.\n")


def _get(command: CommandContext, arguments: argparse.Namespace) -> None:
    name = _word(arguments, "a file of the session")
    target = command.cwd / Path(name).name
    if target.exists():
        raise AutotrainError(f"{target} is there.", "A name that is free here.", "Move it, then get again.")
    with _connected(command, arguments) as found:
        found.get_file(name, target)
        command.write(f"{target.name} is here.\n")


def _shell(command: CommandContext, arguments: argparse.Namespace) -> None:
    with _connected(command, arguments, _given(arguments)) as found:
        command.write(f"A shell of session {found.name}; Ctrl-] leaves it.\n")
        run_shell(found, 0, 1)


def _connected(
    command: CommandContext, arguments: argparse.Namespace, name: str = ""
) -> AbstractContextManager[Session]:
    return _connection(command, find_session(command.home, name or arguments.session))


def _connection(command: CommandContext, experiment: Experiment) -> AbstractContextManager[Session]:
    return nullcontext(command.connect(experiment)) if command.connect else Session(experiment)


def _given(arguments: argparse.Namespace) -> str:
    return str(arguments.word or "")


def _word(arguments: argparse.Namespace, what: str) -> str:
    if not arguments.word:
        raise AutotrainError(
            f"%autotrain session {arguments.action}: nothing is named.", f"Expected: {what}.",
            f"Such as: %autotrain session {arguments.action} NAME",
        )  # fmt: skip
    return str(arguments.word)


_ACTIONS: Final[Mapping[str, Callable[[CommandContext, argparse.Namespace], None]]] = MappingProxyType(
    {
        "open": _open,
        "list": _list,
        "attach": _attach,
        "close": _close,
        "push": _push,
        "pull": _pull,
        "interrupt": _interrupt,
        "restart": _restart,
        "files": _files,
        "put": _put,
        "get": _get,
        "shell": _shell,
    }
)
