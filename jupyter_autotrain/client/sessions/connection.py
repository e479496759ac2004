"""The connection to an open session: messages to its kernel, what that says, and the end or failure of a cell."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from jupyter_autotrain import backends
from jupyter_autotrain.agent.session import messages
from jupyter_autotrain.agent.session.messages import SESSION, Message
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef
from jupyter_autotrain.errors import AutotrainError, BackendError

PAUSE_S: Final = 0.05  # the longest between two looks
_LOOK_EVERY_S: Final = 1.0
_SEARCH_EVERY_S: Final = 60.0  # for streams
_STARTS_IN_S: Final = 600.0


class Connection:
    """A connection to a session; closing it leaves the session open at its place.

    Args:
        experiment: The session.
        waiting: Called now and then while it starts.

    Raises:
        AutotrainError: It has ended, or its place does not answer.
    """

    def __init__(self, experiment: Experiment, waiting: Callable[[], object] = lambda: None) -> None:
        self.experiment = experiment
        self.name = experiment.name
        self.ref = _started(experiment, waiting)
        spec = experiment.record.spec
        profile = spec.choice(experiment.store.trial(experiment.id, 1).backend).profile
        self.backend = backends.create(profile, BackendContext(experiment.home))
        self._names = itertools.count(time.time_ns())
        self._token = secrets.token_hex(4)
        self._stream = 0  # the number of the one that is read
        self.offset = self._wait_for_kernel(waiting)
        self._begun = bytearray()  # of a line whose end has not come
        self._looked_s = self._searched_s = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; the session goes on."""
        self.backend.close()

    def _wait_for_kernel(self, waiting: Callable[[], object]) -> int:
        """Return how long the newest stream is now: its first frame says that the kernel is there."""
        while True:
            try:
                sizes = self._streams()
            except BackendError:  # the folder is not there yet
                sizes = {}
            if any(sizes.values()):
                self._stream = max(sizes)
                return sizes[self._stream]
            _check_runs(self.experiment)
            waiting()
            time.sleep(PAUSE_S)

    def _streams(self) -> dict[int, int]:
        """Return the sizes of the streams that are there, by their numbers."""
        found = {}
        for path, size in self.backend.sizes(self.ref, messages.FOLDER).items():
            name, _, number = path.rpartition(".")
            if name == Path(messages.FRAMES).name and number.isdecimal():
                found[int(number)] = size
        return found

    def send(self, one: Message) -> None:
        """Send a message to the kernel.

        Raises:
            BackendError: The place does not take it.
        """
        name = f"{next(self._names):020d}-{self._token}"
        self.backend.put(self.ref, f"{messages.REQUESTS}/{name}", messages.encode(one))

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
        (chunk,) = self.backend.read([Cursor(self.ref, f"{messages.FRAMES}.{self._stream}", self.offset)])
        self.offset += len(chunk.data)
        self._begun += chunk.data
        whole, newline, rest = self._begun.rpartition(b"\n")
        if newline:
            self._begun = rest
        elif time.monotonic() - self._looked_s > _LOOK_EVERY_S:
            self._look()
        found = [one for one in map(messages.decode, bytes(whole).splitlines()) if one is not None]
        if found and found[-1]["channel"] == SESSION and found[-1]["msg_type"] == "continued":
            self._read_on(self._stream + 1)
        return found

    def _read_on(self, stream: int) -> None:
        self._stream = stream
        self.offset = 0
        self._begun.clear()

    def skip(self) -> None:
        """Pass over what the kernel has said up to now."""
        while self.receive():
            pass

    def go_back(self, size_bytes: int) -> None:
        """Read again what the kernel has said last."""
        self.offset = max(0, self.offset - size_bytes)
        self._begun.clear()

    def _look(self) -> None:
        """Make sure that the session runs: whoever waits for a message would wait for ever."""
        (status,) = self.backend.poll([self.ref])
        self._looked_s = time.monotonic()
        if not status.doubt and status.state.is_final:
            raise ended(self.experiment, status.reason)
        if self._looked_s - self._searched_s > _SEARCH_EVERY_S:
            self._searched_s = self._looked_s
            oldest = min(self._streams(), default=0)
            if oldest > self._stream:  # this process was stopped for long, and what it has not read is gone
                self._read_on(oldest)


def _started(experiment: Experiment, waiting: Callable[[], object]) -> JobRef:
    """Return where the session's trial is, as soon as that is known."""
    deadline_s = time.monotonic() + _STARTS_IN_S
    while time.monotonic() < deadline_s:
        trials = experiment.trials
        if trials and trials[0].ref is not None:
            return trials[0].ref
        _check_runs(experiment)
        waiting()
        time.sleep(PAUSE_S)
    raise AutotrainError(
        f"The session {experiment.name!r} has not begun: {' '.join(experiment.why()) or 'it waits'}",
        "A place with room for it.",
        f"Ask again later: %autotrain session attach {experiment.name}",
    )


def _check_runs(experiment: Experiment) -> None:
    if experiment.state.is_final:
        raise ended(experiment, " ".join(experiment.why()))


def ended(experiment: Experiment, why: str) -> AutotrainError:
    """Return the error of a session that has ended."""
    return AutotrainError(
        f"The session {experiment.name!r} has ended{f': {why}' if why else '.'}",
        "A session that is open.",
        f"Open it again: %autotrain session open {experiment.record.spec.name}",
    )


class CellError(Exception):
    """An exception of a cell in a session, with the traceback as its kernel drew it."""

    def __init__(self, content: Message) -> None:
        super().__init__(f"{content.get('ename')}: {content.get('evalue')}")
        self.traceback: Sequence[str] = list(map(str, content.get("traceback") or ()))

    def _render_traceback_(self) -> list[str]:
        return [*self.traceback]


def ends(one: Message) -> set[str]:
    """Return what of a request a message ends: its reply, and that all it has shown has come."""
    if one["channel"] == "shell":
        return {"reply"}
    is_idle = one["msg_type"] == "status" and one["content"].get("execution_state") == "idle"
    return {"idle"} if is_idle else set()


def text_of(one: Message) -> str:
    """Return what a message holds for people, as text; "" where it holds nothing."""
    content = one["content"]
    if one["msg_type"] == "stream":
        return str(content.get("text", ""))
    if one["msg_type"] in {"display_data", "execute_result"}:
        return f"{(content.get('data') or {}).get('text/plain', '')}\n"
    return ""


def failure(one: Message) -> CellError | None:
    """Return the exception that a reply tells; None where it tells none."""
    content = one["content"]
    if one["channel"] != "shell" or content.get("status") == "ok":
        return None
    return CellError({"ename": "Aborted", "evalue": "a cell before it has failed", **content})


def as_warning(one: Message) -> Message | None:
    """Return what a session warns of, as a message of the stream stderr; None where it warns of nothing."""
    if one["channel"] != SESSION or one["msg_type"] != "warning":
        return None
    content = {"name": "stderr", "text": f"{one['content'].get('text', '')}\n"}
    return {**one, "msg_type": "stream", "content": content}
