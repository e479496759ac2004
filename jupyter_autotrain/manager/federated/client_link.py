"""The way to one client: a thread that brings it orders and takes its answers, by the files of its trial directory.

A place that hangs keeps no other client waiting.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.ranks.federated import weights as weights_of
from jupyter_autotrain.agent.ranks.federated.weights import Weights, WeightsError
from jupyter_autotrain.core.backend import Backend, Cursor, JobRef
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError
from jupyter_autotrain.manager.federated.aggregation import Update

_LEAST_PAUSE_S = 0.004
_MOST_PAUSE_S = 0.25
_AGE_SHARE = 0.05  # of the time since the last news
_AGAIN_S = 1.0
_LONGEST_LINE_BYTES = 1 << 20
_MORE_BYTES = 1 << 20  # than the global model has, for names and other number types
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClientJob:
    """The running job of a client."""

    number: int
    job_id: str
    backend: Backend
    ref: JobRef


@dataclass(frozen=True, slots=True)
class Order:
    """The next thing that clients do.

    Attributes:
        id: Grows from order to order.
        kind: `initial`: send the weights as they are; `train`: a round; `end`: the training is over.
        weights: The file of the global weights here; None where there are none yet.
        sha256: Its digest.
        config: Settings of the round for clients.
    """

    id: int
    kind: str
    round: int
    rounds: int
    weights: Path | None = None
    sha256: str = ""
    config: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """A client is ready for orders; `key` is its public key, or ""."""

    number: int
    key: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A client has carried an order out; with a fault instead of an update where its answer cannot be used."""

    number: int
    order: int
    update: Update | None = None
    fault: str = ""


Message: TypeAlias = Joined | Answer


class ClientLink:
    """The link to one job of a client.

    Args:
        job: The job.
        folder: Where what it sends is put for a moment.
        inbox: Takes what it says.
    """

    def __init__(self, job: ClientJob, folder: Path, inbox: queue.Queue[Message]) -> None:
        self.job = job
        self._folder = folder
        self._inbox = inbox
        self._order: Order | None = None
        self._is_delivered = True
        self._answer: Mapping[str, Any] | None = None
        self._offset = 0
        self._partial = b""
        self._closed = False
        self._news_s = time.monotonic()
        self._changed = threading.Event()
        threading.Thread(target=self._run, name=f"client-{job.job_id}", daemon=True).start()

    def give(self, order: Order) -> None:
        """Bring an order to the client, in place of the one before."""
        self._order = order
        self._is_delivered = False
        self._changed.set()

    def close(self) -> None:
        """Follow the client no more; an order that was given still goes out."""
        self._closed = True
        self._changed.set()

    def _run(self) -> None:
        while not self._closed or not self._is_delivered:
            pause_s = _AGAIN_S
            try:
                self._deliver()
                self._receive()
                pause_s = min(max((time.monotonic() - self._news_s) * _AGE_SHARE, _LEAST_PAUSE_S), _MOST_PAUSE_S)
            except (AutotrainError, OSError) as error:
                _log.warning("%s: %s", self.job.job_id, error)
                if self._closed and not isinstance(error, BackendUnavailableError):
                    return
            self._changed.wait(pause_s)
            self._changed.clear()

    def _deliver(self) -> None:
        order = self._order
        if order is None or self._is_delivered:
            return
        self._news_s = time.monotonic()
        file = ""
        if order.weights is not None:
            file = f"{wire.CONTROL}/weights-{order.id}.npz"
            try:
                content = order.weights.read_bytes()
            except FileNotFoundError:  # later rounds have been made meanwhile
                self._is_delivered = order is self._order
                return
            self.job.backend.put(self.job.ref, file, content)
        told = {
            "id": order.id, "kind": order.kind, "round": order.round, "rounds": order.rounds,
            "file": file, "sha256": order.sha256, "config": order.config or {},
        }  # fmt: skip
        self.job.backend.put(self.job.ref, wire.ROUND_FILE, json.dumps(told).encode())
        self._is_delivered = order is self._order

    def _receive(self) -> None:
        cursor = Cursor(self.job.ref, wire.ROUNDS, self._offset)
        data = self.job.backend.read([cursor])[0].data
        if data:
            self._news_s = time.monotonic()
            self._offset += len(data)
            *lines, self._partial = (self._partial + data).split(b"\n")
            self._partial = self._partial[-_LONGEST_LINE_BYTES:]
            for line in lines:
                self._take(line)
        answer = self._answer
        order = self._order
        if answer is not None and order is not None and answer.get("order") == order.id:
            self._answer = None
            self._inbox.put(self._read(order, answer))

    def _take(self, line: bytes) -> None:
        try:
            message = files.parse_json(line)
        except ValueError:
            return
        if not isinstance(message, dict):
            return
        if isinstance(message.get("hello"), str):
            self._inbox.put(Joined(self.job.number, message["hello"]))
        else:
            self._answer = message

    def _read(self, order: Order, answer: Mapping[str, Any]) -> Answer:
        """Bring the weights of an answer here.

        Raises:
            BackendUnavailableError: The client's place does not answer now.
            OSError: It cannot be kept here now.
        """
        number = self.job.number
        try:
            return Answer(number, order.id, Update(self._fetch(order, answer), *_checked(answer)))
        except (BackendUnavailableError, OSError):
            self._answer = answer  # it is read again
            raise
        except (AutotrainError, WeightsError) as error:
            return Answer(number, order.id, fault=str(error))

    def _fetch(self, order: Order, answer: Mapping[str, Any]) -> Weights:
        name = f"{order.id}.npz"
        size = self.job.backend.sizes(self.job.ref, wire.UPDATES).get(name)
        most = None if order.weights is None else 2 * order.weights.stat().st_size + _MORE_BYTES
        if size is None or (most is not None and size > most):
            raise WeightsError(f"sent {'no weights' if size is None else f'{size} bytes of weights'}")
        here = self._folder / f"{self.job.job_id}-{id(self)}.npz"
        try:
            self.job.backend.fetch(self.job.ref, f"{wire.UPDATES}/{name}", str(here))
            return weights_of.load(str(here), str(answer.get("sha256")))
        finally:
            here.unlink(missing_ok=True)


def _checked(answer: Mapping[str, Any]) -> tuple[int, dict[str, float]]:
    """Return the samples and the metrics of an answer.

    Raises:
        WeightsError: They are none.
    """
    samples = answer.get("samples")
    metrics = answer.get("metrics")
    if type(samples) is not int or not 0 < samples < 1 << 40:
        raise WeightsError(f"tells {str(samples)[:80]} samples, expected 1 or more")
    if not isinstance(metrics, dict) or not all(type(value) in {int, float} for value in metrics.values()):
        raise WeightsError("sent metrics that are not numbers")
    return samples, {str(name)[: wire.LONGEST_NAME]: float(value) for name, value in metrics.items()}
