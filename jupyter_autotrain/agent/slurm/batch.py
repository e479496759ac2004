"""A batch: the trials that one `sbatch` hands to Slurm, as one job or as one array; and its folder.

```
batches/ID/script       what `sbatch` gets
           tasks        the trial directory of each task, one a line
           trial-I      `trial.json` of task I, for each run of it
           secrets-I    the secrets of task I (mode 0600); its first run takes and removes them
           tried        there when `sbatch` was called
           output-I     what the script printed before the supervisor was there
```

`entries/DIGEST`, by the digest of a trial directory, says which task it is: {"batch", "index", "job"}; "job" as soon as
Slurm has given a number. For a trial that a pilot job runs {"batch", "index", "job": "", "pool", "name", "most"}, see
`pilots`. All of it goes when every trial of the batch has ended. Runs on the login node.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jupyter_autotrain.agent import fields, files, locks, wire

SCRIPT = "script"
TASKS = "tasks"
_LOCK = "submit.lock"
_TRIED = "tried"
_DIRECTIVE = "#SBATCH "
_ALWAYS = ("--job-name", "--output", "--open-mode", "--chdir", "--ntasks-per-node", "--no-requeue")
_MOST_OUTPUT_BYTES = 4096
Task = Mapping[str, Any]  # directory, trial, secrets, reuse: how many pilot jobs run such trials, 0: it is a job
Entry = Mapping[str, Any]  # what slurm.json holds


@contextlib.contextmanager
def submitting(root: Path) -> Iterator[None]:
    """Be the only process of this login node that submits; `root` is made where it is missing.

    Raises:
        OSError: It cannot be made, or be locked.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locks.alone(root / _LOCK, is_needed=True):
        yield


def entry_file(root: Path, directory: Path) -> Path:
    """Return the path of the entry of a trial."""
    return root / "entries" / hashlib.sha256(str(directory).encode()).hexdigest()[:32]


def read_entry(root: Path, directory: Path) -> Entry | None:
    """Return the entry of a trial; None when it was never handed to Slurm, or has ended.

    Raises:
        OSError, ValueError: It cannot be read.
    """
    path = entry_file(root, directory)
    try:
        found = files.read_json(path.parent, path.name)
    except OSError as error:
        if files.is_absent(error):
            return None
        raise
    if not isinstance(found, dict) or not isinstance(found.get("index"), int):
        raise ValueError(f"{path} is damaged")  # noqa: TRY004 - the file, not a type of ours
    return found


def fill_in(script: str, names: Mapping[str, str]) -> str:
    """Fill in the names that `job_script` leaves open in a script."""
    for name, value in names.items():
        script = script.replace(name, value)
    return script


class BatchFolder:
    """The folder of a batch.

    Args:
        root: The folder of everything of ours on the shared file system.
        name: The batch's id.
    """

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self._root = root
        self.path = root / "batches" / name

    @classmethod
    def new(cls, root: Path) -> BatchFolder:
        """Return a batch folder that does not exist yet."""
        return cls(root, secrets.token_hex(6))

    @property
    def job_name(self) -> str:
        """The name of its job in Slurm, by which it is found when the answer of `sbatch` got lost."""
        return f"autotrain-{self.name}"

    def fill(self, script: str, count: int) -> str:
        """Fill in the names of this batch in the script; only tasks of an array have a number."""
        script = fill_in(script, {"@JOB_NAME@": self.job_name, "@BATCH@": str(self.path)})
        return script if count > 1 else script.replace("/output-%a", "/output-0")

    def write(self, tasks: Sequence[Task], script: str, pool: str = "") -> None:
        """Write the files of the batch, then name it, and the pool if there is one, in the entry of each trial."""
        self.path.mkdir(mode=0o700, parents=True)
        for index, task in enumerate(tasks):
            self._write(f"trial-{index}", json.dumps(task["trial"]))
            if task["secrets"]:
                self._write(f"secrets-{index}", json.dumps(task["secrets"]))
        self._write(TASKS, "".join(f"{task['directory']}\n" for task in tasks))
        self._write(SCRIPT, script)
        for index, task in enumerate(tasks):
            directory = Path(task["directory"])
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            name = f"{time.time_ns():020d}-{self.name}-{index}"
            in_pool = {"pool": pool, "name": name, "most": task["reuse"]} if pool else {}
            self._write_entry(directory, index, "", in_pool)

    def _write_entry(self, directory: Path, index: int, job: str, in_pool: Mapping[str, object]) -> None:
        path = entry_file(self._root, directory)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        content = {"batch": self.name, "index": index, "job": job, **in_pool}
        wire.write_atomically(str(path), json.dumps(content).encode())

    def _write(self, name: str, text: str) -> None:
        wire.write_atomically(str(self.path / name), text.encode())

    def directories(self) -> list[Path]:
        """Return the trial directories of its tasks."""
        return list(map(Path, (self.path / TASKS).read_text(encoding="utf-8").splitlines()))

    @property
    def was_tried(self) -> bool:
        """True when `sbatch` was called, whatever came of it."""
        return (self.path / _TRIED).exists()

    def asked(self) -> str:
        """Return the options that its script gives `sbatch`, without those that are the same for all batches."""
        lines = (self.path / SCRIPT).read_text(encoding="utf-8").splitlines()
        options = [line.removeprefix(_DIRECTIVE) for line in lines if line.startswith(_DIRECTIVE)]
        return " ".join(option for option in options if not option.startswith(_ALWAYS))

    def mark_tried(self) -> None:
        """Write down that `sbatch` is about to be called."""
        self._write(_TRIED, "")

    def name_job(self, number: str) -> None:
        """Write the number that Slurm gave into each trial directory."""
        directories = self.directories()
        for index, directory in enumerate(directories):
            self._write_entry(directory, index, f"{number}_{index}" if len(directories) > 1 else number, {})

    def remove(self) -> None:
        """Remove everything of the batch: Slurm has refused it, or all of its trials have ended."""
        for directory in self.directories():
            entry_file(self._root, directory).unlink(missing_ok=True)
        shutil.rmtree(self.path, ignore_errors=True)

    def forget_secrets(self, index: int) -> None:
        """Remove the secrets of a task that does not begin any more."""
        with contextlib.suppress(OSError):
            os.unlink(self.path / f"secrets-{index}")

    def last_output(self, index: int) -> str:
        """Return the last line that the script of a task printed, for messages."""
        return last_line(self.path, f"output-{index}")

    def trial(self, index: int) -> Mapping[str, Any]:
        """Return the content of `trial.json` of a task.

        Raises:
            OSError, ValueError: It cannot be read.
        """
        return fields.mapping(files.read_json(self.path, f"trial-{index}"))

    def has_secrets(self, index: int) -> bool:
        """Tell whether the secrets of a task are still there, or it has none: its first run takes them."""
        return not self.trial(index).get("secrets") or (self.path / f"secrets-{index}").exists()


def last_line(folder: Path, name: str) -> str:
    """Return the last line of a job's output, for messages; "" where that is not known."""
    try:
        data = files.read(folder, name, _MOST_OUTPUT_BYTES, 0)
    except OSError:
        return ""
    lines = [line.strip() for line in data.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300].rstrip(".") if lines else ""
