"""The section `federated:`: how the clients of `clients:` train one model together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from jupyter_autotrain.agent.ranks.federated.masking import LEAST_CLIENTS
from jupyter_autotrain.core.federated import MEANS, STRATEGIES, FederatedSpec, Privacy, named_clients
from jupyter_autotrain.header.document import KeyPath, expected_instead, shown
from jupyter_autotrain.header.quantities import OneOf
from jupyter_autotrain.header.sections.data import DataSection
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import AS_NUMBER, Count, Duration, Few, Name, Truth

MODES = ("batch", "federated")
ENGINES = ("autotrain", "flower")
_Positive = Annotated[float, Field(gt=0, le=1e9), AS_NUMBER]
_OTHERS = (("trimmed", "trimmed_mean"), ("fedmedian", "median"), ("fedtrimmedavg", "trimmed_mean"))
_ONE_PROCESS = "expected a cell of one process for each client"
_WITHOUT_MEANING: Mapping[str, str] = MappingProxyType(
    {
        "search": "expected one model, which all clients train",
        "trials": "expected one trial for each client",
        "backend": "expected the places in `clients:`",
        "returns": "expected weights and metrics alone to leave a client",
        "early_stop": "expected clients that train to the end",
        "parallel": _ONE_PROCESS,
        "resources": _ONE_PROCESS,
    }
)


class PrivacySection(Section):
    """Differential privacy of each client's update."""

    clip: _Positive = Field(
        default=1.0, description="Largest norm of a client's update; a larger one is scaled.", examples=["1.0"]
    )
    noise: Annotated[float, Field(ge=0, le=1e6), AS_NUMBER] = Field(
        default=0.0,
        description="Standard deviation of the noise on the sum of updates, in multiples of `clip`; the curve "
        "`global_epsilon` shows what has been spent.",
        examples=["1.0"],
    )
    delta: Annotated[float, Field(gt=0, lt=1), AS_NUMBER] = Field(
        default=1e-5, description="The probability for which epsilon does not hold.", examples=["1e-5"]
    )


class FederatedSection(Section):
    """The way in which clients train one model together."""

    engine: Annotated[str, OneOf(ENGINES)] | None = Field(
        default=None,
        description="flower: the same cell runs on an existing SuperLink of Flower, whose nodes are the clients: that "
        "with `partition-id=0` is the first of `clients:`, which then are names alone. It is so with `superlink` too.",
        examples=["flower"],
    )
    superlink: Name | None = Field(
        default=None, description="The connection in Flower's config; its default where not given.", examples=["lab"]
    )
    rounds: Count = Field(default=10, description="How many rounds of training.", examples=["20"])
    strategy: Annotated[str, OneOf(STRATEGIES, _OTHERS)] = Field(
        default="fedavg",
        description="How updates become the next global model; all but fedavg and fedprox are those of Flower.",
        examples=["fedadam"],
    )
    min_clients: Count | None = Field(
        default=None,
        description="Fewest updates that make a round; 2, or 3 with secure, or 1 of a single client.",
        examples=["3"],
    )
    fraction: Annotated[float, Field(gt=0, le=1), AS_NUMBER] = Field(
        default=1.0, description="Share of the clients that train in each round.", examples=["0.5"]
    )
    deadline: Duration | None = Field(
        default=None, description="How long a round waits for clients, beyond `min_clients` of them.", examples=["10m"]
    )
    secure: Truth = Field(
        default=False,
        description="Clients mask their updates with keys that only they share, so that nobody sees more than the sum.",
        examples=["true"],
    )
    privacy: PrivacySection | None = Field(
        default=None, description="Differential privacy: clips and adds noise.", examples=["{clip: 1.0, noise: 1.0}"]
    )
    mu: Annotated[float, Field(ge=0, le=1e6), AS_NUMBER] = Field(
        default=0.1, description="Of fedprox: weight of the distance to the global model.", examples=["0.01"]
    )
    server_lr: _Positive = Field(
        default=0.1, description="Of fedadam and fedyogi: learning rate of the global model.", examples=["0.01"]
    )
    trim: Annotated[float, Field(ge=0, lt=0.5), AS_NUMBER] = Field(
        default=0.2, description="Of trimmed_mean: share of each end that is left out.", examples=["0.1"]
    )
    malicious: Few = Field(default=0, description="Of krum: how many clients may lie.", examples=["1"])
    most_norm: _Positive = Field(
        default=10.0,
        description="Refuses an update whose norm is larger than the median of all by this factor, of three or more.",
        examples=["5"],
    )

    @property
    def is_flower(self) -> bool:
        """True where a SuperLink of Flower runs it."""
        return self.engine == "flower" or self.superlink is not None

    def to_spec(self, clients: tuple[str, ...], data: Mapping[str, DataSection]) -> FederatedSpec:
        """Return the training of clients at these places, each with its own data."""
        own = {name: entry.clients for name, entry in data.items() if entry.clients}
        privacy = self.privacy
        return FederatedSpec(
            named_clients(clients, own),
            self.rounds,
            self.strategy,
            self.min_clients or min(LEAST_CLIENTS if self.secure else 2, len(clients)),
            self.fraction,
            self.deadline,
            self.secure,
            None if privacy is None else Privacy(privacy.clip, privacy.noise, privacy.delta),
            self.mu,
            self.server_lr,
            self.trim,
            self.malicious,
            self.most_norm,
            self.superlink or "",
        )


def contradictions(
    mode: str, clients: tuple[str, ...], given: FederatedSection | None, keys: Collection[str]
) -> Iterator[tuple[KeyPath, str, str, str]]:
    """Yield what does not go with a federated training: (path, found, expected, action).

    Args:
        mode: The header's `mode`.
        clients: Its `clients`.
        given: Its section.
        keys: What it sets besides, with `resources` only where these are of several workers.
    """
    if mode != "federated":
        for key, value in (("clients", clients), ("federated", given)):
            if value:
                yield (key,), f"{key} without mode: federated", "expected both", "add `mode: federated`, or remove it"
        return
    if not clients:
        yield ("clients",), "mode: federated without clients", "expected names of places", "add `clients: [a, b]`"
        return
    for key in _WITHOUT_MEANING:
        if key in keys:
            yield (key,), f"{key} with mode: federated", _WITHOUT_MEANING[key], "remove it"
    section = given or FederatedSection()
    yield from _engine_contradictions(section, keys)
    if (section.min_clients or 0) > len(clients):
        found = f"min_clients {section.min_clients} of {len(clients)} clients"
        yield ("federated", "min_clients"), found, "expected no more than there are", "lower it, or add clients"
    if section.secure and section.strategy not in MEANS:
        found = f"secure with strategy {section.strategy}, which compares updates"
        expected = f"expected {', '.join(sorted(MEANS))}"
        yield ("federated", "strategy"), found, expected, "take one of these, or remove secure"
    if section.secure and (section.min_clients or len(clients)) < LEAST_CLIENTS:
        found = "secure with fewer than 3 clients in a round, of whom two see each other's update"
        yield ("federated", "min_clients"), found, "expected 3 or more", "add `min_clients: 3`, or remove secure"


def data_contradictions(
    mode: str, clients: tuple[str, ...], data: Mapping[str, DataSection]
) -> Iterator[tuple[KeyPath, str, str, str]]:
    """Yield each entry whose paths are not those of the clients: (path, found, expected, action)."""
    names = [client.name for client in named_clients(clients)]
    for name, entry in data.items():
        if entry.clients is None:
            continue
        path = ("data", name, "clients")
        if mode != "federated":
            yield path, f"data.{name}.clients without mode: federated", "expected both", f"give data.{name} one `path:`"
            continue
        for given in entry.clients.keys() - {*names}:
            found = f"data.{name} names {shown(given)}, which is no client"
            yield (*path, given), found, expected_instead(given, names), ""
        if lacking := [one for one in names if one not in entry.clients]:
            yield path, f"data.{name} has no path of {', '.join(lacking)}", "expected one of each client", "add it"


def _engine_contradictions(section: FederatedSection, keys: Collection[str]) -> Iterator[tuple[KeyPath, str, str, str]]:
    if not section.is_flower:
        return
    if section.engine == "autotrain":
        yield ("federated", "superlink"), "superlink with engine: autotrain", "expected engine: flower", "remove one"
    for name in ("secure", "privacy"):
        if getattr(section, name):
            yield ("federated", name), f"{name} with engine: flower", "expected engine: autotrain", "remove one"
    if "data" in keys:
        yield ("data",), "data with engine: flower", "expected a cell that opens what its node has", "remove it"
