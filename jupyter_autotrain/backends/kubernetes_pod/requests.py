"""What the manager asks a running pod for, by `exec`: put a file, read a part of one, list files, stop to linger.

`put PATH BASE64`, `append PATH BASE64` (to a draft that `put` completes), `read PATH OFFSET LENGTH` (writes the bytes),
`list` (writes JSON), `acknowledge`. A request that cannot be met ends with 1, and a line on stderr says why.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Sequence

from jupyter_autotrain.backends.kubernetes_pod import places
from jupyter_autotrain.core import files, wire

_DRAFT = ".draft-of-request"
_STREAM_FILES = frozenset({places.STATES, places.FILES})


class PodRequests:
    """Answers in one pod.

    Args:
        run: The folder of everything in the pod.
    """

    def __init__(self, run: str = places.RUN) -> None:
        self._run = run
        self._directory = f"{run}/{places.TRIAL}"

    def answer(self, name: str, arguments: Sequence[str]) -> bytes:
        """What a request gives.

        Raises:
            OSError: It cannot be met.
            ValueError: There is no such request, or a path leads out of the trial directory.
        """
        if name == "put":
            return self._put(*arguments)
        if name == "append":
            return self._append(*arguments)
        if name == "read":
            path, offset, length = arguments
            return files.read(self._folder_of(path), path, int(length), int(offset))
        if name == "list":
            return json.dumps(self._sizes()).encode()
        if name == "acknowledge":
            wire.write_atomically(f"{self._run}/{places.ACKNOWLEDGED}", b"")
            return b""
        raise ValueError(f"there is no request {name!r}")

    def _folder_of(self, path: str) -> str:
        return self._run if path in _STREAM_FILES else self._directory

    def _put(self, path: str, text: str) -> bytes:
        target = self._inside(path)
        draft = f"{self._run}/{_DRAFT}"
        data = base64.b64decode(text)
        if os.path.exists(draft):
            with open(draft, "rb") as file:
                data = file.read() + data
            os.unlink(draft)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        wire.write_atomically(target, data)
        return b""

    def _append(self, path: str, text: str) -> bytes:
        self._inside(path)
        with open(f"{self._run}/{_DRAFT}", "ab") as file:
            file.write(base64.b64decode(text))
        return b""

    def _inside(self, path: str) -> str:
        target = os.path.normpath(f"{self._directory}/{path}")
        if not target.startswith(f"{self._directory}/"):
            raise ValueError(f"{path!r} leads out of the trial directory")
        return target

    def _sizes(self) -> dict[str, int]:
        found = {}
        for name, _ in files.walk(self._directory):
            if os.path.isfile(f"{self._directory}/{name}") and not os.path.islink(f"{self._directory}/{name}"):
                found[name] = os.lstat(f"{self._directory}/{name}").st_size
        return found


def main(arguments: Sequence[str]) -> None:
    """Answer one request on the standard streams."""
    os.umask(0o077)
    try:
        if arguments[0] == "run":
            from jupyter_autotrain.backends.kubernetes_pod import pilot  # noqa: PLC0415 - few pods are long-running

            pilot.accept(arguments[1], sys.stdin.buffer.read(int(arguments[2])))
            return
        answer = PodRequests().answer(arguments[0], arguments[1:])
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
