"""Connections to a host with the agent at its other end: questions, answers matched by number, pushed news.

A connection is made by the transport that the profile names.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends import travelling_code
from jupyter_autotrain.backends.ssh import openssh_transport
from jupyter_autotrain.backends.ssh.address import HostAddress, TransportKind
from jupyter_autotrain.backends.ssh.large_channels import FolderChannel
from jupyter_autotrain.backends.ssh.pushed_jobs import PushedJobs
from jupyter_autotrain.backends.ssh.transport import HostKey, Transport, start
from jupyter_autotrain.backends.transfer import folders
from jupyter_autotrain.backends.transfer.channels import Channel, LinkLostError, NoAnswerError, no_answer
from jupyter_autotrain.backends.transfer.sending import Receiver
from jupyter_autotrain.errors import AutotrainError, BackendError, MissingExtraError


def check_installed(kind: TransportKind) -> None:
    """Make sure that the program or library of the transport is installed here.

    Raises:
        MissingExtraError: paramiko is asked for and not installed.
    """
    if kind is TransportKind.PARAMIKO and find_spec("paramiko") is None:
        raise _missing(ModuleNotFoundError(name="paramiko"))


def connect(address: HostAddress, kind: TransportKind) -> Transport:
    """Connect to a host.

    Raises:
        BackendUnavailableError: It cannot be reached, is not trusted, or does not let the user in.
        MissingExtraError: paramiko is asked for and not installed.
    """
    if kind is TransportKind.OPENSSH:
        return openssh_transport.OpenSshTransport(address)
    _load_when_used("invoke")  # 100 ms; paramiko imports it for a part of its own reader of configurations
    try:
        from jupyter_autotrain.backends.ssh.paramiko_transport import ParamikoTransport  # noqa: PLC0415 - optional
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    return ParamikoTransport(address)


def host_key(address: HostAddress, kind: TransportKind) -> HostKey:
    """Return the key that a host shows now, trusted or not; hosts in between must be trusted.

    Raises:
        BackendUnavailableError: It cannot be reached.
        MissingExtraError: paramiko is asked for and not installed.
    """
    if kind is TransportKind.OPENSSH:
        return openssh_transport.host_key(address)
    try:
        from jupyter_autotrain.backends.ssh import paramiko_connecting  # noqa: PLC0415 - optional
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    return paramiko_connecting.host_key(address)


def _load_when_used(name: str) -> None:
    """Have a module, where it is installed, loaded by the first look at something in it."""
    spec = None if name in sys.modules else find_spec(name)
    if spec is None:
        return
    placeholder = ModuleType(name)
    placeholder.__spec__ = spec

    def load(attribute: str) -> object:
        if sys.modules.get(name) is placeholder:
            del sys.modules[name]
        return getattr(import_module(name), attribute)

    placeholder.__getattr__ = load  # type: ignore[method-assign]  # of a module, as PEP 562 has it
    sys.modules[name] = placeholder


def _missing(error: ModuleNotFoundError) -> MissingExtraError:
    return MissingExtraError(error.name or "paramiko", "ssh", "A backend that is reached by SSH")


HEARTBEAT_S = 3.0
SILENT_S = 10.0  # a host that answers no heartbeat for so long does not answer any more
_SERVE = (
    "root = main(); sys.path.insert(0, str(root)); "
    "from jupyter_autotrain.agent.service import service; service.main(str(root.parent.parent))"
)


@dataclass(frozen=True, slots=True)
class HostConfig:
    """The configuration of a host: its address, the interpreter there, and the folder of everything that is ours.

    `address_of_ranks` is how the other hosts of one trial reach it, "" where it is to be found out.
    """

    address: HostAddress
    transport: TransportKind
    python: str
    workdir: str
    address_of_ranks: str = ""
    heartbeat_s: float = HEARTBEAT_S  # an agent ends after some time without a request, and so may trials with a lease
    cache_limit_bytes: int | None = None  # of code there; None: nothing is removed


class AgentConnection:
    """A connection with its agent; once lost it stays lost, and `loss` says why.

    Args:
        config: The host.
        on_news: Called with the names of jobs that something was pushed of, of all jobs when the connection is lost.

    Raises:
        AutotrainError: The host cannot be reached, or cannot run the agent.
    """

    def __init__(self, config: HostConfig, on_news: Callable[[Collection[str]], None]) -> None:
        self.name = config.address.name
        self.pushed = PushedJobs()
        self._on_news = on_news
        threading.Thread(target=travelling_code.archive, daemon=True).start()  # it is made while the host answers
        self.transport: Transport = connect(config.address, config.transport)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[JsonValue]] = {}
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._transferred_s = 0.0
        self.loss: LinkLostError | None = None
        with contextlib.ExitStack() as undone:
            undone.callback(self.transport.close)
            self._agent = Receiver(self._start, config.python, self.name, _SERVE)
            undone.callback(self._agent.channel.close)
            self._agent.send(folders.of_agent(travelling_code.archive()), config.workdir, "agents")
            self.greeting = self._agent.answer("root")
            undone.pop_all()
        self.folders = FolderChannel(self._start, config.python, self.name, self.note_transfer)
        threading.Thread(target=self._listen, name=f"ssh-{self.name}", daemon=True).start()

    def _start(self, argv: Sequence[str]) -> Channel:
        return start(self.transport, argv, self.name)

    def ask(self, message: Mapping[str, object], within_s: float) -> JsonValue:
        """Ask the agent, and wait for its answer.

        Raises:
            LinkLostError: The connection is gone, or is given up as no answer has come.
            BackendError: The agent refuses.
        """
        answer = self.tell(message)
        try:
            return answer.result(within_s)
        except TimeoutError:
            raise self._mark_lost(no_answer(self.name, within_s)) from None

    def tell(self, message: Mapping[str, object]) -> Future[JsonValue]:
        """Ask the agent; the answer comes later.

        Raises:
            LinkLostError: The connection is gone.
        """
        answer: Future[JsonValue] = Future()
        with self._lock:
            if self.loss is not None:
                raise self.loss
            number = next(self._numbers)
            self._waiting[number] = answer
        line = json.dumps({"id": number, **message}).encode() + b"\n"
        try:
            with self._sending, contextlib.suppress(BrokenPipeError):  # it has ended: the listening thread finds it
                self._agent.channel.send(line, SILENT_S)
        except LinkLostError as error:
            raise self._mark_lost(error) from error
        return answer

    def _listen(self) -> None:
        try:
            while True:
                self._take(self._line())
        except Exception as error:  # noqa: BLE001 - whatever it is, every waiter must be released
            self._mark_lost(error)

    def _line(self) -> JsonObject:
        """Wait for the agent's next line. It answers each heartbeat, unless a transfer fills the connection."""
        while True:
            try:
                return self._agent.line(SILENT_S)
            except NoAnswerError:
                if time.monotonic() - self._transferred_s >= SILENT_S:
                    raise

    def note_transfer(self) -> None:
        """Note that a piece of a file has been sent or received: the host answers, maybe late."""
        self._transferred_s = time.monotonic()

    def _take(self, message: JsonObject) -> None:
        if "push" not in message:
            with self._lock:
                waiting = self._waiting.pop(cast("int", message["id"]))
            self._settle(waiting, message)
        elif name := self.pushed.take(message):
            self._on_news([name])

    def _settle(self, waiting: Future[JsonValue], answer: JsonObject) -> None:
        if "failure" in answer:
            found, expected, action = cast("list[str]", answer["failure"])
            named = found if self.name in found else f"{self.name}: {found}"
            waiting.set_exception(BackendError(named, expected, action))
        else:
            waiting.set_result(answer["ok"])

    def _mark_lost(self, error: Exception) -> LinkLostError:
        """Note the first reason why the connection is lost, release its waiters, end it, and return the reason."""
        why = error.found if isinstance(error, AutotrainError) else repr(error)
        expected = "An agent that runs as long as the link."
        ended = LinkLostError(f"The agent on {self.name} has ended: {why}", expected, "Another one is started.")
        with self._lock:
            if self.loss is not None:
                return self.loss
            self.loss = loss = error if isinstance(error, LinkLostError) else ended
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for answer in waiting:
            answer.set_exception(loss)
        self._on_news(self.pushed.names())
        self.transport.close()  # whoever is still sending waits for a host that takes nothing
        return loss

    def close(self) -> None:
        """Give the connection up; the agent ends, and the trials it started go on."""
        self.transport.close()
        self.folders.close()
        self._agent.channel.close()


_ANSWER_S = 60.0
_LONG_ANSWER_S = 900.0
# What reads, removes or checks whole folders, or runs programs that take their time.
_LONG = frozenset({
    "python", "make_room", "data_room", "use_data", "keep_data", "remove", "experiments", "remove_experiments",
    "environments", "remove_environment", "slurm",
})  # fmt: skip


def patience_s(do: str, content: Mapping[str, object]) -> float:
    """Return how long the answer to a request may take."""
    grace_s = content.get("grace_s", 0.0)
    assert isinstance(grace_s, int | float)
    return grace_s + (_LONG_ANSWER_S if do in _LONG else _ANSWER_S)
