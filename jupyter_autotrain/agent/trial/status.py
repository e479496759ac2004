"""The status file of a trial: read, checked, written. "I could not read it" is never "it is not there"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.system import cgroup_setup
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity

if TYPE_CHECKING:
    from typing import TypeAlias

    from jupyter_autotrain.agent.json import JsonValue

_MOST_REASON = 10_000

Status: TypeAlias = "dict[str, JsonValue]"


class UnknownError(Exception):
    """The error of a trial whose state is not known now, which proves nothing; the text says why. Poll again."""


def read(directory: Path) -> Status | None:
    """Return the status; None when there provably is none.

    Raises:
        UnknownError: It cannot be read, or is none.
    """
    try:
        found = files.read_json(directory, wire.STATUS_FILE)
    except OSError as error:
        if files.is_absent(error):
            return None
        raise UnknownError(f"its {wire.STATUS_FILE} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UnknownError(f"its {wire.STATUS_FILE} is damaged: {error}") from error
    if not _is_whole(found):
        raise UnknownError(f"its {wire.STATUS_FILE} is damaged: a field is missing or is not what it should be")
    return cast("Status", found)


def is_there(directory: Path) -> bool:
    """Tell whether there may be a status file: one that cannot be looked at may be there."""
    try:
        (directory / wire.STATUS_FILE).lstat()
    except OSError as error:
        return not files.is_absent(error)
    return True


def _is_whole(found: object) -> bool:
    if not isinstance(found, dict) or found.get("state") not in set(TrialState):
        return False
    return isinstance(found.get("reason"), str) and ProcessIdentity.from_json(found.get("supervisor")) is not None


def folders(value: object, maker: ProcessIdentity | None) -> list[str]:
    """Return the control groups in a list that this supervisor made: no trial can name another's to have it ended."""
    if maker is None or not isinstance(value, list):
        return []
    return [folder for folder in value if isinstance(folder, str) and cgroup_setup.is_made_by(folder, maker)]


def reason(status: Status) -> str:
    """Return the reason why the trial ended, in a length and in characters that can be kept."""
    return str(status["reason"])[:_MOST_REASON].encode(errors="replace").decode()


def is_final(status: Status) -> bool:
    """Tell whether the supervisor has written the final status."""
    return TrialState(str(status["state"])).is_final


def write(directory: Path, status: Status) -> None:
    """Replace the status file.

    Raises:
        OSError: It cannot be written.
    """
    wire.write_atomically(str(directory / wire.STATUS_FILE), json.dumps(status).encode())
