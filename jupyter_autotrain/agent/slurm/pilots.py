"""Pilot jobs: each runs many trials of one pool, one after another (`agent.slurm.slurm_pilot` is what runs in them).

A pool is the trials with the same script, so with the same needs and options. There are at most as many pilots as the
profile allows, and no more than there are trials. Runs on the login node.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from jupyter_autotrain.agent import fields, files, wire
from jupyter_autotrain.agent.pool import rules
from jupyter_autotrain.agent.pool.pilot import PILOTS, remove_unused
from jupyter_autotrain.agent.pool.waiting import TAKEN, WaitingTrials, read_entry
from jupyter_autotrain.agent.slurm import batch, job_queue, job_states
from jupyter_autotrain.agent.slurm.batch import Entry
from jupyter_autotrain.agent.slurm.job_queue import JobQueue
from jupyter_autotrain.agent.slurm.slurm_pilot import JOB
from jupyter_autotrain.agent.trial import trial_lock

POOLS = "pools"
_ENDED = "ended"
_TRIED = "tried"
_UNKNOWN = "unknown"  # Slurm does not know a pilot any more


class Pilot:
    """The folder of a pilot.

    Args:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.job_name = f"autotrain-{path.name}"

    @property
    def job(self) -> str:
        """The number of its job; "" while that is not known."""
        return self._text(JOB)

    @property
    def ended(self) -> str:
        """The state in which its job has ended, in Slurm's word; "" while that is not known."""
        return self._text(_ENDED)

    def _text(self, name: str) -> str:
        with contextlib.suppress(OSError):
            return files.read(self.path, name, 100).decode(errors="replace")
        return ""

    @property
    def has_begun(self) -> bool:
        """True when it came up on its node."""
        return (self.path / wire.LOCK_FILE).exists()

    @property
    def takes(self) -> int:
        """The number of trials that it has at this moment."""
        with contextlib.suppress(OSError):
            return sum(path.name.startswith(TAKEN) for path in self.path.iterdir())
        return 0

    def write(self, name: str, text: str) -> None:
        """Write a file of the pilot."""
        with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile, and removed its folder
            wire.write_atomically(str(self.path / name), text.encode())

    @property
    def is_broken(self) -> bool:
        """True when it ended by itself before it could begin: another one would do the same."""
        return self.ended in {"FAILED", "COMPLETED"} and not self.has_begun

    def last_output(self) -> str:
        """Return the last line that its script printed, for messages."""
        return batch.last_line(self.path, "output-0")


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
        """Return the name of the pool of a script."""
        return hashlib.sha256(script.encode()).hexdigest()[:16]

    def put(self, entry: Entry) -> None:
        """Let a trial wait for a pilot."""
        folder = batch.BatchFolder(self._root.parent, str(entry["batch"]))
        index = int(entry["index"])
        timeout_s = folder.trial(index).get("timeout_s")
        content = {"batch": str(folder.path), "index": index, "timeout_s": timeout_s, "most": entry["most"]}
        data = json.dumps(content).encode()
        waiting = self._waiting(entry)
        waiting.add(lambda: waiting.put(str(entry["name"]), data))

    def put_back(self, entry: Entry, pilot: Pilot | None) -> None:
        """Let a trial wait again that has not begun; `pilot` has taken it and has ended."""
        if pilot is None:
            self.put(entry)
            return
        waiting = self._waiting(entry)
        taken = pilot.path / f"{TAKEN}{entry['name']}"
        waiting.add(lambda: taken.rename(waiting.file(str(entry["name"]))))

    def _waiting(self, entry: Entry) -> WaitingTrials:
        return WaitingTrials(self._root / str(entry["pool"]))

    def is_waiting(self, entry: Entry) -> bool:
        """Tell whether a trial waits: no pilot has taken it."""
        return os.path.exists(self._waiting(entry).file(str(entry["name"])))

    def withdraw(self, entry: Entry) -> bool:
        """Take a trial back; return False when a pilot has it."""
        return self._waiting(entry).withdraw(str(entry["name"]))

    def pilots(self, pool: str) -> list[Pilot]:
        """Return the pilots of a pool that have a folder."""
        with contextlib.suppress(OSError):
            return list(map(Pilot, sorted((self._root / pool / PILOTS).iterdir())))
        return []

    def pilot_of(self, entry: Entry) -> Pilot | None:
        """Return the pilot that has a trial."""
        taken = f"{TAKEN}{entry['name']}"
        return next((one for one in self.pilots(str(entry["pool"])) if (one.path / taken).exists()), None)

    def release(self, entry: Entry) -> None:
        """Settle the trial of a pilot that Slurm has ended."""
        pilot = self.pilot_of(entry)
        if pilot is not None and pilot.ended:
            (pilot.path / f"{TAKEN}{entry['name']}").unlink(missing_ok=True)

    def reason(self, pool: str) -> str:
        """Return the reason why the trials of a pool wait, as the rest of a sentence."""
        return self._reasons.get(pool) or "waits for a pilot job"

    def failed(self, pool: str) -> Pilot | None:
        """Return a pilot by whose end the trials that wait fail, too: none lives, and another would end alike."""
        found = self.pilots(pool)
        if any(not pilot.ended for pilot in found):
            return None
        failures = [pilot for pilot in found if pilot.ended == "FAILED"]
        return rules.fatal_end(failures, [pilot for pilot in found if pilot.is_broken])

    def look_after_all(self) -> None:
        """Look after all pools; a refusal by Slurm becomes the reason why trials wait.

        Raises:
            SlurmDownError: Slurm does not answer.
        """
        with contextlib.suppress(FileNotFoundError):
            for path in self._root.iterdir():
                with contextlib.suppress(job_queue.SlurmRefusedError):
                    self.look_after(path.name)

    def look_after(self, pool: str) -> None:
        """Submit the pilots that are missing, and remove ended ones that are settled; under the lock of submissions.

        Raises:
            SlurmDownError: Slurm does not answer.
            SlurmRefusedError: It refuses a pilot.
        """
        try:
            self._look_after(self._root / pool)
        except job_queue.SlurmRefusedError as error:
            self._reasons[pool] = f"waits for a pilot job, which Slurm refuses: {error}"
            raise

    def _look_after(self, path: Path) -> None:
        waiting = _entries(WaitingTrials(path))
        living = [pilot for pilot in self.pilots(path.name) if not self._has_ended(pilot)]
        if not waiting:
            self._clear(path)
            return
        if self.failed(path.name) is not None:
            return
        most = max(fields.integer(one.get("most"), 1) for one in waiting)
        ready = sum(not pilot.takes for pilot in living)
        missing = rules.missing_pilots(len(waiting), ready, len(living), most)
        living += [self._new(path, waiting[0]) for _ in range(missing)]
        self._reasons[path.name] = self._reason(living)

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
        pilot.write(_ENDED, job.state if job else _UNKNOWN)
        return True

    def _new(self, pool: Path, waiting: Mapping[str, object]) -> Pilot:
        """Submit another pilot, with the script of a trial that waits."""
        script = (Path(str(waiting["batch"])) / batch.SCRIPT).read_text(encoding="utf-8")
        pilot = Pilot(pool / PILOTS / secrets.token_hex(6))
        pilot.path.mkdir(mode=0o700, parents=True)
        names = {"@JOB_NAME@": pilot.job_name, "@BATCH@": str(pilot.path), "/output-%a": "/output-0"}
        pilot.write(batch.SCRIPT, batch.fill_in(script, names))
        self._hand_over(pilot)
        return pilot

    def _hand_over(self, pilot: Pilot) -> None:
        """Call `sbatch`, unless it was called and Slurm has the job."""
        was_tried = (pilot.path / _TRIED).exists()
        number = self._queue.number_of(pilot.job_name) if was_tried else ""
        if not number:
            pilot.write(_TRIED, "")
            try:
                printed = self._run(["sbatch", "--parsable", str(pilot.path / batch.SCRIPT)])
            except job_queue.SlurmRefusedError:
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
        remove_unused(str(pool))


def _entries(waiting: WaitingTrials) -> list[dict[str, object]]:
    """Return the entries of the trials that wait."""
    found = []
    for name in waiting.names():
        with contextlib.suppress(OSError):  # taken meanwhile
            found.append(read_entry(waiting.file(name)))
    return list(filter(None, found))
