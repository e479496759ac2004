"""Pilot jobs: each runs many trials of one pool, one after another (`worker.slurm_pilot` is what runs in them).

A pool is the trials with the same script, so with the same needs and options. There are at most as many pilots as the
profile allows, and no more than there are trials. Runs on the login node.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jupyter_autotrain.backends.slurm_login import batch, commands, job_states
from jupyter_autotrain.backends.slurm_login.batch import Entry
from jupyter_autotrain.backends.slurm_login.job_queue import JobQueue
from jupyter_autotrain.backends.slurm_login.pilot_folder import ENDED, TRIED, Pilot
from jupyter_autotrain.core import files, wire
from jupyter_autotrain.worker import trial_lock
from jupyter_autotrain.worker.slurm_pilot import JOB, PILOTS, TAKEN, WAITING

POOLS = "pools"
_MOST_FAILURES = 3  # of pilots that had begun, before the trials that wait fail with them
_UNKNOWN = "unknown"  # Slurm does not know a pilot any more


class Pools:
    """All pools of a folder, and their pilots.

    Args:
        root: The folder of everything of ours.
        run: Runs a command of Slurm.
        queue: Lists jobs.
    """

    def __init__(self, root: Path, run: Callable[[list[str]], str], queue: JobQueue) -> None:
        self._root = root / POOLS
        self._run = run
        self._queue = queue
        self._reasons: dict[str, str] = {}

    @staticmethod
    def digest(script: str) -> str:
        """The name of the pool of a script."""
        return hashlib.sha256(script.encode()).hexdigest()[:16]

    def put(self, entry: Entry) -> None:
        """Let a trial wait for a pilot."""
        folder = batch.BatchFolder(self._root.parent, str(entry["batch"]))
        index = int(entry["index"])
        timeout_s = folder.trial(index).get("timeout_s")
        content = {"batch": str(folder.path), "index": index, "timeout_s": timeout_s, "most": entry["most"]}
        data = json.dumps(content).encode()
        self._make(entry, lambda path: wire.write_atomically(str(path), data))

    def put_back(self, entry: Entry, pilot: Pilot | None) -> None:
        """Let a trial wait again that has not begun; `pilot` has taken it and has ended."""
        if pilot is None:
            self.put(entry)
        else:
            taken = pilot.path / f"{TAKEN}{entry['name']}"
            self._make(entry, taken.rename)

    def _make(self, entry: Entry, make: Callable[[Path], object]) -> None:
        path = self._waiting(entry)
        for is_last in (False, False, True):  # the last pilot removes the pool when it leaves
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                make(path)
            except FileNotFoundError:
                if is_last:
                    raise
            else:
                return

    def _waiting(self, entry: Entry) -> Path:
        return self._root / str(entry["pool"]) / WAITING / str(entry["name"])

    def is_waiting(self, entry: Entry) -> bool:
        """True while no pilot has taken a trial."""
        return self._waiting(entry).exists()

    def withdraw(self, entry: Entry) -> bool:
        """Take a trial back; False when a pilot has it."""
        with contextlib.suppress(FileNotFoundError):
            self._waiting(entry).unlink()
            return True
        return False

    def pilots(self, pool: str) -> list[Pilot]:
        """Those of a pool that have a folder."""
        with contextlib.suppress(OSError):
            return [Pilot(path) for path in sorted((self._root / pool / PILOTS).iterdir())]
        return []

    def pilot_of(self, entry: Entry) -> Pilot | None:
        """Which pilot has a trial."""
        taken = f"{TAKEN}{entry['name']}"
        return next((one for one in self.pilots(str(entry["pool"])) if (one.path / taken).exists()), None)

    def release(self, entry: Entry) -> None:
        """The trial of a pilot that Slurm has ended is settled."""
        pilot = self.pilot_of(entry)
        if pilot is not None and pilot.ended:
            (pilot.path / f"{TAKEN}{entry['name']}").unlink(missing_ok=True)

    def reason(self, pool: str) -> str:
        """Why the trials of a pool wait, as the rest of a sentence."""
        return self._reasons.get(pool) or "waits for a pilot job"

    def failed(self, pool: str) -> Pilot | None:
        """A pilot by whose end the trials that wait fail, too: none lives, and another would end alike."""
        found = self.pilots(pool)
        if any(not pilot.ended for pilot in found):
            return None
        failures = [pilot for pilot in found if pilot.ended == "FAILED"]
        broken = [pilot for pilot in found if pilot.is_broken]
        if broken:
            return broken[0]
        return failures[-1] if len(failures) >= _MOST_FAILURES else None

    def look_after_all(self) -> None:
        """As `look_after`, of all pools; what Slurm refuses becomes the reason why trials wait.

        Raises:
            SlurmDownError: Slurm does not answer.
        """
        with contextlib.suppress(FileNotFoundError):
            for path in self._root.iterdir():
                with contextlib.suppress(commands.SlurmRefusedError):
                    self.look_after(path.name)

    def look_after(self, pool: str) -> None:
        """Submit the pilots that are missing, and remove what is left of ended ones; under the lock of submissions.

        Raises:
            SlurmDownError: Slurm does not answer.
            SlurmRefusedError: It refuses a pilot.
        """
        try:
            self._look_after(self._root / pool)
        except commands.SlurmRefusedError as error:
            self._reasons[pool] = f"waits for a pilot job, which Slurm refuses: {error}"
            raise

    def _look_after(self, path: Path) -> None:
        waiting = self._contents(path / WAITING)
        living = [pilot for pilot in self.pilots(path.name) if not self._has_ended(pilot)]
        if not waiting:
            self._clear(path)
            return
        if self.failed(path.name) is not None:
            return
        most = max(int(one["most"]) for one in waiting)
        wanted = min(most, len(waiting) + sum(pilot.takes for pilot in living))
        living += [self._new(path, waiting[0]) for _ in range(wanted - len(living))]
        self._reasons[path.name] = self._reason(living)

    @staticmethod
    def _contents(folder: Path) -> list[Any]:
        found = []
        with contextlib.suppress(OSError):
            for name in sorted(path.name for path in folder.iterdir()):
                with contextlib.suppress(OSError, ValueError):  # taken meanwhile
                    found.append(files.read_json(folder, name))
        return [one for one in found if isinstance(one, dict)]

    def _has_ended(self, pilot: Pilot) -> bool:
        if pilot.ended:
            return True
        if not pilot.job:
            self._hand_over(pilot)
        job = self._queue.find(pilot.job)
        if job is not None and not job.has_ended:
            return False
        if job is None and trial_lock.is_held(str(pilot.path)):
            return False
        pilot.write(ENDED, job.state if job else _UNKNOWN)
        return True

    def _new(self, pool: Path, waiting: Mapping[str, Any]) -> Pilot:
        """Submit another pilot, with the script of a trial that waits."""
        script = (Path(waiting["batch"]) / batch.SCRIPT).read_text(encoding="utf-8")
        pilot = Pilot(pool / PILOTS / secrets.token_hex(6))
        pilot.path.mkdir(mode=0o700, parents=True)
        names = {"@JOB_NAME@": pilot.job_name, "@BATCH@": str(pilot.path), "/output-%a": "/output-0"}
        pilot.write(batch.SCRIPT, batch.fill_in(script, names))
        self._hand_over(pilot)
        return pilot

    def _hand_over(self, pilot: Pilot) -> None:
        """Call `sbatch`, unless it was called and Slurm has the job."""
        was_tried = (pilot.path / TRIED).exists()
        number = self._queue.number_of(pilot.job_name) if was_tried else ""
        if not number:
            pilot.write(TRIED, "")
            try:
                printed = self._run(["sbatch", "--parsable", str(pilot.path / batch.SCRIPT)])
            except commands.SlurmRefusedError:
                shutil.rmtree(pilot.path, ignore_errors=True)
                raise
            number = printed.strip().split(";")[0]
        pilot.write(JOB, number)

    def _reason(self, living: list[Pilot]) -> str:
        found = [self._queue.find(pilot.job) for pilot in living]
        jobs = [job for job in found if job is not None]
        running = [job.id for job in jobs if job.is_running]
        if running:
            return f"waits for its turn in a pilot job (Slurm job {', '.join(running)})"
        waiting = [job_states.waiting_sentence(job) for job in jobs if job.is_waiting]
        return f"waits for a pilot job, which {waiting[0]}" if waiting else "waits for a pilot job"

    def _clear(self, pool: Path) -> None:
        """Remove ended pilots whose trials are settled, and the pool when that was all."""
        self._reasons.pop(pool.name, None)
        for pilot in self.pilots(pool.name):
            if pilot.ended and not pilot.takes:
                shutil.rmtree(pilot.path, ignore_errors=True)
        for folder in (pool / PILOTS, pool / WAITING, pool):
            with contextlib.suppress(OSError):  # it is in use
                folder.rmdir()
