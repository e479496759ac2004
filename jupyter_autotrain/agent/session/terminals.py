"""Terminals of a session: shells in its working folder, whose keys and output are messages of the channel `session`.

`shell_open`, `shell_keys` (its buffer), `shell_size` and `shell_close` are asked for, `shell_output` and `shell_closed`
are told; each with the `id` of the terminal, and with the rows and columns where these matter.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import subprocess
import termios

from jupyter_autotrain.agent.session.messages import SESSION, Message, message

_PIECE_BYTES = 1 << 16


class Terminals:
    """The terminals that are open, by their ids."""

    def __init__(self) -> None:
        self._open: dict[str, _Terminal] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def take(self, request: Message) -> None:
        """Do what a request asks for; one about a terminal that has ended does nothing."""
        content = request["content"]
        name = str(content.get("id"))
        size = (int(content.get("rows", 24)), int(content.get("columns", 80)))
        kind = request["msg_type"]
        if kind == "shell_open":
            self._open[name] = _Terminal(size)
        elif name in self._open:
            terminal = self._open[name]
            if kind == "shell_keys":
                terminal.write(b"".join(request["buffers"]))
            elif kind == "shell_size":
                terminal.resize(size)
            elif kind == "shell_close":
                terminal.close()

    def said(self) -> list[Message]:
        """Return what the shells have printed, and which have ended."""
        found = []
        for name, terminal in list(self._open.items()):
            data = terminal.read()
            if data:
                one = message(SESSION, "shell_output", {"id": name})
                found.append({**one, "buffers": [data]})
            elif data is None:
                del self._open[name]
                terminal.close()
                found.append(message(SESSION, "shell_closed", {"id": name}))
        return found


class _Terminal:
    def __init__(self, size: tuple[int, int]) -> None:
        self._fd, inner = os.openpty()
        os.set_blocking(self._fd, False)
        self.resize(size)
        shell = os.environ.get("SHELL") or "/bin/sh"
        # The first terminal that the first process of a session opens controls it.
        command = ["/bin/sh", "-c", 'exec "$0" <"$1" >"$1" 2>&1', shell, os.ttyname(inner)]
        environment = {**os.environ, "TERM": "xterm-256color"}
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
        os.close(inner)

    def read(self) -> bytes | None:
        """Return what is new; None once the shell has ended."""
        try:
            return os.read(self._fd, _PIECE_BYTES) or None
        except BlockingIOError:
            return b""
        except OSError:  # as Linux says that nobody has its other side open: no more, or not yet
            return None if self._process.poll() is not None else b""

    def write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # it has ended, or does not read
            os.write(self._fd, data)

    def resize(self, size: tuple[int, int]) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            os.close(self._fd)
