"""A federated training without a manager: a coordinator, and clients in threads, over real trial directories."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks.federated import weights as weights_of
from jupyter_autotrain.agent.ranks.federated.rounds import Round, rounds
from jupyter_autotrain.agent.ranks.federated.weights import Weights
from jupyter_autotrain.backends.local.trial_directory import TrialDirectoryBackend
from jupyter_autotrain.core.backend import Backend, JobRef
from jupyter_autotrain.core.federated import FederatedSpec, RoundNews, named_clients
from jupyter_autotrain.manager.federated.client_link import ClientJob
from jupyter_autotrain.manager.federated.coordinator import Coordinator

PATIENCE_S = 120.0
Train = Callable[[Weights, Round], None]


def spec_of(clients: int, **settings: Any) -> FederatedSpec:
    return FederatedSpec(named_clients(["local"] * clients), **{"rounds": 3, **settings})


def until(found: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < end_s, "it did not come"
        time.sleep(0.005)


@dataclass
class Client:
    """A client in a thread of this process; `stop` is what a killed process is to the others: silence."""

    job: ClientJob
    model: Weights
    thread: threading.Thread
    stop: threading.Event
    errors: list[BaseException] = field(default_factory=list)


class Training:
    """One training in a folder."""

    def __init__(self, folder: Path, spec: FederatedSpec) -> None:
        self.folder = folder
        self.spec = spec
        self.news: queue.Queue[RoundNews] = queue.Queue()
        self.seen: list[RoundNews] = []
        self.clients: dict[int, Client] = {}
        self.backend = cast("Backend", TrialDirectoryBackend())
        self.coordinator = self.begin()

    def begin(self) -> Coordinator:
        """Begin as a manager does, anew or after another one."""
        state = self.folder / "federated"
        state.mkdir(exist_ok=True)
        self.coordinator = Coordinator("e1", self.spec, state, self.news.put)
        self.follow()
        self.coordinator.start()
        return self.coordinator

    def kill(self) -> None:
        """End the coordinator, as with its manager: nothing of it is left that could answer beside the next one."""
        self.coordinator.close()
        until(lambda: not any(thread.name == "rounds-e1" for thread in threading.enumerate()))

    def follow(self, expected: int | None = None) -> None:
        jobs = {number: client.job for number, client in self.clients.items()}
        self.coordinator.set_clients(jobs, len(self.spec.clients) if expected is None else expected)

    def directory(self, number: int, attempt: int) -> Path:
        directory = self.folder / f"trial-{number}-{attempt}"
        (directory / wire.CONTROL).mkdir(parents=True, exist_ok=True)
        return directory

    def client(self, number: int, train: Train, *, samples: int = 1, attempt: int = 1) -> Client:
        """Let a client run, or another attempt of it."""
        directory = self.directory(number, attempt)
        job = ClientJob(
            number, f"e1-{number}-{attempt}", self.backend, JobRef("local", "e1", {"directory": str(directory)})
        )
        model: Weights = {"w": np.zeros(3), "count": np.array(0)}
        stop = threading.Event()
        reporter = SimpleNamespace(latest={})
        context: Any = SimpleNamespace(
            directory=str(directory), trial={"client": "local"}, reporter=reporter, should_stop=stop.is_set
        )

        def run() -> None:
            try:
                for one in rounds(context, model, samples):
                    train(model, one)
                    reporter.latest["loss"] = json.dumps(float(number))
            except BaseException as error:  # noqa: BLE001 - the test looks at it
                client.errors.append(error)

        client = Client(job, model, threading.Thread(daemon=True, target=run), stop)
        self.clients[number] = client
        client.thread.start()
        self.follow()
        return client

    def vanish(self, number: int, *, expected: int | None = None) -> None:
        """Let a client be gone, as the manager sees it."""
        self.clients.pop(number).stop.set()
        self.follow(expected)

    def told(self) -> list[RoundNews]:
        """All news so far."""
        while not self.news.empty():
            self.seen.append(self.news.get())
        return self.seen

    def end(self) -> Weights:
        """Wait for the end; return the global model, which all clients have got."""
        until(lambda: self.coordinator.is_over or any(news.failure for news in self.told()))
        assert not [news.failure for news in self.told() if news.failure]
        for client in self.clients.values():
            client.thread.join(PATIENCE_S)
            assert not client.thread.is_alive()
        return self.model()

    def model(self) -> Weights:
        path = str(self.folder / "federated" / f"global-{self.coordinator.round}.npz")
        return weights_of.load(path, weights_of.digest(path))

    def refusals(self) -> Iterator[tuple[int, str]]:
        for news in self.told():
            yield from news.refused.items()

    def close(self) -> None:
        self.coordinator.close()
        for client in self.clients.values():
            client.stop.set()
