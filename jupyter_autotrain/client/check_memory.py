"""What was found when a distant backend was checked for a cell: for some minutes it need not be asked again.

A file in the home, so that all notebooks know it; only success is remembered.
"""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import suppress
from typing import Final

from jupyter_autotrain.client import requirements
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.json import to_json
from jupyter_autotrain.core.profile import BackendChoice
from jupyter_autotrain.core.spec import ExperimentSpec

_KNOWN_S: Final = 600.0


class CheckMemory:
    """Of one profile, and of all that a spec needs there.

    Args:
        home: Where it is kept; nothing is where there is no home yet.
        choice: The profile, with what the spec sets for it.
        spec: What is to be submitted.
    """

    def __init__(self, home: Home, choice: BackendChoice, spec: ExperimentSpec) -> None:
        bundle = spec.bundle
        known = (choice.options, spec.python_environment, bundle.python_packages, bundle.python_version)
        asked = [choice.profile.key, sorted(requirements.paths(spec)), *(to_json(one) for one in known)]
        content = json.dumps(asked, sort_keys=True)
        self._home = home
        self._path = home.checks / hashlib.sha256(content.encode()).hexdigest()[:24]

    def recall(self) -> list[str] | None:
        """The differences that were found; None where it has to be checked."""
        try:
            age_s = time.time() - self._path.stat().st_mtime
            lines = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return [str(line) for line in lines] if 0.0 <= age_s < _KNOWN_S else None

    def keep(self, differences: list[str]) -> None:
        """Remember a check that found nothing wrong."""
        with suppress(OSError):  # then it is checked again
            if self._home.root.exists():
                self._path.parent.mkdir(mode=0o700, exist_ok=True)
                wire.write_atomically(str(self._path), json.dumps(differences).encode())

    def forget(self) -> None:
        """Remember nothing of it."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
