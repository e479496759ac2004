"""What the interpreters of hosts have installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.core.json import JsonObject, from_json, to_json
from jupyter_autotrain.core.python_environment import INSPECTED_KINDS, InterpreterReport, PythonEnvironment
from jupyter_autotrain.errors import BackendUnavailableError


def inspect(
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
