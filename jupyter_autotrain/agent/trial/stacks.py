"""Where the threads of a rank stand: how it is asked, what it writes, and how that is read.

A rank answers a signal by faulthandler, which needs neither the interpreter's lock nor a thread that runs. The signal
is SIGURG: where nobody handles it, it is ignored, so that it ends no process, not even a wrong one. A handler that the
cell sets for it stays the cell's; then the rank does not answer.

The stream `stacks` has for each request a line `{"begin": tag}`, what the rank has written, and a line `{"end": tag,
"place": text, "fault": text}`; the supervisor writes both lines. This module is imported by every worker, so it uses
only the cheapest parts of the standard library.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence

SIGNAL = signal.SIGURG
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_THREAD = "(most recent call first):"
_CELL_RUNNER = "/agent/ranks/cell_runner.py"
_WRAPPERS = frozenset({"wrapper", "wrapped", "inner", "decorate_context"})
_WAITS = frozenset({
    "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_to_all", "barrier", "broadcast",
    "broadcast_object_list", "gather", "init_process_group", "monitored_barrier", "recv", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "send", "synchronize", "wait",
})  # fmt: skip
Frame = tuple[str, int, str]  # file, line, function


def answer_requests(path: str) -> None:
    """Let this process append its stacks to a file whenever it is asked; a handler of the signal that is there stays.

    A process that cannot have the file does not answer.
    """
    try:
        fd = os.open(path, _APPEND, 0o600)
        faulthandler.register(SIGNAL, file=fd, all_threads=True, chain=signal.getsignal(SIGNAL) is not signal.SIG_DFL)
    except OSError:
        return


def threads(text: str) -> list[list[Frame]]:
    """Return the frames of each thread as faulthandler writes them, innermost first; the main thread is the last."""
    found: list[list[Frame]] = []
    for line in text.splitlines():
        if line.endswith(_THREAD):
            found.append([])
        elif found and line.startswith('  File "'):
            file, _, rest = line[8:].rpartition('", line ')
            number, _, function = rest.partition(" in ")
            found[-1].append((file, int(number) if number.isdigit() else 0, function))
    return found


def main_thread(text: str) -> list[Frame]:
    """Return the frames of the main thread below what runs the cell, innermost first; none where it has none."""
    frames: list[Frame] = []
    for frame in (threads(text) or [[]])[-1]:
        if frame[0].endswith(_CELL_RUNNER):
            break
        frames.append(frame)
    return frames


def place(frames: Sequence[Frame], is_own: Callable[[str], bool], name_of: Callable[[str, int], str]) -> str:
    """Say where a thread stands: the library's function that it has called, and the line of its own code.

    Args:
        frames: The thread's frames, innermost first.
        is_own: Tells whether a file is the user's own.
        name_of: Names a line of such a file as users know it.
    """
    called = ""
    for file, number, function in frames:
        if is_own(file):
            where = name_of(file, number)
            return f"{called} ({where})" if called else where
        if file.endswith("/bdb.py"):
            called = "its debugger"
        elif file.startswith("<frozen importlib"):
            called = "an import"
        elif not function.startswith("_") and function not in _WRAPPERS:
            called = called if called in _WAITS else function
    return called or "code that is not Python"


def sentence(places: Mapping[int, str]) -> str:
    """Say where ranks stand: `rank 3 waits in all_reduce, the others are in backward`."""
    by_place: dict[str, list[int]] = {}
    for rank, where in sorted(places.items()):
        by_place.setdefault(where, []).append(rank)
    groups = sorted(by_place.items(), key=lambda group: len(group[1]))
    if len(groups) == 1:
        where, ranks = groups[0]
        return f"rank {ranks[0]} {_stands(where, 1)}" if len(ranks) == 1 else f"all ranks {_stands(where, 2)}"
    told = [f"{named(ranks)} {_stands(where, len(ranks))}" for where, ranks in groups[:-1]]
    where, ranks = groups[-1]
    last = "the others" if len(ranks) > 1 else f"rank {ranks[0]}"
    return f"{', '.join(told)}, {last} {_stands(where, len(ranks))}"


def named(ranks: Sequence[int]) -> str:
    """Name ranks: `rank 3`, `ranks 0-2, 7`."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][-1] + 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    texts = [f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts]
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(texts)}"


def _stands(where: str, ranks: int) -> str:
    if where.partition(" ")[0] in _WAITS:
        return f"{'wait' if ranks > 1 else 'waits'} in {where}"
    return f"{'are' if ranks > 1 else 'is'} in {where}"


def begin(path: str, tag: str) -> int:
    """Write the line before an answer; gives how long the file is then."""
    return _append(path, {"begin": tag})


def end(path: str, tag: str, where: str, fault: str) -> None:
    """Write the line after an answer."""
    _append(path, {"end": tag, "place": where, "fault": fault})


def _append(path: str, line: Mapping[str, str]) -> int:
    fd = os.open(path, _APPEND, 0o600)
    try:
        os.write(fd, json.dumps(line).encode() + b"\n")
        return os.fstat(fd).st_size
    finally:
        os.close(fd)


def answer_to(text: str, tag: str) -> tuple[str, str, str] | None:
    """Return what a rank has answered to a request: its stacks, its place, its fault; None while that is not whole."""
    _, begun, rest = text.rpartition(json.dumps({"begin": tag}) + "\n")
    if not begun:
        return None
    lines = rest.splitlines(keepends=True)
    for index, line in enumerate(lines):
        if line.startswith('{"end": ') and line.endswith("\n"):
            ended = json.loads(line)
            return "".join(lines[:index]), str(ended["place"]), str(ended["fault"])
    return None
