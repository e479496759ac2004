"""The handle of an open session: it sends requests to the kernel at the place, and reads what that says."""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks.returned import dumps
from jupyter_autotrain.agent.session import messages
from jupyter_autotrain.agent.session.messages import Message
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.client.sessions.connection import (
    PAUSE_S,
    CellError,
    Connection,
    as_warning,
    ended,
    ends,
    failure,
)
from jupyter_autotrain.errors import AutotrainError

MOST_BYTES: Final = 256_000_000  # of a variable
_PIECE_BYTES: Final = 2 << 20
_LEAST_PAUSE_S: Final = 0.002
_PAUSE_GROWTH: Final = 1.2
_LOOK_EVERY_S: Final = 1.0
_STARTS_IN_S: Final = 600.0
_RECENT_BYTES: Final = 1 << 20  # of the stream, in which the newest cell is looked for


class Session(Connection):
    """An open session that is connected to: its cells, its variables and its files."""

    def show_last(self, show: Callable[[Message], object]) -> None:
        """Show the newest cell of the session, whoever ran it, and wait for its end where it still runs.

        Raises:
            CellError: It has raised.
            AutotrainError: The session has ended, or its kernel began anew.
        """
        self.go_back(_RECENT_BYTES)
        recent: list[Message] = []
        while found := self.receive():
            recent += found
        begins = [one["parent_header"].get("msg_id") for one in recent if one["msg_type"] == "execute_input"]
        if begins:
            self.follow(str(begins[-1]), show, earlier=recent)

    def run(
        self,
        code: str,
        show: Callable[[Message], object] = lambda _: None,
        answer: Callable[[str], str] | None = None,
        *,
        silent: bool = False,
    ) -> None:
        """Run a cell and wait for its end.

        Args:
            code: The cell.
            show: Called with each message about it, as it comes.
            answer: Asks the user a question of the cell; None: a cell that asks fails.
            silent: Whether it is no cell of the user: it has no number and shows nothing.

        Raises:
            CellError: It has raised.
            AutotrainError: The session has ended, or its kernel began anew.
        """
        content: Message = {
            "code": code, "silent": silent, "store_history": not silent, "user_expressions": {},
            "allow_stdin": answer is not None, "stop_on_error": True,
        }  # fmt: skip
        request = self.ask("shell", "execute_request", content)
        self.follow(request["header"]["msg_id"], show, answer)

    def follow(
        self,
        request_id: str,
        show: Callable[[Message], object],
        answer: Callable[[str], str] | None = None,
        earlier: Sequence[Message] = (),
    ) -> None:
        """Wait for the end of a request; an interrupt here interrupts the cell there, a second one ends the waiting.

        Args:
            request_id: The id of the request's message.
            show: Called with each message about it.
            answer: Asks the user a question of the cell.
            earlier: Messages that have been received already.

        Raises:
            CellError: The cell has raised.
            AutotrainError: The session has ended, or its kernel began anew.
        """
        waiting = {"reply", "idle"}
        failed: CellError | None = None
        is_interrupted = False
        pause_s = _LEAST_PAUSE_S
        while waiting:
            try:
                found = list(earlier) or self.receive()
                earlier = ()
                for one in found:
                    if one["parent_header"].get("msg_id") != request_id:
                        self._check_kept(one)
                        if warning := as_warning(one):
                            show(warning)
                        continue
                    waiting -= ends(one)
                    failed = failure(one) or failed
                    self._answered(one, answer)
                    show(one)
                pause_s = _LEAST_PAUSE_S if found else min(pause_s * _PAUSE_GROWTH, PAUSE_S)
                time.sleep(pause_s)
            except KeyboardInterrupt:
                if is_interrupted:
                    raise
                is_interrupted = True
                self.interrupt()
        if failed is not None:
            raise failed

    def _answered(self, one: Message, answer: Callable[[str], str] | None) -> None:
        if one["msg_type"] != "input_request" or answer is None:
            return
        try:
            value = answer(str(one["content"].get("prompt", "")))
        except Exception:
            self.interrupt()  # the cell would wait for ever
            raise
        self.send(messages.message("stdin", "input_reply", {"value": value}, one))

    def _check_kept(self, one: Message) -> None:
        if one["channel"] == messages.SESSION and one["msg_type"] in {"restarted", "closed"}:
            why = str(one["content"].get("reason", ""))
            if one["msg_type"] == "closed":
                raise ended(self.experiment, why)
            raise AutotrainError(
                f"The kernel of the session {self.name!r} began anew: {why}.",
                "Its variables are gone.",
                "Run the cells that make them again.",
            )

    def interrupt(self) -> None:
        """Interrupt the cell that runs."""
        self.ask("control", "interrupt_request", {})

    def restart(self) -> None:
        """Begin a new kernel; all variables are gone. The session and what it holds stay."""
        self.ask(messages.SESSION, "restart", {})
        while not any(one["msg_type"] == "restarted" for one in self.receive()):
            time.sleep(PAUSE_S)

    def push(self, name: str, value: object) -> int:
        """Give a variable of the session a value of this process; gives the size of its pickle.

        Raises:
            AutotrainError: The value cannot be pickled, or is too big.
        """
        _check_name(name)
        try:
            data = dumps(value)
        except Exception as error:
            raise AutotrainError(
                f"{name!r} cannot travel: {type(error).__name__}: {error}.", "A value that cloudpickle can pickle.",
                "Make it in the session instead.",
            ) from error  # fmt: skip
        _check_size(name, len(data))
        pieces = range(0, len(data), _PIECE_BYTES)
        for number, start in enumerate(pieces):
            self.backend.put(self.ref, _pushed(name, number), data[start : start + _PIECE_BYTES])
        self._call(f"load(globals(), {name!r}, {len(pieces)})")
        return len(data)

    def pull(self, name: str) -> object:
        """Return the value of a variable of the session. Reading its pickle runs code that the session chose.

        Raises:
            AutotrainError: There is none, it cannot be pickled or rebuilt, or is too big.
        """
        _check_name(name)
        self._call(f"save(globals(), {name!r}, {MOST_BYTES})")
        return self._fetched(name)

    def _fetched(self, name: str) -> object:
        with tempfile.TemporaryDirectory(prefix="autotrain-pull-") as folder:
            path = Path(folder, "value")
            self.backend.fetch(self.ref, f"{messages.FOLDER}/pulled", str(path))
            try:
                with path.open("rb") as file:
                    return pickle.load(file)  # noqa: S301 - written by the user's own session
            except Exception as error:
                raise AutotrainError(
                    f"{name!r} cannot be rebuilt here: {type(error).__name__}: {error}.",
                    "The classes it is made of must be importable or defined here.",
                    "Import or define them in this notebook, then pull again.",
                ) from error

    def _call(self, call: str) -> None:
        try:
            self.run(f"import jupyter_autotrain.agent.session.variables as _v\n_v.{call}\ndel _v", silent=True)
        except CellError as error:
            raise AutotrainError(
                f"The session {self.name!r} answers: {error}.", "", "See its variables: run `dir()` in it."
            ) from None

    def describe(self, names: Sequence[str]) -> dict[str, str]:
        """Return the types and sizes of those of these variables that the session has."""
        self._call(f"save({{'found': _v.describe(globals(), {list(names)!r})}}, 'found', {MOST_BYTES})")
        found = self._fetched("found")
        assert isinstance(found, dict)
        return found

    def files(self) -> dict[str, int]:
        """Return the sizes of the files in its working folder, by path."""
        return self.backend.sizes(self.ref, wire.WORK)

    def put_file(self, source: Path, name: str) -> None:
        """Copy a small file into its working folder.

        Raises:
            AutotrainError: It is too big.
        """
        data = source.read_bytes()
        if len(data) > _PIECE_BYTES:
            raise AutotrainError(
                f"{source} has {format_bytes(len(data))}.", f"At most {format_bytes(_PIECE_BYTES)} are put so.",
                "Name it under `data:` of a cell, or fetch it in the session.",
            )  # fmt: skip
        self.backend.put(self.ref, f"{wire.WORK}/{name}", data)

    def get_file(self, name: str, target: Path) -> None:
        """Copy a file of its working folder here."""
        self.backend.fetch(self.ref, f"{wire.WORK}/{name}", str(target))

    def close_session(self) -> None:
        """End the session, and wait until its trial has ended."""
        self.ask(messages.SESSION, "close", {})
        self.experiment.wait()


def _pushed(name: str, number: int) -> str:
    return f"{messages.FOLDER}/pushed/{name}.{number}"


def _check_name(name: str) -> None:
    if not name.isidentifier():
        raise AutotrainError(f"{name!r} is not the name of a variable.", "A name such as model.", "Correct it.")


def _check_size(name: str, size_bytes: int) -> None:
    if size_bytes > MOST_BYTES:
        raise AutotrainError(
            f"{name!r} has {format_bytes(size_bytes)}.", f"At most {format_bytes(MOST_BYTES)} travel so.",
            "Save it to a file, and name that under `data:`.",
        )  # fmt: skip
