"""The trials of one account of a cluster: handed to Slurm, looked after, ended. Runs on the login node.

It keeps nothing that a fresh one would miss: the trial directories say which job is whose.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jupyter_autotrain.agent.errors import BackendError
from jupyter_autotrain.agent.slurm import batch, cancelling, job_queue, leftovers, pilots, resolution
from jupyter_autotrain.agent.slurm.batch import BatchFolder, Entry, Task
from jupyter_autotrain.agent.slurm.job_queue import JobQueue
from jupyter_autotrain.agent.slurm.pilots import Pilot, Pools
from jupyter_autotrain.agent.slurm.resolution import Resolution, preparing
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial import trial_lock
from jupyter_autotrain.agent.trial.status import Status, UnknownError

_NOT_SUBMITTED = "its submission waits: Slurm's controller does not answer ({}); it is tried again"


class SlurmController:
    """The controller, which answers requests about the trials of one folder.

    Args:
        root: The folder of everything of ours, on a file system that the nodes share.
        run: Runs a command of Slurm; see `run`.
        queue: Lists jobs.
        settle_s: How long after the end of a job its last files may take to appear on the shared file system.
    """

    def __init__(
        self, root: Path, run: Callable[[list[str]], str] = job_queue.run, queue: JobQueue | None = None,
        settle_s: float = 5.0,
    ) -> None:  # fmt: skip
        self.code = Path(__file__).parents[3]  # where the package lies that runs on the nodes
        self._root = root
        self._run = run
        self._queue = queue or JobQueue(run)
        self._resolution = resolution.Resolution(root, settle_s)
        self._pools = pilots.Pools(root, self._run, self._queue)
        self._pooled = PooledTrials(root, self._pools, self._queue, self._resolution)
        self._handlers: dict[str, Callable[[Mapping[str, Any]], object]] = {
            "submit": lambda request: self.submit(request["tasks"], request["script"], request["python"]),
            "poll": lambda request: self._poll_all(list(map(self._directory, request["directories"]))),
            "cancel": lambda request: self.cancel(self._directory(request["directory"]), request["grace_s"]),
            "remove_code": lambda _: leftovers.remove_unneeded(self._root),
            "leftovers": lambda request: self._leftovers(**request["of"]),
            "nodes": lambda request: job_queue.nodes(self._run, request["partition"]),
            "version": lambda _: self._version(),
        }

    def handle(self, request: Mapping[str, Any]) -> object:
        """Answer one request; all that goes in and out is JSON.

        Raises:
            BackendError: Slurm refuses, or does not answer.
        """
        try:
            return self._handlers[request["call"]](request)
        except job_queue.SlurmRefusedError as error:
            raise BackendError(
                f"Slurm refuses: {error}.", "", "Correct the options of the backend, or `resources:`."
            ) from error
        except job_queue.SlurmDownError as error:
            raise BackendError(f"Slurm does not answer: {error}.", "", "Ask again later.") from error

    def _version(self) -> str:
        self._run(["squeue", "--me", "--noheader", "--states=running"])
        return self._run(["sbatch", "--version"]).strip()

    def _directory(self, name: str) -> Path:
        """Return a trial directory by its absolute path, or by its name below `jobs/`."""
        return self._root / "jobs" / name

    def submit(self, tasks: Sequence[Task], script: str, python: str = "") -> bool:
        """Hand trials to Slurm, together; those that were handed over before are left alone.

        A controller that does not answer is no failure: the trials are written down, and `poll` hands them over.
        Returns False, and does nothing, where their code is gone and has to be sent again.

        Args:
            tasks: The trials.
            script: The text of `job_script`.
            python: The interpreter on the nodes; this process's own when it is "".

        Raises:
            SlurmRefusedError: Slurm refuses them.
        """
        with batch.submitting(self._root):
            new = [self._filled(task) for task in tasks if not self._is_known(self._directory(task["directory"]))]
            if not new:
                return True
            if not leftovers.use(self._root, new):
                return False
            names = {"@PYTHON@": python or sys.executable, "@CODE@": str(self.code)}
            folder = BatchFolder.new(self._root)
            with contextlib.suppress(job_queue.SlurmDownError):
                if new[0]["reuse"]:
                    self._pool(folder, new, batch.fill_in(script, names))
                else:
                    folder.write(new, folder.fill(batch.fill_in(script, names), len(new)))
                    self._hand_over(folder)
        return True

    def _pool(self, folder: BatchFolder, tasks: Sequence[Task], script: str) -> None:
        """Let trials wait for pilot jobs, and submit those that are missing."""
        pool = pilots.Pools.digest(script)
        folder.write(tasks, script, pool)
        entries = self._entries(folder)
        for entry in entries:
            self._pools.put(entry)
        try:
            self._pools.look_after(pool)
        except job_queue.SlurmRefusedError:
            for entry in entries:
                self._pools.withdraw(entry)
            folder.remove()
            self._pools.look_after(pool)  # it may be empty now
            raise

    def _entries(self, folder: BatchFolder) -> list[Entry]:
        found = [batch.read_entry(self._root, directory) for directory in folder.directories()]
        return [entry for entry in found if entry is not None]

    def _filled(self, task: Task) -> Task:
        """Return a task with the paths that only this machine knows."""
        trial = dict(task["trial"])
        directory = str(self._directory(task["directory"]))
        trial["directory"] = directory
        trial["python"] = trial["python"] or sys.executable
        for name, folder in (("environments", "environments"), ("data_folder", "data")):
            if trial.get(name) == "":
                trial[name] = str(self._root / folder)
        if trial["resume_from"]:
            trial["resume_from"] = str(self._directory(trial["resume_from"]))
        return {**task, "directory": directory, "trial": trial}

    def _is_known(self, directory: Path) -> bool:
        return statuses.is_there(directory) or batch.entry_file(self._root, directory).exists()

    def _hand_over(self, folder: BatchFolder) -> None:
        """Call `sbatch`, unless it was called and Slurm has the job."""
        number = self._queue.number_of(folder.job_name) if folder.was_tried else ""
        if not number:
            folder.mark_tried()
            number = self._sbatch(folder)
        folder.name_job(number)

    def _sbatch(self, folder: BatchFolder) -> str:
        count = len(folder.directories())
        array = [f"--array=0-{count - 1}"] if count > 1 else []
        try:
            printed = self._run(["sbatch", "--parsable", *array, str(folder.path / batch.SCRIPT)])
        except job_queue.SlurmRefusedError as error:
            told = f"{error} (it was asked for {folder.asked()})"
            folder.remove()
            raise job_queue.SlurmRefusedError(told) from error
        return printed.strip().split(";")[0]

    def _poll_all(self, directories: Sequence[Path]) -> list[object]:
        if (self._root / pilots.POOLS).exists():
            with contextlib.suppress(job_queue.SlurmDownError), batch.submitting(self._root):  # each trial tells of it
                self._pools.look_after_all()
        return list(map(self.poll, directories))

    def poll(self, directory: Path) -> object:
        """Return the status of a trial, None where it never was, or a text: the reason why that is not known."""
        try:
            status = statuses.read(directory)
            entry = batch.read_entry(self._root, directory)
            found: object = status
            if entry is not None and (status is None or resolution.needs_slurm(directory, status)):
                found = self._poll_job(directory, status, entry)
            if entry is not None and isinstance(found, dict) and statuses.is_final(found):
                self._forget(entry)
        except (OSError, ValueError, UnknownError) as error:
            return str(error)
        except job_queue.SlurmDownError as error:
            return f"Slurm does not answer: {error}; it goes on there"
        return found

    def _poll_job(self, directory: Path, status: statuses.Status | None, entry: Entry) -> object:
        if entry.get("pool"):
            return self._pooled.resolve(directory, status, entry)
        job_id = entry["job"] or self._complete(directory)
        if not job_id:
            return resolution.preparing(_NOT_SUBMITTED.format("no answer"))
        job = self._queue.find(job_id)
        return self._resolution.resolve(directory, entry, status, job)

    def _forget(self, entry: Entry) -> None:
        """Remove a batch all of whose trials have ended."""
        if entry.get("pool"):
            self._pools.release(entry)
        folder = BatchFolder(self._root, entry["batch"])
        with contextlib.suppress(OSError, UnknownError):
            found = [(directory, statuses.read(directory)) for directory in folder.directories()]
            if all(status is not None and not resolution.needs_slurm(where, status) for where, status in found):
                folder.remove()

    def _complete(self, directory: Path) -> str:
        """Hand over a trial whose submission was cut short; return the number of its job."""
        with batch.submitting(self._root):
            entry = batch.read_entry(self._root, directory)
            if entry is None or entry["job"]:
                return "" if entry is None else str(entry["job"])
            folder = BatchFolder(self._root, entry["batch"])
            self._hand_over(folder)
            entry = batch.read_entry(self._root, directory)
        return "" if entry is None else str(entry["job"])

    def _leftovers(self, folder: str, experiments: list[str], is_removed: bool) -> list[str]:
        """Return the leftovers of a home whose trial directories lie in a folder: removed now, or only found."""
        found = leftovers.Leftovers(self._root, self._queue, self.cancel)
        return (found.remove if is_removed else found.find)(self._directory(folder), experiments)

    def cancel(self, directory: Path, grace_s: float) -> object:
        """End a trial; see `cancelling.cancel`."""
        receipt = cancelling.cancel(self._run, self._queue, self._pools, self._root, directory, grace_s)
        return receipt.to_json()


# Trials that pilot jobs run. One waits, or a pilot has it, or it has ended by itself. One that a pilot took and did
# not begin waits again when Slurm has ended that pilot: its secrets are still there, and it has no status, so no code
# of it has run.


_AGAIN = "waits for another pilot job: the one that took it was ended before it could begin"


class PooledTrials:
    """The states of the trials of pools.

    Args:
        root: The folder of everything of ours.
        pools: The pools there.
        queue: Lists jobs.
        resolution: Brings a status file and Slurm's word together.
    """

    def __init__(self, root: Path, pools: Pools, queue: JobQueue, resolution: Resolution) -> None:
        self._root = root
        self._pools = pools
        self._queue = queue
        self._resolution = resolution

    def resolve(self, directory: Path, status: Status | None, entry: Entry) -> Status | str:
        """Return the status of a trial, or a text: the reason why it is not known.

        Raises:
            SlurmDownError: Slurm does not answer.
        """
        if self._pools.is_waiting(entry):
            return self._of_waiting(directory, entry)
        pilot = self._pools.pilot_of(entry)
        if pilot is None:
            status = statuses.read(directory)  # an older one may be from before its end
            if status is not None and statuses.is_final(status):
                return self._resolution.explain(directory, status, None)
        job = None if pilot is None else self._queue.find(pilot.job)
        if job is not None and not job.has_ended:
            return self._resolution.resolve(directory, entry, status, job)
        if status is None and self._begins_again(directory, entry, pilot):
            return preparing(_AGAIN)
        return self._resolution.resolve(directory, entry, status, job)

    def _of_waiting(self, directory: Path, entry: Entry) -> Status | str:
        pool = str(entry["pool"])
        failed = self._pools.failed(pool)
        if failed is None or not self._pools.withdraw(entry):
            return preparing(self._pools.reason(pool))
        job = self._queue.find(failed.job)
        return self._resolution.end(directory, entry, job, failed.last_output())

    def _begins_again(self, directory: Path, entry: Entry, pilot: Pilot | None) -> bool:
        """Put a trial back that has not begun, and cannot begin any more where it is; return whether that was so."""
        if not self._resolution.has_settled(directory):
            return False
        if trial_lock.is_held(str(directory)) or (pilot is not None and trial_lock.is_held(str(pilot.path))):
            return False
        folder = BatchFolder(self._root, str(entry["batch"]))
        if not folder.has_secrets(int(entry["index"])):
            return False
        self._pools.put_back(entry, pilot)
        return True
