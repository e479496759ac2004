"""The backends that an experiment may use: profiles, and how much of each.

A *backend* is a type (`ssh`), a *profile* its configured instance (`lab: {type: ssh, hosts: [gpu1]}`); *place* is the
word for a profile in texts for users. A *choice* is a profile that one experiment may use.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property

from jupyter_autotrain.agent.json import JsonObject, to_json

_DIGEST_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class Price:
    """The price of what trials take, as the profile names it.

    Attributes:
        cpu_hour: Of a CPU for an hour.
        gpu_hour: Of a GPU for an hour.
        currency: The name of the money.
    """

    cpu_hour: float = 0.0
    gpu_hour: float = 0.0
    currency: str = "EUR"

    def per_hour(self, cpus: float, gpus: int) -> float:
        """Return the price of these for an hour."""
        return cpus * self.cpu_hour + gpus * self.gpu_hour


@dataclass(frozen=True)
class Profile:
    """A backend by name: its type (an entry point's name), and options that the type's model has checked.

    It names hosts, accounts, key files and environment variables, never a secret.
    """

    name: str
    type: str
    options: JsonObject = field(default_factory=dict)
    price: Price | None = None

    @cached_property
    def key(self) -> str:
        """The name, with a digest where it has options: two profiles of one name may differ between notebooks."""
        if not self.options and self.name == self.type:
            return self.name
        content = json.dumps(to_json([self.type, self.options]), sort_keys=True).encode()
        return f"{self.name}-{hashlib.sha256(content).hexdigest()[:_DIGEST_CHARACTERS]}"


@dataclass(frozen=True, slots=True)
class BackendChoice:
    """A backend that trials of an experiment may use.

    Attributes:
        profile: As it was when the experiment was submitted; a later change of it affects new experiments only.
        options: What the experiment sets for this backend, by its section of the header.
        at_most: How many of the experiment's trials may be there at the same time; None: no limit.
        prefer: The weight of this backend against the others of the experiment.
    """

    profile: Profile
    options: JsonObject = field(default_factory=dict)
    at_most: int | None = None
    prefer: float = 1.0


LOCAL = BackendChoice(Profile("local", "local"))
