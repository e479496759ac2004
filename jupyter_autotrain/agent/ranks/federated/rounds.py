"""The rounds of a federated training, as a client's cell makes them: `for round in trial.rounds(model): ...`.

Before each round the model has the global weights; after it the client sends its own, and the last value of each
metric that the cell reported in the round. At the end the model has the final global weights. Nothing else leaves.
"""

from __future__ import annotations

import json
import math
import os
import time

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.errors import AutotrainError
from jupyter_autotrain.agent.ranks.federated import weights as weights_of

TYPE_CHECKING = False  # a client imports this module, and `typing` is slow to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Protocol

    from jupyter_autotrain.agent.ranks.federated.masking import Masks
    from jupyter_autotrain.agent.ranks.federated.weights import Weights
    from jupyter_autotrain.agent.ranks.reporter import Reporter

    class TrialContext(Protocol):
        """The part of a trial that a client needs."""

        directory: str
        script: str
        trial: Mapping[str, object]
        reporter: Reporter

        def should_stop(self) -> bool:
            """Tell whether the trial is to end itself."""


_LEAST_PAUSE_S = 0.002
_MOST_PAUSE_S = 0.02
_GROWTH = 1.2
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class Round:
    """One round of training.

    Attributes:
        number: From 1.
        of: How many rounds there are.
    """

    def __init__(self, number: int, of: int, mu: float, model: object, start: Weights) -> None:
        self.number = number
        self.of = of
        self._mu = mu
        self._model: Any = model
        self._start = start
        self._tensors: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<round {self.number} of {self.of}>"

    def penalty(self) -> Any:  # noqa: ANN401 - a tensor of PyTorch, or a number
        """Return what FedProx adds to the loss: the distance to the global model; 0 with another strategy."""
        if not self._mu:
            return 0.0
        has_names = hasattr(self._model, "named_parameters")
        values = dict(self._model.named_parameters()) if has_names else self._model
        total: Any = 0.0
        for name, value in values.items():
            if name not in self._tensors:
                start = self._start[name]
                self._tensors[name] = value.new_tensor(start) if hasattr(value, "new_tensor") else start
            total = total + ((value - self._tensors[name]) ** 2).sum()
        return self._mu / 2 * total


def rounds(context: TrialContext, model: object, samples: int = 1) -> Iterator[Round]:
    """Train a model together with the other clients, round by round.

    Args:
        context: The trial.
        model: A PyTorch module, or a dict of tensors or NumPy arrays; changed in place.
        samples: How many samples this client trains on: its weight in the mean.

    Raises:
        AutotrainError: The trial is no client.
    """
    if not context.trial.get("client"):
        raise AutotrainError(
            "rounds() is called in a trial that is not a client.",
            "A header with `mode: federated` and `clients: [a, b]`.",
            "Add these to the header.",
        )
    return _Client(context, model, max(int(samples), 1)).rounds()


class _Client:
    """One client, from its first message to the end of the training."""

    def __init__(self, context: TrialContext, model: object, samples: int) -> None:
        self._context = context
        self._directory = context.directory
        self._model = model
        self._samples = samples
        self._masks: Masks | None = None
        self._done = 0
        self._stream = os.open(f"{self._directory}/{wire.ROUNDS}", _APPEND, 0o600)
        os.makedirs(f"{self._directory}/{wire.UPDATES}", mode=0o700, exist_ok=True)

    def rounds(self) -> Iterator[Round]:
        self._tell({"hello": self._public_key()})
        while (order := self._next_order()) is not None:
            start = self._take_weights(order)
            if order["kind"] == "end":
                return
            self._context.reporter.latest.clear()
            if order["kind"] == "train":
                mu = float(order["config"].get("mu", 0.0))
                yield Round(order["round"], order["rounds"], mu, self._model, start)
            self._answer(order, start)

    def _public_key(self) -> str:
        """Return the key of this run; "" where the package for it is missing, which secure rounds refuse."""
        try:
            from jupyter_autotrain.agent.ranks.federated.masking import Masks  # noqa: PLC0415 - numbers are slow to import

            self._masks = Masks()
        except ImportError:
            return ""
        return self._masks.public

    def _next_order(self) -> Mapping[str, Any] | None:
        """Wait for the next order; None where the trial is to end."""
        pause_s = _LEAST_PAUSE_S
        while not self._context.should_stop():
            order = self._order()
            if order is not None and order["id"] > self._done:
                return order
            time.sleep(pause_s)
            pause_s = min(pause_s * _GROWTH, _MOST_PAUSE_S)
        return None

    def _order(self) -> Mapping[str, Any] | None:
        try:
            found: Any = files.read_json(self._directory, wire.ROUND_FILE)
        except FileNotFoundError:
            return None
        return found if isinstance(found, dict) else None

    def _take_weights(self, order: Mapping[str, Any]) -> Weights:
        if not order["file"]:
            return {}
        path = f"{self._directory}/{order['file']}"
        start = weights_of.load(path, order["sha256"])
        weights_of.into_model(self._model, start)
        os.unlink(path)
        return start

    def _answer(self, order: Mapping[str, Any], start: Weights) -> None:
        """Send the weights, unless a later order is there: the round has gone on without this client."""
        self._done = order["id"]
        later = self._order()
        if later is not None and later["id"] > self._done:
            return
        found = weights_of.of_model(self._model)
        config = order["config"]
        if start and config.get("clip"):
            found = weights_of.clipped(found, start, config["clip"])
        if members := config.get("members"):
            found = self._masked(found, members, 1 if config.get("clip") else self._samples)
        for old in os.listdir(f"{self._directory}/{wire.UPDATES}"):
            os.unlink(f"{self._directory}/{wire.UPDATES}/{old}")
        path = f"{wire.UPDATES}/{self._done}.npz"
        sha256, size = weights_of.save(f"{self._directory}/{path}", found)
        values = {name: float(text) for name, text in self._context.reporter.latest.items() if text != "null"}
        told = {"order": self._done, "file": path, "sha256": sha256, "size": size, "samples": self._samples}
        self._tell({**told, "metrics": {name: value for name, value in values.items() if math.isfinite(value)}})

    def _masked(self, weights: Weights, members: Mapping[str, str], samples: int) -> Weights:
        if self._masks is None:
            raise weights_of.WeightsError("has no keys: package cryptography is not installed here")
        return self._masks.mask(weights, samples, members, self._done)

    def _tell(self, message: Mapping[str, object]) -> None:
        os.write(self._stream, json.dumps(message).encode() + b"\n")
