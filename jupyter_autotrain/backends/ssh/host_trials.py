"""The trial directories of a home on its hosts, by experiment: what `clean` and a deletion find and remove there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import partial
from typing import cast

from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.backends.ssh.side_by_side import SideBySide


def sizes(links: Mapping[str, HostLink], home: str) -> Mapping[str, int]:
    """The experiments that have some on any host and no trial that runs there; with the bytes of all hosts.

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


def remove(links: Mapping[str, HostLink], home: str, experiments: Collection[str]) -> None:
    """Delete those of these experiments on all hosts that answer. Arguments and errors as `sizes`."""
    ids = sorted(experiments)
    calls = {name: partial(link.ask, "remove_experiments", home=home, ids=ids) for name, link in links.items()}
    SideBySide().call(calls, None)
