"""The handle of an open session: it sends requests to the kernel at the place, and reads what that says."""

from __future__ import annotations

import itertools
import pickle
import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from jupyter_autotrain import backends
from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks.returned import dumps
from jupyter_autotrain.agent.session import messages
from jupyter_autotrain.agent.session.messages import Message
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef
from jupyter_autotrain.errors import AutotrainError, BackendError

MOST_BYTES: Final = 256_000_000  # of a variable
_PIECE_BYTES: Final = 2 << 20
_LEAST_PAUSE_S: Final = 0.002
_MOST_PAUSE_S: Final = 0.05
_PAUSE_GROWTH: Final = 1.2
_LOOK_EVERY_S: Final = 1.0
_STARTS_IN_S: Final = 600.0


class CellError(Exception):
    """An exception of a cell in a session, with the traceback as its kernel drew it."""

    def __init__(self, content: Message) -> None:
        super().__init__(f"{content.get('ename')}: {content.get('evalue')}")
        self.traceback: Sequence[str] = [str(line) for line in content.get("traceback") or ()]

    def _render_traceback_(self) -> list[str]:
        return [*self.traceback]


class Session:
    """A session that is connected to; to be closed, which leaves it open at its place.

    Args:
        experiment: The session.
        waiting: Called now and then while it starts.

    Raises:
        AutotrainError: It has ended, or its place does not answer.
    """

    def __init__(self, experiment: Experiment, waiting: Callable[[], object] = lambda: None) -> None:
        self.experiment = experiment
        self.name = experiment.name
        self._ref = _started(experiment, waiting)
        spec = experiment.record.spec
        profile = spec.choice(experiment.store.trial(experiment.id, 1).backend).profile
        self._backend = backends.create(profile, BackendContext(experiment.home))
        self._names = itertools.count(time.time_ns())
        self._token = secrets.token_hex(4)
        self._offset = self._wait_for_kernel(waiting)
        self._begun = bytearray()  # of a line whose end has not come
        self._looked_s = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._backend.close()

    def _wait_for_kernel(self, waiting: Callable[[], object]) -> int:
        """Return how long the stream is now: its first frame says that the kernel is there."""
        while True:
            try:
                size = self._backend.sizes(self._ref, messages.FOLDER).get(Path(messages.FRAMES).name, 0)
            except BackendError:  # the folder is not there yet
                size = 0
            if size:
                return size
            _check_runs(self.experiment)
            waiting()
            time.sleep(_MOST_PAUSE_S)

    def send(self, one: Message) -> None:
        """Send a message to the kernel.

        Raises:
            BackendError: The place does not take it.
        """
        name = f"{next(self._names):020d}-{self._token}"
        self._backend.put(self._ref, f"{messages.REQUESTS}/{name}", messages.encode(one))

    def ask(self, channel: str, kind: str, content: Message) -> Message:
        """Send a request; gives it, so that its answers are known by its header."""
        request = messages.message(channel, kind, content)
        self.send(request)
        return request

    def receive(self) -> list[Message]:
        """Return what the kernel has said since the last call.

        Raises:
            AutotrainError: The session has ended.
        """
        (chunk,) = self._backend.read([Cursor(self._ref, messages.FRAMES, self._offset)])
        self._offset += len(chunk.data)
        self._begun += chunk.data
        whole, newline, rest = self._begun.rpartition(b"\n")
        if newline:
            self._begun = rest
        elif time.monotonic() - self._looked_s > _LOOK_EVERY_S:
            self._look()
        found = map(messages.decode, bytes(whole).splitlines())
        return [one for one in found if one is not None]

    def _look(self) -> None:
        """Make sure that the session runs: whoever waits for a message would wait for ever."""
        (status,) = self._backend.poll([self._ref])
        self._looked_s = time.monotonic()
        if not status.doubt and status.state.is_final:
            raise _ended(self.experiment, status.reason)

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
        self, request_id: str, show: Callable[[Message], object], answer: Callable[[str], str] | None = None
    ) -> None:
        """Wait for the end of a request; an interrupt here interrupts the cell there, a second one ends the waiting.

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
                found = self.receive()
                for one in found:
                    self._check_kept(one)
                    if one["parent_header"].get("msg_id") != request_id:
                        continue
                    waiting -= _ends(one)
                    failed = _failure(one) or failed
                    self._answered(one, answer)
                    show(one)
                pause_s = _LEAST_PAUSE_S if found else min(pause_s * _PAUSE_GROWTH, _MOST_PAUSE_S)
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
                raise _ended(self.experiment, why)
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
            time.sleep(_MOST_PAUSE_S)

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
            self._backend.put(self._ref, _pushed(name, number), data[start : start + _PIECE_BYTES])
        self._call(f"load(globals(), {name!r}, {len(pieces)})")
        return len(data)

    def pull(self, name: str) -> object:
        """Return the value of a variable of the session. Reading its pickle runs code that the session chose.

        Raises:
            AutotrainError: There is none, it cannot be pickled or rebuilt, or is too big.
        """
        _check_name(name)
        self._call(f"save(globals(), {name!r}, {MOST_BYTES})")
        with tempfile.TemporaryDirectory(prefix="autotrain-pull-") as folder:
            path = Path(folder, "value")
            self._backend.fetch(self._ref, f"{messages.FOLDER}/pulled", str(path))
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

    def files(self) -> dict[str, int]:
        """Return the sizes of the files in its working folder, by path."""
        return self._backend.sizes(self._ref, wire.WORK)

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
        self._backend.put(self._ref, f"{wire.WORK}/{name}", data)

    def get_file(self, name: str, target: Path) -> None:
        """Copy a file of its working folder here."""
        self._backend.fetch(self._ref, f"{wire.WORK}/{name}", str(target))

    def close_session(self) -> None:
        """End the session, and wait until its trial has ended."""
        self.ask(messages.SESSION, "close", {})
        self.experiment.wait()


def _pushed(name: str, number: int) -> str:
    return f"{messages.FOLDER}/pushed/{name}.{number}"


def _started(experiment: Experiment, waiting: Callable[[], object]) -> JobRef:
    """Return where the session's trial is, as soon as that is known."""
    deadline_s = time.monotonic() + _STARTS_IN_S
    while time.monotonic() < deadline_s:
        trials = experiment.trials
        if trials and trials[0].ref is not None:
            return trials[0].ref
        _check_runs(experiment)
        waiting()
        time.sleep(_MOST_PAUSE_S)
    raise AutotrainError(
        f"The session {experiment.name!r} has not begun: {' '.join(experiment.why()) or 'it waits'}",
        "A place with room for it.",
        f"Ask again later: %autotrain session attach {experiment.name}",
    )


def _check_runs(experiment: Experiment) -> None:
    if experiment.state.is_final:
        raise _ended(experiment, " ".join(experiment.why()))


def _ended(experiment: Experiment, why: str) -> AutotrainError:
    return AutotrainError(
        f"The session {experiment.name!r} has ended{f': {why}' if why else '.'}",
        "A session that is open.",
        f"Open it again: %autotrain session open {experiment.record.spec.name}",
    )


def _check_name(name: str) -> None:
    if not name.isidentifier():
        raise AutotrainError(f"{name!r} is no name of a variable.", "Such as model or history.", "Correct it.")


def _check_size(name: str, size_bytes: int) -> None:
    if size_bytes > MOST_BYTES:
        raise AutotrainError(
            f"{name!r} has {format_bytes(size_bytes)}.", f"At most {format_bytes(MOST_BYTES)} travel so.",
            "Save it to a file, and name that under `data:`.",
        )  # fmt: skip


def _ends(one: Message) -> set[str]:
    """Return what of a request a message ends: its reply, and that all it has shown has come."""
    if one["channel"] == "shell":
        return {"reply"}
    is_idle = one["msg_type"] == "status" and one["content"].get("execution_state") == "idle"
    return {"idle"} if is_idle else set()


def _failure(one: Message) -> CellError | None:
    content = one["content"]
    if one["channel"] != "shell" or content.get("status") == "ok":
        return None
    return CellError({"ename": "Aborted", "evalue": "a cell before it has failed", **content})
