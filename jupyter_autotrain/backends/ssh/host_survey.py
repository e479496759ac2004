"""What all hosts of a profile are asked at the same time: whether they answer, what they have, what they lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

from jupyter_autotrain.backends.ssh import agent_responses
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.side_by_side import SideBySide
from jupyter_autotrain.backends.ssh.transport import HostKeyError
from jupyter_autotrain.core.backend import Probe
from jupyter_autotrain.core.devices import Link
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError

_CHECK_S = 20.0  # for hosts to be reached before a submission
_PATIENCE_S = 3.0  # for the inventory of several hosts: one that does not answer does not hold up the others


class HostSurvey:
    """Asks the hosts of a profile.

    Args:
        links: The hosts.
    """

    def __init__(self, links: Mapping[str, HostLink]) -> None:
        self._links = links
        self._side_by_side = SideBySide()

    def probe(self) -> Probe:
        """Usable when at least one host answers."""
        answers = self._ask_all("ping", _PATIENCE_S)
        if all(isinstance(answer, AutotrainError) for answer in answers.values()):
            self._side_by_side = SideBySide()
            answers = self._ask_all("ping", None)
        errors = {name: answer for name, answer in answers.items() if isinstance(answer, AutotrainError)}
        if len(errors) == len(self._links):
            return Probe(False, " ".join(_reason(error) for error in errors.values()), is_lasting=False)
        untrusted = [name for name, error in errors.items() if isinstance(error, HostKeyError)]
        groups = {
            "Hosts that answer": [name for name in self._links if name not in errors],
            "without an answer": [name for name in errors if name not in untrusted],
            "not trusted": untrusted,
        }
        told = [f"{what}: {', '.join(names)}" for what, names in groups.items() if names]
        return Probe(True, f"{'; '.join(told)}.")

    def discover(self, network: Link | None) -> Inventory:
        """What each host has; of one that does not answer nothing is known. `network` is what lies between them."""
        nodes = []
        limits = ""
        for name, answer in self._ask_all("machine", _PATIENCE_S).items():
            if isinstance(answer, AutotrainError):
                nodes.append(Node(name, unavailable=answer.found.rstrip(".")))
            else:
                machine = cast("JsonObject", answer)
                nodes.append(agent_responses.node(name, machine))
                limits = limits or str(machine["limits"])
        return Inventory(tuple(nodes), network, limits or "not known: no host answers")

    def _ask_all(self, do: str, patience_s: float | None) -> dict[str, JsonValue | AutotrainError]:
        """Ask all hosts at the same time; gives each one's answer, or why there is none."""

        def ask(link: HostLink) -> JsonValue | AutotrainError:
            try:
                return link.ask(do)
            except AutotrainError as error:
                return error

        calls = {name: partial(ask, link) for name, link in self._links.items()}
        answers = self._side_by_side.call(calls, None if len(calls) == 1 else patience_s)
        late = {name: BackendUnavailableError(f"{name} has not answered yet.") for name in calls}
        return late | answers

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:
        """Those that are not on a host; a host that does not answer now is left out."""
        calls = {name: partial(_missing_on, link, paths) for name, link in self._links.items()}
        answers = SideBySide().call(calls, _CHECK_S)
        return [(name, path) for name in self._links for path in answers.get(name, ())]

    def check_data_room(self, size_bytes: int, limit_bytes: int) -> list[str]:
        """Make sure that so much data fits on a host, whatever has to go from its cache; names those where it does not.

        Args:
            size_bytes: How large the data is.
            limit_bytes: How much data each host may keep.

        Raises:
            BackendError: It fits on none of those that answer.
        """
        if not size_bytes:
            return []
        calls = {name: partial(_room_bytes, link, limit_bytes) for name, link in self._links.items()}
        rooms = {name: room for name, room in SideBySide().call(calls, _CHECK_S).items() if room is not None}
        small = {name: room for name, room in rooms.items() if room < size_bytes}
        named = ", ".join(f"{format_bytes(room)} on {name}" for name, room in small.items())
        if small and len(small) == len(rooms):
            raise BackendError(
                f"The data is {format_bytes(size_bytes)}; there is room for {named}.",
                "Room on the disk of `workdir:`, below `data_cache_limit` of the profile.",
                "Free some of it, set these in the profile, or name data that is there by `path:`.",
            )
        return [f"The data ({format_bytes(size_bytes)}) does not fit everywhere: room for {named}."] if small else []


def _room_bytes(link: HostLink, limit_bytes: int) -> int | None:
    """Return how much data a host could keep; None where it does not answer."""
    try:
        return cast("int", link.ask("data_room", limit_bytes=limit_bytes))
    except AutotrainError:
        return None


def _reason(error: AutotrainError) -> str:
    """Why a host cannot be used; of a key that is not trusted with the command that trusts it."""
    return f"{error.found} {error.action}" if isinstance(error, HostKeyError) else error.found


def _missing_on(link: HostLink, paths: Sequence[str]) -> list[str]:
    """The paths that a host lacks; none where it does not answer."""
    try:
        return cast("list[str]", link.ask("missing", paths=list(paths)))
    except AutotrainError:
        return []
