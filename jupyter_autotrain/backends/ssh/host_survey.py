"""Questions to all hosts of a profile at the same time: whether they answer, what they have, what they lack.

A host that does not answer delays no other. For `clean` they are asked for the trial directories of a home, and for
environments that no trial uses.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TypeVar, cast

from jupyter_autotrain.agent.environments.python_environment import (
    INSPECTED_KINDS,
    InterpreterReport,
    PythonEnvironment,
)
from jupyter_autotrain.agent.json import JsonObject, JsonValue, from_json, to_json
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.backends import agent_answers
from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.transport import HostKeyError
from jupyter_autotrain.core.backend import Probe
from jupyter_autotrain.core.devices import Link
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError

T = TypeVar("T")
_CHECK_S = 20.0  # for hosts to be reached before a submission
_PATIENCE_S = 3.0  # for the inventory of several hosts: one that does not answer does not hold up the others


class SideBySide:
    """Calls to several hosts at the same time."""

    def __init__(self) -> None:
        self._late: dict[str, Future[object]] = {}

    def call(self, calls: Mapping[str, Callable[[], T]], patience_s: float | None) -> dict[str, T]:
        """Call for each host; return the answers that came in time, or raise the error that one of the calls raised.

        Args:
            calls: One call per host.
            patience_s: How long to wait for all of them; None: until all have come.
        """
        begun: dict[str, Future[T]] = {}
        for host, call in calls.items():
            late = self._late.get(host)
            if late is None or late.done():
                begun[host] = _in_thread(call)
        done, _ = wait(begun.values(), patience_s)
        self._late.update({host: future for host, future in begun.items() if future not in done})  # type: ignore[misc]  # only `done` is asked of it
        return {host: future.result() for host, future in begun.items() if future in done}


def _in_thread(call: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where the result is asked for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def trial_sizes(links: Mapping[str, HostLink], home: str) -> Mapping[str, int]:
    """Return the experiments with trials on any host and none that runs there, with the bytes of all hosts.

    Args:
        links: The hosts.
        home: The name of the home there.

    Raises:
        BackendUnavailableError: A host does not answer.
    """
    calls = {name: partial(link.ask, "experiments", home=home) for name, link in links.items()}
    total: Counter[str] = Counter()
    for of_host in SideBySide().call(calls, None).values():
        total.update(cast("dict[str, int]", of_host))
    return total


def remove_trials(links: Mapping[str, HostLink], home: str, experiments: Collection[str]) -> None:
    """Delete those of these experiments on all hosts that answer. Arguments and errors as `trial_sizes`."""
    ids = sorted(experiments)
    calls = {name: partial(link.ask, "remove_experiments", home=home, ids=ids) for name, link in links.items()}
    SideBySide().call(calls, None)


def unused_environments(links: Sequence[HostLink]) -> list[str]:
    """Return one line for each unused environment of each host.

    Raises:
        BackendUnavailableError: A host does not answer.
    """
    return [text for link in links for _, text in _unused_on(link)]


def remove_environments(links: Sequence[HostLink]) -> list[str]:
    """Remove the unused environments, and return a line for each. The errors are those of `unused_environments`."""
    removed = []
    for link in links:
        for name, text in _unused_on(link):
            if link.ask("remove_environment", name=name):
                removed.append(text)
    return removed


def _unused_on(link: HostLink) -> Iterator[tuple[str, str]]:
    for name, size_bytes in cast("list[tuple[str, int]]", link.ask("environments")):
        yield name, f"environment {name[:8]} on {link.name} ({format_bytes(size_bytes)}, no trial uses it)"


class HostSurvey:
    """The questions to the hosts of a profile."""

    def __init__(self, links: Mapping[str, HostLink]) -> None:
        self._links = links
        self._side_by_side = SideBySide()

    def probe(self) -> Probe:
        """Report whether at least one host answers."""
        answers = self._ask_all("ping", _PATIENCE_S)
        if all(isinstance(answer, AutotrainError) for answer in answers.values()):
            self._side_by_side = SideBySide()
            answers = self._ask_all("ping", None)
        errors = {name: answer for name, answer in answers.items() if isinstance(answer, AutotrainError)}
        if len(errors) == len(self._links):
            return Probe(False, " ".join(map(_reason, errors.values())), is_lasting=False)
        groups: dict[str, list[str]] = {"Hosts that answer": [], "without an answer": [], "not trusted": []}
        for name in self._links:
            silent = "not trusted" if isinstance(errors.get(name), HostKeyError) else "without an answer"
            groups[silent if name in errors else "Hosts that answer"].append(name)
        told = [f"{what}: {', '.join(names)}" for what, names in groups.items() if names]
        return Probe(True, f"{'; '.join(told)}.")

    def discover(self, network: Link | None) -> Inventory:
        """Return the resources of each host, with `network` as what lies between them.

        Nothing is known of a host that does not answer.
        """
        nodes = []
        limits = ""
        for name, answer in self._ask_all("machine", _PATIENCE_S).items():
            if isinstance(answer, AutotrainError):
                nodes.append(Node(name, unavailable=answer.found.rstrip(".")))
            else:
                machine = cast("JsonObject", answer)
                nodes.append(agent_answers.node(name, machine))
                limits = limits or str(machine["limits"])
        return Inventory(tuple(nodes), network, limits or "not known: no host answers")

    def _ask_all(self, do: str, patience_s: float | None) -> dict[str, JsonValue | AutotrainError]:
        """Ask all hosts at the same time, and return the answer of each, or the error why there is none."""

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
        """Return the paths that are not on a host, and none of them for a host that does not answer now."""
        calls = {name: partial(_missing_on, link, paths) for name, link in self._links.items()}
        answers = SideBySide().call(calls, _CHECK_S)
        return [(name, path) for name in self._links for path in answers.get(name, ())]

    def check_data_room(self, size_bytes: int, limit_bytes: int) -> list[str]:
        """Make sure that so much data fits on a host, and return a note on the hosts where it does not.

        The caches of the hosts may be emptied for it.

        Args:
            size_bytes: How large the data is.
            limit_bytes: How much data each host may keep.

        Raises:
            BackendError: It fits on none of those that answer.
        """
        if not size_bytes:
            return []
        calls = {name: partial(_room_bytes, link, limit_bytes) for name, link in self._links.items()}
        fits = False
        small: list[str] = []
        for name, room_bytes in SideBySide().call(calls, _CHECK_S).items():
            if room_bytes is not None and room_bytes < size_bytes:
                small.append(f"{format_bytes(room_bytes)} on {name}")
            fits = fits or (room_bytes is not None and room_bytes >= size_bytes)
        named = ", ".join(small)
        if small and not fits:
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
    """Return the reason why a host cannot be used; for a key that is not trusted, with the command that trusts it."""
    return f"{error.found} {error.action}" if isinstance(error, HostKeyError) else error.found


def _missing_on(link: HostLink, paths: Sequence[str]) -> list[str]:
    """Return the paths that a host lacks, or none where it does not answer."""
    try:
        return cast("list[str]", link.ask("missing", paths=list(paths)))
    except AutotrainError:
        return []


def inspect_python(
    links: Mapping[str, HostLink], environment: PythonEnvironment, distributions: Sequence[str]
) -> list[InterpreterReport]:
    """Ask the hosts, all at the same time; those that do not answer are left out.

    Args:
        links: The hosts.
        environment: Which interpreter of each.
        distributions: Names of distributions.
    """
    if environment.kind not in INSPECTED_KINDS or not links:
        return []

    def ask(name: str) -> InterpreterReport | None:
        try:
            told = links[name].ask("python", environment=to_json(environment), distributions=list(distributions))
        except BackendUnavailableError:
            return None
        return from_json(InterpreterReport, {**cast("JsonObject", told), "node": name})

    with ThreadPoolExecutor(len(links)) as pool:
        reports = list(pool.map(ask, links))
    return [report for report in reports if report is not None]
