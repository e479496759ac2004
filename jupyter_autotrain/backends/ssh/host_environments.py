"""The virtual environments that hosts keep and no trial uses: what `clean` finds and removes there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from jupyter_autotrain.backends.ssh.link import HostLink
from jupyter_autotrain.core.sizes import format_bytes


def unused(links: Sequence[HostLink]) -> list[str]:
    """What there is on each host.

    Raises:
        BackendUnavailableError: A host does not answer.
    """
    return [text for link in links for _, text in _of_host(link)]


def remove(links: Sequence[HostLink]) -> list[str]:
    """Remove it; gives what was removed. Errors as `unused`."""
    removed = []
    for link in links:
        for name, text in _of_host(link):
            if link.ask("remove_environment", name=name):
                removed.append(text)
    return removed


def _of_host(link: HostLink) -> Iterator[tuple[str, str]]:
    for name, size_bytes in cast("list[tuple[str, int]]", link.ask("environments")):
        yield name, f"environment {name[:8]} on {link.name} ({format_bytes(size_bytes)}, no trial uses it)"
