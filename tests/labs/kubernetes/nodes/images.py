"""Names of images. All have the machine's programs; some cannot be pulled, some are programs of the double."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tests.labs.kubernetes.objects.values import Json

Program: TypeAlias = Callable[[Json, Json, Mapping[str, str]], int]  # pod, container, folders by mountPath: exit code
_NAME = re.compile(r"[a-z0-9][a-z0-9._/:@-]*")
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(slots=True)
class Images:
    """The registry.

    Attributes:
        missing: Names that cannot be pulled.
        programs: By the beginning of their names, images whose program is a function, run in the place of a process.
        environment: Variables that all images set.
    """

    missing: set[str] = field(default_factory=set)
    programs: dict[str, Program] = field(default_factory=dict)
    environment: dict[str, str] = field(
        default_factory=lambda: {"PATH": f"{Path(sys.prefix) / 'bin'}:{_SYSTEM_PATH}", "HOME": "/root"}
    )

    def program(self, name: str) -> Program | None:
        """Return the function that an image runs, if it is one of those."""
        for prefix, found in self.programs.items():
            if name.startswith(prefix):
                return found
        return None

    def refusal(self, name: str, policy: str) -> tuple[str, str] | None:
        """Why an image cannot be had, as the kubelet says it: reason and message; None: it can."""
        if not _NAME.fullmatch(name):
            return "InvalidImageName", f'couldn\'t parse image name "{name}": invalid reference format'
        if name not in self.missing:
            return None
        if policy == "Never":
            return "ErrImageNeverPull", f'Container image "{name}" is not present with pull policy of Never'
        tagged = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
        message = (
            f'failed to pull and unpack image "{tagged}": failed to resolve reference "{tagged}": {tagged}: not found'
        )
        return "ErrImagePull", message
