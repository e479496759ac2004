"""What Slurm knows of our jobs: one listing for all of them, seldom, and one by one what is not in it.

That a job is not listed proves nothing: Slurm forgets ended jobs, and a restarted controller may know less.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from jupyter_autotrain.backends.slurm_login import commands
from jupyter_autotrain.backends.slurm_login.job_states import SlurmJob

_FIELDS = ("ArrayJobID", "ArrayTaskID", "State", "Reason", "RestartCnt", "NodeList", "Name")
_BETWEEN = "|"
_LEAST_S = 0.5  # between two listings; more the longer nothing has changed, up to the most
_MOST_S = 15.0
_AGE_SHARE = 0.1


class JobQueue:
    """The jobs of this account, as Slurm lists them.

    Args:
        run: Runs a command of Slurm; see `commands.run`.
        clock: Gives seconds that never go back.
    """

    def __init__(
        self, run: Callable[[list[str]], str] = commands.run, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._run = run
        self._clock = clock
        self._jobs: Mapping[str, SlurmJob] = {}
        self._names: Mapping[str, str] = {}
        self._listed_s: float | None = None
        self._changed_s = 0.0
        self._text = ""
        self._has_accounting: bool | None = None

    def find(self, job_id: str) -> SlurmJob | None:
        """A job as Slurm has it, a little while ago or now; None when Slurm answers and does not know it.

        Raises:
            SlurmDownError: Slurm does not answer.
        """
        jobs = self._recent()
        if job_id not in jobs:
            jobs = self._list()  # it may be younger than the listing
        return jobs.get(job_id) or self._accounted(job_id)

    def find_now(self, job_id: str) -> SlurmJob | None:
        """As `find`, without an older listing."""
        return self._list().get(job_id) or self._accounted(job_id)

    def number_of(self, name: str) -> str:
        """The number of the job with this name, now; "" where Slurm lists none.

        Raises:
            SlurmDownError: Slurm does not answer.
        """
        self._list()
        return self._names.get(name, "")

    def names_now(self) -> list[str]:
        """The names of all jobs of this account that Slurm lists; errors as `number_of`."""
        self._list()
        return list(self._names)

    def _recent(self) -> Mapping[str, SlurmJob]:
        now_s = self._clock()
        pause_s = min(max(_AGE_SHARE * (now_s - self._changed_s), _LEAST_S), _MOST_S)
        if self._listed_s is None or now_s - self._listed_s >= pause_s:
            return self._list()
        return self._jobs

    def _list(self) -> Mapping[str, SlurmJob]:
        """All jobs, now. Other threads see the older listing or this one, never a part."""
        fields = ",".join(f"{field}:{_BETWEEN}" for field in _FIELDS)
        argv = ["squeue", "--me", "--states=all", "--array", "--noheader", f"--Format={fields}"]
        try:
            text = self._run(argv)
        except commands.SlurmRefusedError as error:
            raise commands.SlurmDownError(str(error)) from error
        self._listed_s = self._clock()
        if text != self._text:
            self._text = text
            self._changed_s = self._listed_s
        jobs = {}
        names = {}
        for line in text.splitlines():
            columns = [column.strip() for column in line.split(_BETWEEN)]
            if len(columns) >= len(_FIELDS):
                number, index, state, reason, restarts, nodes, name = columns[: len(_FIELDS)]
                job_id = f"{number}_{index}" if index.isdigit() else number
                jobs[job_id] = SlurmJob(job_id, state, reason, nodes, int(restarts) if restarts.isdigit() else 0)
                names[name] = number
        self._jobs = jobs
        self._names = names
        return jobs

    def _accounted(self, job_id: str) -> SlurmJob | None:
        """What the accounting has of a job, where there is one."""
        if self._has_accounting is False:
            return None
        argv = [
            "sacct",
            "--noheader",
            "--parsable2",
            "--allocations",
            f"--jobs={job_id}",
            "--format=JobID,State,NodeList",
        ]
        try:
            text = self._run(argv)
        except commands.SlurmRefusedError:
            self._has_accounting = False
            return None
        self._has_accounting = True
        for line in text.splitlines():
            found, state, nodes = line.split(_BETWEEN)[:3]
            if found == job_id:
                return SlurmJob(job_id, state, "", nodes)
        return None
