"""The way out of a trial's control groups and CPU mask, for a manager that a process of the trial has started."""

from __future__ import annotations

import logging
from typing import cast

from jupyter_autotrain.agent import files, system, wire
from jupyter_autotrain.agent.system import cgroups
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity

_log = logging.getLogger(__name__)


def leave_trial_cgroups(directory: str) -> None:
    """Put the calling process where the supervisor of a trial is: same CPUs, same control groups.

    Args:
        directory: The trial directory; a trial that has ended by now has no limits any more.
    """
    try:
        status = cast("dict[str, object]", files.read_json(directory, wire.STATUS_FILE))
        supervisor = ProcessIdentity.from_json(status["supervisor"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("started from a trial that cannot be read, and so not left: %s", error)
        return
    if supervisor is None or not supervisor.is_alive():
        return
    system.copy_cpu_mask(supervisor.pid)
    if not cgroups.join_groups_of(supervisor.pid):
        _log.info("not every control group of the trial %s can be left", directory)
