"""The specification of a federated training: which places train, and how their updates become one model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import MappingProxyType
from typing import Final

from jupyter_autotrain.errors import AutotrainError

STRATEGIES: Final = ("fedavg", "fedprox", "fedadam", "fedyogi", "median", "trimmed_mean", "krum")
MEANS: Final = frozenset({"fedavg", "fedprox", "fedadam", "fedyogi"})
"""The strategies that need nothing but the mean of all updates, and so work on masked ones too."""

GLOBAL: Final = "global_"
"""Begins the names of the curves of the global model."""

OF_FLOWER: Final = frozenset(STRATEGIES) - {"fedavg", "fedprox"}
"""The strategies that are taken from Flower's library."""
_NOTHING: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Client:
    """One client.

    Attributes:
        name: Its name: that of its place, with a number where a place has several.
        place: The name of the profile that it trains at.
        data: Where its own data lies there, by the names of entries of `data:`.
    """

    name: str
    place: str
    data: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Privacy:
    """Differential privacy of each client's update.

    Attributes:
        clip: The largest norm of an update.
        noise: The standard deviation of the noise on the sum of updates, in multiples of `clip`.
        delta: The probability for which `epsilon` does not hold.
    """

    clip: float
    noise: float = 0.0
    delta: float = 1e-5


@dataclass(frozen=True, slots=True)
class FederatedSpec:
    """A federated training. Trial number N is the client at index N - 1.

    Attributes:
        clients: The clients.
        rounds: How many times the global model is trained by clients and made anew.
        strategy: One of `STRATEGIES`.
        min_clients: The fewest updates that make a round.
        fraction: The share of the clients that train in each round.
        deadline_s: After how long a round goes on without those that have not answered; None: never.
        secure: Whether updates are masked, so that only their sum is known.
        privacy: None: no differential privacy.
        mu: Of fedprox: the weight of the distance to the global model.
        server_lr: Of fedadam and fedyogi: the learning rate of the global model.
        trim: Of trimmed_mean: the share of the largest, and of the smallest, values that is left out.
        malicious: Of krum: how many clients may lie.
        most_norm: An update is refused whose norm is larger than the median of all by this factor.
        superlink: The connection of Flower, by its name there, where a SuperLink runs it; "" for its default.
    """

    clients: tuple[Client, ...]
    rounds: int = 10
    strategy: str = "fedavg"
    min_clients: int = 2
    fraction: float = 1.0
    deadline_s: float | None = None
    secure: bool = False
    privacy: Privacy | None = None
    mu: float = 0.1
    server_lr: float = 0.1
    trim: float = 0.2
    malicious: int = 0
    most_norm: float = 10.0
    superlink: str = ""

    def client(self, name: str) -> Client:
        """Return a client by its name."""
        return {one.name: one for one in self.clients}[name]

    def first_at(self, place: str) -> int:
        """Return the number of the trial of the first client at a place."""
        return next(number for number, one in enumerate(self.clients, 1) if one.place == place)

    @property
    def per_round(self) -> int:
        """The number of clients that train in a round."""
        return max(self.min_clients, round(self.fraction * len(self.clients)))


@dataclass(frozen=True, slots=True)
class RoundNews:
    """An event of a federated training.

    Attributes:
        experiment: Its id.
        round: The round that has ended; 0: none.
        metrics: Of the global model, with the names of their curves.
        refused: Why answers of clients were refused, by number.
        failure: Why the training cannot go on, or "".
    """

    experiment: str
    round: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)
    failure: str = ""


def check_packages(spec: FederatedSpec, *, by_flower: bool) -> None:
    """Make sure that what a training needs is installed here.

    Raises:
        AutotrainError: It is not.
    """
    needs = {
        "flwr": by_flower or spec.strategy in OF_FLOWER,
        "cryptography": spec.secure,
        "dp_accounting": spec.privacy is not None and spec.privacy.noise > 0,
    }
    missing = [package for package, is_needed in needs.items() if is_needed and find_spec(package) is None]
    if missing:
        raise AutotrainError(
            f"federated: needs the package {', '.join(missing)}, which is not installed here.",
            "The extra `federated` of this package.",
            "pip install 'jupyter-autotrain[federated]'",
        )


def named_clients(places: Sequence[str], data: Mapping[str, Mapping[str, str]] = _NOTHING) -> tuple[Client, ...]:
    """Return a client for each place that is named; a place that is named several times has numbered ones.

    Args:
        places: The places.
        data: By the name of an entry of `data:` the path of each client, by its name.
    """
    named = Counter(places)
    seen: Counter[str] = Counter()
    clients = []
    for place in places:
        seen[place] += 1
        name = place if named[place] == 1 else f"{place}-{seen[place]}"
        own = {entry: paths[name] for entry, paths in data.items() if name in paths}
        clients.append(Client(name, place, own))
    return tuple(clients)
