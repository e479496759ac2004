"""One connection to a host with the agent at its other end: questions and answers, matched by number."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import cast

from jupyter_autotrain.backends.ssh.address import HostAddress
from jupyter_autotrain.backends.ssh.agent_tree import agent_folder
from jupyter_autotrain.backends.ssh.connecting import TransportKind, connect
from jupyter_autotrain.backends.ssh.sending import Receiver
from jupyter_autotrain.backends.ssh.transport import LinkLostError, Transport
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.errors import BackendError

_SERVE = (
    "root = main(); sys.path.insert(0, str(root)); "
    "from jupyter_autotrain.backends.ssh import agent; agent.main(str(root.parent.parent))"
)


@dataclass(frozen=True, slots=True)
class HostConfig:
    """Where and by what a host's trials run: the interpreter there, and the folder of everything that is ours."""

    address: HostAddress
    transport: TransportKind
    python: str
    workdir: str


class AgentConnection:
    """A connection with its agent; once lost it stays lost, and `loss` says why.

    Raises:
        AutotrainError: The host cannot be reached, or cannot run the agent.
    """

    def __init__(self, config: HostConfig) -> None:
        self.name = config.address.name
        self.transport: Transport = connect(config.address, config.transport)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[JsonValue]] = {}
        self._lock = threading.Lock()
        self.loss: Exception | None = None
        try:
            self._agent = Receiver(self.transport, config.python, self.name, _SERVE)
            self._agent.send(agent_folder(), config.workdir, "agents")
            self.greeting = self._agent.line()
        except BaseException:
            self.transport.close()
            raise
        threading.Thread(target=self._listen, name=f"ssh-{self.name}", daemon=True).start()

    def ask(self, message: Mapping[str, object]) -> Future[JsonValue]:
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
            with contextlib.suppress(BrokenPipeError):  # the agent has ended: the listening thread finds it
                self._agent.channel.send(json.dumps({"id": number, **message}).encode() + b"\n")
        return answer

    def _listen(self) -> None:
        try:
            while True:
                answer = self._agent.line()
                with self._lock:
                    waiting = self._waiting.pop(cast("int", answer["id"]))
                _settle(waiting, answer)
        except Exception as error:  # noqa: BLE001 - whatever it is, every waiter must be released
            self._mark_lost(error)

    def _mark_lost(self, error: Exception) -> None:
        is_link = isinstance(error, LinkLostError)
        loss = error if is_link else LinkLostError(f"The agent on {self.name} has ended: {error}")
        with self._lock:
            self.loss = loss
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for answer in waiting:
            answer.set_exception(loss)

    def close(self) -> None:
        """Give it up; the agent ends, and what it started goes on."""
        self._agent.channel.close()
        self.transport.close()


def _settle(waiting: Future[JsonValue], answer: JsonObject) -> None:
    if "failure" in answer:
        found, expected, action = cast("list[str]", answer["failure"])
        waiting.set_exception(BackendError(found, expected, action))
    else:
        waiting.set_result(answer["ok"])
