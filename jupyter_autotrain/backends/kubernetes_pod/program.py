"""What a pod runs: its trial, or trials one after another."""

from __future__ import annotations

import json
import os
import sys

from jupyter_autotrain.backends.kubernetes_pod import places
from jupyter_autotrain.backends.kubernetes_pod.pilot import Pilot
from jupyter_autotrain.backends.kubernetes_pod.pod import Pod
from jupyter_autotrain.worker import fields


def main() -> None:
    """Run what this pod is for; exits."""
    os.umask(0o077)
    idle_s = fields.mapping(json.loads(os.environ.get(places.POD_VARIABLE) or "{}")).get(places.REUSE_IDLE)
    if isinstance(idle_s, (int, float)):
        sys.exit(Pilot(os.environ, idle_s).main())
    sys.exit(Pod(os.environ).main())
