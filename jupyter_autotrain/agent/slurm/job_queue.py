"""The account's jobs as Slurm knows them: one listing for all of them, seldom, and single questions for the others.

That a job is not listed proves nothing: Slurm forgets ended jobs, and a restarted controller may know less.

A controller that does not answer is told from one that refuses a command.

Runs on the login node, so it needs only the standard library of Python 3.9.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from jupyter_autotrain.agent.slurm.job_states import SlurmJob

_ASK_S = 60.0
_MOST_OUTPUT = 500
_USAGE = "Try "  # the line after the one that names an unknown option
# Nothing of the manager's or the agent's own variables goes into a job: `sbatch` passes on what it has.
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TZ", "SLURM_CONF")
# What the commands print when the controller, or the way to it, is down; the request may then have been carried out.
_TRANSIENT = (
    "unable to contact slurm controller", "socket timed out", "connection refused", "communication connection failure",
    "connection timed out", "connect failure", "zero bytes were transmitted", "transport endpoint", "in standby",
    "temporarily unable to accept", "resource temporarily unavailable", "authentication credential",
    "munge", "unexpected message", "broken pipe", "connection reset", "unable to establish connection",
    "backup controller", "slurm_receive_msg", "try again later",
)  # fmt: skip
_FIELD = re.compile(r"(\w+)=(\S*)")
_GPU = re.compile(r"gpu:(?:([^:,()]+):)?(\d+)")
_UNUSABLE = ("DOWN", "DRAIN", "FAIL", "MAINT", "POWERED_DOWN", "UNKNOWN", "NOT_RESPONDING")
NodeRow = dict[str, object]  # name, cpus, memory_bytes, gpus: [[kind, count]], partitions, state
_FIELDS = ("ArrayJobID", "ArrayTaskID", "State", "Reason", "RestartCnt", "NodeList", "Name")
_BETWEEN = "|"
_LEAST_S = 0.5  # between two listings; more the longer nothing has changed, up to the most
_MOST_S = 15.0
_AGE_SHARE = 0.1


class SlurmDownError(Exception):
    """An error of a controller that does not answer, which proves nothing about jobs; the text says how that showed."""


class SlurmRefusedError(Exception):
    """An error of a request that Slurm refuses; the text is its own."""


def run(argv: Sequence[str], environ: Mapping[str, str] | None = None) -> str:
    """Run a command of Slurm, and return its output.

    Args:
        argv: The command.
        environ: The variables to choose those from that it gets; this process's own when not given.

    Raises:
        SlurmDownError: The controller does not answer.
        SlurmRefusedError: It refuses, or there is no such command.
    """
    given = os.environ if environ is None else environ
    env = {name: given[name] for name in _KEPT if name in given}
    try:
        done = subprocess.run(
            list(argv), stdin=subprocess.DEVNULL, capture_output=True, env=env, text=True,
            errors="replace", timeout=_ASK_S, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise SlurmRefusedError(f"there is no `{argv[0]}` on this machine") from None
    except subprocess.TimeoutExpired:
        raise SlurmDownError(f"`{argv[0]}` had no answer within {_ASK_S:g} s") from None
    if done.returncode == 0:
        return done.stdout
    text = _last_words(done.stderr) or f"exit code {done.returncode}"
    if any(sign in done.stderr.lower() for sign in _TRANSIENT):
        raise SlurmDownError(text)
    raise SlurmRefusedError(text)


def _last_words(stderr: str) -> str:
    """Return the last line of a command's errors, without the command's own name."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip() and not line.startswith(_USAGE)]
    last = lines[-1] if lines else ""
    head, mark, rest = last.partition("error: ")
    return (rest if mark and len(head) < 30 else last)[:_MOST_OUTPUT].rstrip(".")


def nodes(run: Callable[[list[str]], str], partition: str) -> list[NodeRow]:
    """Return all nodes, or those of a partition, that can run jobs."""
    rows = [_row(line) for line in run(["scontrol", "--oneliner", "show", "node"]).splitlines() if "NodeName=" in line]
    usable = [row for row in rows if not str(row["state"]).startswith(_UNUSABLE)]
    if not partition:
        return usable
    return [row for row in usable if partition in str(row["partitions"]).split(",")]


def _row(line: str) -> NodeRow:
    fields = dict(_FIELD.findall(line))
    gpus = [[kind or None, int(count)] for kind, count in _GPU.findall(fields.get("Gres", ""))]
    return {
        "name": fields["NodeName"], "cpus": _number(fields.get("CPUEfctv") or fields.get("CPUTot")),
        "memory_bytes": _number(fields.get("RealMemory")) << 20, "gpus": gpus,
        "partitions": fields.get("Partitions", ""), "state": fields.get("State", "UNKNOWN"),
    }  # fmt: skip


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0


class JobQueue:
    """The jobs of this account, as Slurm lists them.

    Args:
        run: Runs a command of Slurm; see `run`.
        clock: Gives seconds that never go back.
    """

    def __init__(self, run: Callable[[list[str]], str] = run, clock: Callable[[], float] = time.monotonic) -> None:
        self._run = run
        self._clock = clock
        self._jobs: Mapping[str, SlurmJob] = {}
        self._names: Mapping[str, str] = {}
        self._listed_s: float | None = None
        self._changed_s = 0.0
        self._text = ""
        self._has_accounting: bool | None = None

    def find(self, job_id: str) -> SlurmJob | None:
        """Return a job as Slurm has it, a little while ago or now; None when Slurm answers and does not know it.

        Raises:
            SlurmDownError: Slurm does not answer.
        """
        jobs = self._recent()
        if job_id not in jobs:
            jobs = self._list()  # it may be younger than the listing
        return jobs.get(job_id) or self._accounted(job_id)

    def find_now(self, job_id: str) -> SlurmJob | None:
        """Return a job as `find` does, but without an older listing."""
        return self._list().get(job_id) or self._accounted(job_id)

    def number_of(self, name: str) -> str:
        """Return the number of the job with this name, now; "" where Slurm lists none.

        Raises:
            SlurmDownError: Slurm does not answer.
        """
        self._list()
        return self._names.get(name, "")

    def names_now(self) -> list[str]:
        """Return the names of all jobs of this account that Slurm lists; errors as `number_of`."""
        self._list()
        return list(self._names)

    def _recent(self) -> Mapping[str, SlurmJob]:
        now_s = self._clock()
        pause_s = min(max(_AGE_SHARE * (now_s - self._changed_s), _LEAST_S), _MOST_S)
        if self._listed_s is None or now_s - self._listed_s >= pause_s:
            return self._list()
        return self._jobs

    def _list(self) -> Mapping[str, SlurmJob]:
        """List all jobs, now. Other threads see the older listing or this one, never a part."""
        fields = ",".join(f"{field}:{_BETWEEN}" for field in _FIELDS)
        argv = ["squeue", "--me", "--states=all", "--array", "--noheader", f"--Format={fields}"]
        try:
            text = self._run(argv)
        except SlurmRefusedError as error:
            raise SlurmDownError(str(error)) from error
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
        """Return a job as the accounting has it, where there is an accounting that knows it."""
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
        except SlurmRefusedError:
            self._has_accounting = False
            return None
        self._has_accounting = True
        for line in text.splitlines():
            found, state, nodes = line.split(_BETWEEN)[:3]
            if found == job_id:
                return SlurmJob(job_id, state, "", nodes)
        return None
