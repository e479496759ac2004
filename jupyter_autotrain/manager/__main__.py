"""The manager's entry point: `python -m jupyter_autotrain.manager HOME`, started by `start.ensure` only.

The lock is taken here, so that a second manager ends at once. Then this process forks and ends: its child is in a
session without a terminal (a daemon).
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import cast

from jupyter_autotrain.agent import files, system, wire
from jupyter_autotrain.agent.system import cgroups
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.agent.wire import MANAGER_VARIABLE
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.tuner import EarlyStop, Tuner
from jupyter_autotrain.manager.start import HELD_EXIT_CODE, OUTDATED_EXIT_CODE, is_outdated, take_lock

_log = logging.getLogger(__name__)

_IDLE_VARIABLE = "JUPYTER_AUTOTRAIN_IDLE_MIN"
_IDLE_MIN = "10"


def main() -> None:
    """Become the manager of the home named in the arguments, or end because there is one."""
    os.umask(0o077)
    home = Home(Path(sys.argv[1]))
    lock = take_lock(home)
    if lock is None:
        os._exit(HELD_EXIT_CODE)
    if is_outdated(home):
        os._exit(OUTDATED_EXIT_CODE)
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    status = 0
    try:
        _serve(home, lock, idle_s=60 * float(os.environ.get(_IDLE_VARIABLE, _IDLE_MIN)))
    except SystemExit as end:
        logging.getLogger(__name__).warning("the manager ends: %s", end)
    except BaseException:
        logging.getLogger(__name__).exception("the manager ends by a fault; the next command starts it again")
        status = 1
    # Without waiting for calls under way: whatever they do is found again by the next manager.
    os._exit(status)


def _serve(home: Home, lock: int, idle_s: float) -> None:
    import time  # noqa: PLC0415 - after the fork, so that the starting process stays quick

    from jupyter_autotrain import backends  # noqa: PLC0415
    from jupyter_autotrain.manager.contact import ManagerIdentity  # noqa: PLC0415
    from jupyter_autotrain.manager.context import Clocks, Factories, ManagerContext  # noqa: PLC0415
    from jupyter_autotrain.manager.event_loop import EventLoop  # noqa: PLC0415
    from jupyter_autotrain.manager.leadership import Leadership  # noqa: PLC0415
    from jupyter_autotrain.store import Store  # noqa: PLC0415

    if trial := os.environ.get(MANAGER_VARIABLE):
        leave_trial_cgroups(trial)
    me = ManagerIdentity.of(os.getpid())
    factories = Factories(partial(backends.create, is_checked=True), _create_tuner, _create_early_stop)
    store = Store.open(home)
    context = ManagerContext(home, store, Clocks(time.time, time.monotonic, time.sleep), factories)
    EventLoop(context, idle_s, Leadership(home, store, lock, me)).serve()
    context.store.close()


def _create_tuner(spec: ExperimentSpec) -> Tuner:
    from jupyter_autotrain import tuners  # noqa: PLC0415 - heavy, and most experiments search nothing

    return tuners.create(spec)


def _create_early_stop(spec: ExperimentSpec) -> EarlyStop | None:
    from jupyter_autotrain import tuners  # noqa: PLC0415 - heavy, and most experiments stop nothing

    return tuners.create_early_stop(spec)


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


if __name__ == "__main__":
    main()
