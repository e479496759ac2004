"""Processes of this machine: their trees, sessions, environments and memory.

A look that fails for any other reason than that the process has ended (no descriptor left, say) raises `OSError`: it
proves nothing, and no process may be taken for dead because of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from jupyter_autotrain.agent import system, wire
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity, is_gone


def send_signal(process: ProcessIdentity, number: int) -> bool:
    """Signal exactly this process; return False when it is gone.

    Another process with its pid is never signalled.

    Raises:
        OSError: It cannot be looked at.
    """
    return process.is_alive() and system.send_signal(process.pid, process.created_s, number)


def descendants(root: int) -> set[int]:
    """Return all living processes below `root`, whatever session or group they made for themselves."""
    children: dict[int, list[int]] = {}
    for pid in system.pids():
        found_there = _look(pid)
        if found_there is not None:
            children.setdefault(found_there.parent, []).append(pid)
    found: set[int] = set()
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found.update(below)
        todo.extend(below)
    return found


def below_managers(root: int, workers: set[int]) -> set[int]:
    """Return the processes below a supervisor that belong to no trial of its own.

    They are managers its trial started, and all theirs. They come to lie directly below it, because it adopts orphans.

    Args:
        root: The supervisor.
        workers: Its workers, which are no managers, also before they have environments of their own.
    """
    found: set[int] = set()
    for pid in system.pids():
        try:
            is_child = system.look(pid).parent == root
        except OSError:
            continue  # it ended while we looked
        if is_child and pid not in workers and is_of_manager(pid):
            found |= {pid, *descendants(pid)}
    return found


def is_of_manager(pid: int) -> bool:
    """Tell whether a process serves a home, as managers and supervisors do, also when a trial's process started it."""
    try:
        return any(word.startswith(f"{wire.MANAGER_VARIABLE}=".encode()) for word in system.environment(pid))
    except OSError:
        return False


def in_sessions(leaders: set[int]) -> set[int]:
    """Return all living processes in the sessions of these leaders, also when a leader has ended."""
    started = leaders - {0}  # 0: one that has not started yet
    return living({pid for pid in system.pids() if _session(pid) in started})


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1  # it has ended, or is another user's


def living(pids: set[int]) -> set[int]:
    """Return the processes among these that are more than a zombie."""
    return {pid for pid in pids if _look(pid) is not None}


def _look(pid: int) -> system.ProcessInfo | None:
    """Look at a process; return None when it has ended, also while we looked, and for a zombie."""
    try:
        found = system.look(pid)
    except OSError as error:
        if is_gone(error):
            return None
        raise
    return None if found.is_zombie else found


def marked(variable: str, value: str) -> set[int]:
    """Return all other living processes that have this environment variable: it finds orphans of a dead supervisor."""
    needle = f"{variable}={value}".encode()
    return living({pid for pid in system.pids() if needle in _words(pid, system.environment)} - {os.getpid()})


def running(script: str, argument: str) -> set[int]:
    """Return all other living processes whose command ends with a script of this name and this argument."""
    wanted = [script.encode(), argument.encode()]
    found = set()
    for pid in system.pids():
        words = _words(pid, system.command)[-2:]
        if list(map(os.path.basename, words[:1])) + words[1:] == wanted:
            found.add(pid)
    return living(found - {os.getpid()})


def _words(pid: int, read: Callable[[int], list[bytes]]) -> list[bytes]:
    """Return the words of one of a process's texts; none when it has ended, or is another user's."""
    try:
        return read(pid)
    except OSError as error:
        if is_gone(error) or isinstance(error, PermissionError):
            return []
        raise


def resident_bytes(pids: set[int]) -> int:
    """Return the memory held by these processes.

    Pages that several share are divided among them where the kernel counts that.
    """
    return sum(map(system.resident_bytes, pids))
