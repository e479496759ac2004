"""The variables that a session takes and gives: called in its kernel by the handle of the session."""

from __future__ import annotations

import glob
import os
import pickle
from collections.abc import Mapping, MutableMapping

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks.returned import dumps
from jupyter_autotrain.agent.session.messages import FOLDER
from jupyter_autotrain.agent.sizes import format_bytes


def load(names: MutableMapping[str, object], name: str, pieces: int) -> None:
    """Give a variable the value that lies in the trial directory in pieces, and remove them."""
    folder = f"{os.environ[wire.TRIAL_VARIABLE]}/{FOLDER}/pushed"
    paths = [f"{folder}/{name}.{number}" for number in range(pieces)]
    data = bytearray()
    for path in paths:
        with open(path, "rb") as file:
            data += file.read()
    for path in glob.glob(f"{folder}/{name}.*"):
        os.unlink(path)
    names[name] = pickle.loads(bytes(data))  # noqa: S301 - the user's own notebook wrote it


def describe(names: Mapping[str, object], wanted: list[str]) -> dict[str, str]:
    """Return the types of those of the variables that are there, with their sizes as they would travel."""
    found = {}
    for name in wanted:
        if name in names:
            kind = type(names[name]).__name__
            try:
                found[name] = f"{kind}, {format_bytes(len(dumps(names[name])))}"
            except Exception as error:  # noqa: BLE001 - whatever its reduction raises
                found[name] = f"{kind}, which cannot travel: {type(error).__name__}: {error}"
    return found


def save(names: Mapping[str, object], name: str, most_bytes: int) -> None:
    """Write the value of a variable where the handle fetches it.

    Raises:
        NameError: There is no such variable.
        ValueError: It is too big.
    """
    if name not in names:
        raise NameError(f"there is no variable {name!r} in the session")
    data = dumps(names[name])
    if len(data) > most_bytes:
        raise ValueError(f"{name!r} has {format_bytes(len(data))}; at most {format_bytes(most_bytes)} travel so")
    wire.write_atomically(f"{os.environ[wire.TRIAL_VARIABLE]}/{FOLDER}/pulled", data)
