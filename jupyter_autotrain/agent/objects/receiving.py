"""The program on a host that receives folders of files, named by their content's digest. It is sent there as text.

Needs only the standard library of Python 3.9. On standard input come lines of JSON and one tar stream; answers go to
standard output, one line of JSON each:

```
-> {"root", "kind", "digest"}         <- {"is_complete": true}, or false and then:
-> {"files": [[path, size, sha256, is_executable]], "folders": [path]}
                                       <- {"needed": {sha256: bytes that are there}}
-> tar; a member is named sha256@offset <- {"is_complete": true}, or {"error": text, "kind": "damaged", "full" or ""}
```

A folder is complete or not there. Our own code comes as a folder of one file, its archive, and is unpacked. Files are
kept by their digests as well, see `received_files`: those of a kind below `root` for all folders there, those of a
deeper one beside the folder until it is complete.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import sys
import tarfile
from pathlib import Path
from typing import Any

from jupyter_autotrain.agent.locks import unused, used
from jupyter_autotrain.agent.objects.agent_archive import unpack_in
from jupyter_autotrain.agent.objects.received_files import SILENCE_S, DamagedFileError, ReceivedFiles

_COMPILED = ("bundles", "kept_bundles")
_CODE_KIND = "agents"
_DATA_KIND = "folders"  # of the cache of data, see `agent.objects.data_cache`
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
Message = dict[str, Any]


def receive() -> Path:
    """Receive one folder; return its path."""
    asked = _line()
    root = Path(os.path.abspath(Path(asked["root"]).expanduser()))
    goal = root / str(asked["kind"]) / str(asked["digest"])
    if not goal.is_dir():
        _receive_into(root, goal)
    with contextlib.suppress(FileNotFoundError):  # room was just made for another folder; its user will notice
        os.utime(goal)
    _answer({"is_complete": True, "path": str(goal)})
    return goal


def _receive_into(root: Path, goal: Path) -> None:
    is_cached = goal.parent.parent == root
    blobs = (root if is_cached else goal.parent) / "blobs"
    for folder in (root, goal.parent, blobs):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with used(blobs):  # no file goes until the folder is complete, or this process ends
        _answer({"is_complete": False})
        wanted = _line()
        received = ReceivedFiles(blobs, {sha256: size for _, size, sha256, _ in wanted["files"]})
        _answer({"needed": received.needed()})
        received.unpack()
        _assemble(received, wanted, goal)
    if not is_cached:
        with unused(blobs) as is_unused:
            if is_unused:  # no other receives the same: they were this folder's alone, and it is complete
                shutil.rmtree(blobs, ignore_errors=True)


def _line() -> Message:
    signal.alarm(SILENCE_S)  # a server does not notice that a link is cut, so this program would stay forever
    line = sys.stdin.buffer.readline()
    signal.alarm(0)
    if not line.endswith(b"\n"):  # the other end is gone
        os._exit(0)
    content: Message = json.loads(line)
    return content


def _answer(content: Message) -> None:
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


def _assemble(received: ReceivedFiles, wanted: Message, goal: Path) -> None:
    """Make the folder, which is complete or not there.

    Data, which is big, is write-protected and shared by all folders.
    """
    is_data = goal.parent.name == _DATA_KIND
    mode, executable_mode = (0o400, 0o500) if is_data else (0o600, 0o700)
    draft = goal.with_name(f"{goal.name}.draft-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        draft.mkdir(mode=0o700)
        for path in wanted["folders"]:
            _inside(draft, path).mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, _, sha256, is_executable in wanted["files"]:
            target = _inside(draft, path)
            received.place(sha256, target, executable_mode if is_executable else mode, is_shared=is_data)
        if goal.parent.name == _CODE_KIND:
            unpack_in(str(draft))
        if goal.parent.name in _COMPILED:
            _compile(draft, goal)
        if not goal.is_dir():  # else another one was faster
            draft.rename(goal)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _compile(draft: Path, goal: Path) -> None:
    import compileall  # noqa: PLC0415 - 20 ms, and our own code comes compiled

    compileall.compile_dir(str(draft), quiet=2, ddir=str(goal))


def _inside(folder: Path, path: str) -> Path:
    target = Path(os.path.normpath(folder / path))
    if folder not in target.parents:
        raise ValueError(f"{path} leads out of the folder")
    return target


def main() -> Path:
    """Receive one folder, and say why where it cannot be."""
    os.umask(0o077)
    try:
        return receive()
    except (OSError, ValueError, KeyError, tarfile.TarError) as error:
        _answer({"error": str(error) or type(error).__name__, "kind": _kind_of(error)})
        os._exit(1)


def _kind_of(error: Exception) -> str:
    if isinstance(error, DamagedFileError):
        return "damaged"
    return "full" if isinstance(error, OSError) and error.errno in _FULL else ""


def serve() -> None:
    """Receive folders until no more come."""
    while True:
        main()
