"""The state of a federated training on disk: a manager that takes it up goes on with the round under way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.json import from_json, to_json
from jupyter_autotrain.agent.ranks.federated import weights as weights_of
from jupyter_autotrain.agent.ranks.federated.weights import Weights

STATE_FILE = "state.json"
_KEEP = 2


@dataclass(slots=True)
class RoundState:
    """The progress of a training.

    Attributes:
        round: The round under way, from 1; 0: the initial weights are to come; above all rounds: it is over.
        order: The id of the last order.
        members: The clients that it was given to.
        keys: Their public keys then, by number; a client that comes back has another one.
        metrics: Of the global model of the round before.
        sha256: Of the file with the global weights that the round begins with.
    """

    round: int = 0
    order: int = 0
    members: tuple[int, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    sha256: str = ""

    def write(self, folder: Path) -> None:
        """Keep it durably."""
        wire.write_atomically(str(folder / STATE_FILE), json.dumps(to_json(self)).encode())


def read_state(folder: Path) -> RoundState:
    """Return the state in a folder; that of a training that has not begun where there is none."""
    try:
        return from_json(RoundState, files.parse_json((folder / STATE_FILE).read_bytes()))  # type: ignore[arg-type] # own file
    except FileNotFoundError:
        return RoundState()


def model_file(folder: Path, round_number: int) -> Path:
    """Return the file with the global weights that a round begins with."""
    return folder / f"global-{round_number}.npz"


def write_model(folder: Path, round_number: int, weights: Weights, moments: Weights) -> str:
    """Keep global weights and the moments of the strategy, and return the digest of the file that clients get."""
    if moments:
        weights_of.save(str(_moments_file(folder, round_number)), moments, sync=True)
    sha256, _ = weights_of.save(str(model_file(folder, round_number)), weights, sync=True)
    for file in (model_file(folder, round_number - _KEEP), _moments_file(folder, round_number - _KEEP)):
        file.unlink(missing_ok=True)
    return sha256


def _moments_file(folder: Path, round_number: int) -> Path:
    return folder / f"moments-{round_number}.npz"


def read_model(folder: Path, state: RoundState) -> tuple[Weights, Weights]:
    """Return the global weights that the round under way begins with, and the moments of the strategy.

    Raises:
        WeightsError: They are damaged.
    """
    weights = weights_of.load(str(model_file(folder, state.round)), state.sha256)
    moments = str(_moments_file(folder, state.round))
    has_moments = Path(moments).exists()
    return weights, weights_of.load(moments, weights_of.digest(moments)) if has_moments else {}
