"""Links that several backends use one after the other: a new connection for each test would double the time."""

from __future__ import annotations

from jupyter_autotrain.backends.ssh.agent_connection import HostConfig
from jupyter_autotrain.backends.ssh.link import HostLink


class LastingLinks:
    """Makes a link to each host once; `end` ends them all."""

    def __init__(self) -> None:
        self.made: dict[HostConfig, HostLink] = {}

    def __call__(self, config: HostConfig) -> HostLink:
        if config not in self.made:
            self.made[config] = LastingLink(config)
        return self.made[config]

    def end(self) -> None:
        for link in self.made.values():
            HostLink.close(link)


class LastingLink(HostLink):
    def close(self) -> None:
        """Leave it open: the next backend goes on with it."""
