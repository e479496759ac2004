"""The lease of a trial: it ends when for some time no manager has had contact with its machine."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping


class Lease:
    """Looks at the file that is touched while a manager is there; only changes count, so no clock can confuse it.

    Args:
        trial: `contact` is the file, `lease_s` how long it may stay as it is; None: there is no lease.
    """

    def __init__(self, trial: Mapping[str, object]) -> None:
        lease_s = trial.get("lease_s")
        self.lease_s = float(lease_s) if isinstance(lease_s, (int, float)) else None
        self._contact = str(trial.get("contact"))
        self._seen = -1
        self._seen_s = time.monotonic()

    def is_over(self) -> bool:
        """True when nothing was heard for too long. A file that cannot be looked at counts as unchanged."""
        if self.lease_s is None:
            return False
        try:
            seen = os.stat(self._contact).st_mtime_ns
        except OSError:
            seen = self._seen
        if seen != self._seen:
            self._seen = seen
            self._seen_s = time.monotonic()
        return time.monotonic() - self._seen_s > self.lease_s
