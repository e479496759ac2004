"""The program that a pod runs: its trial, or, as a pilot, trials one after another; see `agent.pool`.

```
RUN/waiting, RUN/taken-NAME, RUN/ran    of the pilot; an entry holds the files of its trial, each in base64
    current/                            those files, unpacked, of the trial that runs, or ran last
```

Everything else of that trial lies where `pod` puts it. What trials share stays: the agent, data, virtual environments.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import sys
from collections.abc import Mapping

from jupyter_autotrain.agent import fields
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.agent.pods.pod import PREEMPTED_CODE, Pod
from jupyter_autotrain.agent.pool.pilot import Entry, Pilot
from jupyter_autotrain.agent.pool.waiting import WaitingTrials

_CURRENT = "current"
_OF_ONE_TRIAL = (_CURRENT, places.TRIAL, places.STATES, places.FILES)
_MOST_PAUSE_S = 0.05


class PooledTrials:
    """The trials of a pod that runs one after another.

    Args:
        environ: The variables of its container.
        run: The folder of everything in the pod.
    """

    def __init__(self, environ: Mapping[str, str], run: str = places.RUN) -> None:
        self._environ = dict(environ)
        self._run = run
        self._files = f"{run}/{_CURRENT}"

    def run_all(self, idle_s: float) -> int:
        """Run trials until there are none, or the cluster ends the pod; return the exit code of the container."""
        waiting = WaitingTrials(self._run)
        waiting.open()
        pilot = Pilot(waiting, self._run, self._run_trial, idle_s=idle_s, most_pause_s=_MOST_PAUSE_S)
        return 0 if pilot.run() else PREEMPTED_CODE

    def _run_trial(self, name: str, entry: Entry, how: str) -> None:
        """Run a trial; one whose process was killed goes on as in a container that is started again: it ends."""
        if not how:
            self._lay_out(entry)
        with open(f"{self._files}/{places.TRIAL_FILE}", encoding="utf-8") as file:
            trial = fields.mapping(json.load(file))
        archives = trial.get("archives")
        for archive in archives if isinstance(archives, list) else ():
            if archive.get("path"):
                archive["path"] = f"{self._files}/{os.path.basename(str(archive['path']))}"
        own = {places.TRIAL_VARIABLE: json.dumps(trial), places.JOB_VARIABLE: name}
        Pod({**self._environ, **own}, self._run, self._files, goes_on=bool(how)).main()

    def _lay_out(self, entry: Entry) -> None:
        """Put the files of a trial in the place of those of the last one."""
        for name in _OF_ONE_TRIAL:
            shutil.rmtree(f"{self._run}/{name}", ignore_errors=True)
            with contextlib.suppress(OSError):
                os.unlink(f"{self._run}/{name}")
        os.mkdir(self._files)
        for name, content in entry.items():
            with open(f"{self._files}/{os.path.basename(name)}", "wb") as file:
                file.write(base64.b64decode(str(content)))


def main() -> None:
    """Run the trial or the trials of this pod, then exit."""
    os.umask(0o077)
    if len(sys.argv) > 1:
        from jupyter_autotrain.agent.pods import service_job  # noqa: PLC0415 - pods have no use for it

        code = os.path.dirname(os.path.abspath(sys.argv[0]))
        sys.exit(service_job.run(os.environ, sys.argv[1], code, *sys.argv[2:3]))
    idle_s = fields.mapping(json.loads(os.environ.get(places.POD_VARIABLE) or "{}")).get(places.REUSE_IDLE)
    if isinstance(idle_s, (int, float)):
        sys.exit(PooledTrials(os.environ).run_all(idle_s))
    sys.exit(Pod(os.environ).main())
