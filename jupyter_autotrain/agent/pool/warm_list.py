"""The warm processes of a folder (`warm_process`): listed, ended, and kept within a bound of memory."""

from __future__ import annotations

import contextlib
import os
import signal

from jupyter_autotrain.agent import fields, files, system
from jupyter_autotrain.agent.supervisor import termination
from jupyter_autotrain.agent.system import processes
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.agent.trial import trial_lock

_GRACE_S = 2.0


class WarmEntry:
    """A warm process.

    Attributes:
        process: Its identity.
        python: The interpreter of its trials.
        imports: What it has imported for them.
        left_out: What it leaves to them, and why.
        used_s: When it last began one, as the wall clock has it.
        memory_bytes: What it holds; pages that trials share with it are divided among them.
    """

    def __init__(self, path: str, process: ProcessIdentity) -> None:
        self.process = process
        self.python = str(_read(path, "needs").get("python", ""))
        loaded = _read(path, "loaded")
        self.imports = fields.strings(loaded.get("imports"))
        self.left_out = {name: str(why) for name, why in fields.mapping(loaded.get("left_out")).items()}
        self.used_s = _used_s(path)
        self.memory_bytes = system.resident_bytes(process.pid)


def living(folder: str | os.PathLike[str]) -> list[WarmEntry]:
    """Return those that live, the most recently used first."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(folder):
            entry = _entry(os.path.join(folder, name))
            found += [entry] if entry is not None else []
    return sorted(found, key=lambda entry: -entry.used_s)


def _entry(path: str) -> WarmEntry | None:
    process = ProcessIdentity.from_json(trial_lock.read_owner(path).get("supervisor"))
    return WarmEntry(path, process) if process is not None and process.is_alive() else None


def _used_s(path: str) -> float:
    with contextlib.suppress(OSError):
        return os.stat(f"{path}/lock").st_mtime
    return 0.0


def _read(path: str, name: str) -> dict[str, object]:
    with contextlib.suppress(OSError, ValueError):
        return dict(fields.mapping(files.read_json(path, name)))
    return {}


def end_all(folder: str | os.PathLike[str]) -> int:
    """End all, and return how many there were. The trials that they have begun go on."""
    found = {entry.process.pid: entry.process for entry in living(folder)}
    termination.terminate(lambda: {pid for pid, process in found.items() if process.is_alive()}, _GRACE_S)
    return len(found)


def keep_within(folder: str | os.PathLike[str], limit_bytes: int, me: int) -> None:
    """Have those that were used least recently end until all together hold no more than this, but for `me`."""
    total_bytes = 0
    for entry in sorted(living(folder), key=lambda entry: entry.process.pid != me):
        total_bytes += entry.memory_bytes
        if total_bytes > limit_bytes and entry.process.pid != me:
            total_bytes -= entry.memory_bytes
            with contextlib.suppress(OSError):  # it has ended by itself
                processes.send_signal(entry.process, signal.SIGTERM)
