"""A terminal of a session, in the terminal that this process has."""

from __future__ import annotations

import os
import secrets
import select
import termios
import tty
from typing import Final

from jupyter_autotrain.agent.session import messages
from jupyter_autotrain.client.sessions.handle import Session
from jupyter_autotrain.errors import AutotrainError

LEAVE: Final = b"\x1d"  # Ctrl-]
_PIECE_BYTES: Final = 1 << 14
_PAUSE_S: Final = 0.02


def run_shell(session: Session, keys: int, screen: int) -> None:
    """Pass keys to a shell at the session's place, and its output here, until it ends or the user leaves by Ctrl-].

    Args:
        session: The session.
        keys: The descriptor of a terminal that is read.
        screen: The descriptor that is written.

    Raises:
        AutotrainError: This is no terminal, or the session has ended.
    """
    if not os.isatty(keys):
        raise AutotrainError(
            "A shell needs a terminal, and there is none here.", "A terminal of this machine.",
            f"There: jupyter autotrain session shell {session.name}",
        )  # fmt: skip
    before = termios.tcgetattr(keys)
    try:
        tty.setraw(keys)
        _Screen(session, keys, screen).run()
    finally:
        termios.tcsetattr(keys, termios.TCSADRAIN, before)


class _Screen:
    def __init__(self, session: Session, keys: int, screen: int) -> None:
        self._session = session
        self._keys = keys
        self._screen = screen
        self._id = secrets.token_hex(4)
        self._size = os.terminal_size((0, 0))

    def run(self) -> None:
        self._tell_size("shell_open")
        while True:
            ready, _, _ = select.select([self._keys], [], [], _PAUSE_S)
            data = os.read(self._keys, _PIECE_BYTES) if ready else b""
            if LEAVE in data or (ready and not data):
                self._session.ask(messages.SESSION, "shell_close", {"id": self._id})
                return
            if data:
                request = messages.message(messages.SESSION, "shell_keys", {"id": self._id})
                self._session.send({**request, "buffers": [data]})
            elif os.get_terminal_size(self._keys) != self._size:
                self._tell_size("shell_size")
            if not self._show():
                return

    def _tell_size(self, kind: str) -> None:
        self._size = os.get_terminal_size(self._keys)
        content: messages.Message = {"id": self._id, "rows": self._size.lines, "columns": self._size.columns}
        self._session.ask(messages.SESSION, kind, content)

    def _show(self) -> bool:
        """Show what is new; gives False once the shell has ended."""
        for one in self._session.receive():
            if one["channel"] != messages.SESSION or one["content"].get("id") != self._id:
                continue
            if one["msg_type"] == "shell_closed":
                return False
            for data in one["buffers"]:
                os.write(self._screen, data)
        return True
