"""A task of a Slurm job: it becomes the supervisor of its trial on its node, in the foreground.

What Slurm decides (GPUs, nodes, its own variables) is added to the trial here. Of a trial on several nodes each node
runs one such task, and each leaves its address for the others in the batch folder.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import sys
import time

from jupyter_autotrain.core import environment, files, wire
from jupyter_autotrain.worker import fields, ports, supervisor_main, trial_lock

_RENDEZVOUS_S = 300.0
_LOOK_AGAIN_S = 0.05
_GOOD = frozenset({"SUCCEEDED", "EARLY_STOPPED"})
_STREAM_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
NODES = "nodes"  # of a trial on several nodes: the directories of all nodes but the first


class SlurmTask:
    """What a task knows of itself.

    Args:
        batch: The folder of its batch.
        environ: The variables that Slurm gave it.
        index: Which trial of the batch; None: Slurm tells.
    """

    def __init__(self, batch: str, environ: dict[str, str], index: int | None = None) -> None:
        self.batch = batch
        self.environ = environ
        self.index = self._number("SLURM_ARRAY_TASK_ID") if index is None else index
        self.restart = self._number("SLURM_RESTART_COUNT")
        self.node = self._number("SLURM_NODEID") if "SLURM_STEP_ID" in environ else 0
        self.nodes = self._number("SLURM_STEP_NUM_NODES") or 1
        with open(f"{batch}/tasks", encoding="utf-8") as file:
            self.trial_directory = file.read().splitlines()[self.index]
        self.directory = f"{self.trial_directory}/{NODES}/{self.node}" if self.node else self.trial_directory

    def _number(self, name: str) -> int:
        text = self.environ.get(name, "")
        return int(text) if text.isdigit() else 0

    def prepare(self) -> dict[str, object]:
        """Make the trial directory ready for this run; gives the trial."""
        trial = dict(fields.mapping(files.read_json(self.batch, f"trial-{self.index}")))
        for name in wire.FOLDERS:
            os.makedirs(f"{self.directory}/{name}", mode=0o700, exist_ok=True)
        os.chdir(self.directory)
        if self.restart:
            self._begin_again(trial)
        trial["directory"] = self.directory
        if self.node:
            self._link_streams(max(1, fields.integer(trial.get("workers"), 1)))
        if self.nodes > 1:
            self._forget_earlier_run()
            shared = "" if trial.get("elastic") else self.trial_directory
            endpoints = self._endpoints(trial)
            trial["layout"] = {"node_rank": self.node, "endpoints": endpoints, "shared_directory": shared}
        trial["gpus"] = self._gpus(trial)
        trial["environment"] = self._variables(trial)
        wire.write_atomically(wire.TRIAL_FILE, json.dumps(trial).encode(), sync=False)
        return trial

    def _link_streams(self, workers: int) -> None:
        """Have what the ranks of this node print and report appear in the trial directory, beside the others."""
        for rank in range(self.node * workers, (self.node + 1) * workers):
            for stream in wire.STREAMS:
                name = wire.stream_of_rank(stream, rank)
                os.close(os.open(f"{self.trial_directory}/{name}", _STREAM_FLAGS, 0o600))
                with contextlib.suppress(FileExistsError):  # made by an earlier run
                    os.link(f"{self.trial_directory}/{name}", name)
        partials = wire.stream_of_rank(wire.PARTIALS, self.node)
        for path in (partials, f"{self.trial_directory}/{partials}"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)  # an earlier run has written its end
        os.close(os.open(f"{self.trial_directory}/{partials}", _STREAM_FLAGS, 0o600))
        os.link(f"{self.trial_directory}/{partials}", partials)

    def _forget_earlier_run(self) -> None:
        """What its nodes have said to each other is of no use; a request to stop is put into the trial directory."""
        if self.node == 0:
            for path in glob.glob(f"{glob.escape(self.trial_directory)}/{wire.LAUNCH_FILE}-*"):
                os.unlink(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.trial_directory}/{wire.STOP_REACHED_FILE}-{self.node}")
        if self.node:
            with contextlib.suppress(FileExistsError):
                os.symlink(f"{self.trial_directory}/{wire.STOP_FILE}", wire.STOP_FILE)

    def _begin_again(self, trial: dict[str, object]) -> None:
        """Slurm has put the job back into the queue: go on from its own checkpoints, and write on in its streams."""
        if os.listdir(f"{self.trial_directory}/{wire.CHECKPOINTS}"):
            trial["resume_from"] = f"{self.trial_directory}/{wire.CHECKPOINTS}"
        with contextlib.suppress(OSError, ValueError):
            status = fields.mapping(files.read_json(".", wire.STATUS_FILE))
            if status.get("state") not in _GOOD:
                os.replace(wire.STATUS_FILE, f"{wire.STATUS_FILE}-{self.restart}")

    def _gpus(self, trial: dict[str, object]) -> list[str]:
        """The devices that Slurm gave the job, as it names them."""
        visible = self.environ.get("CUDA_VISIBLE_DEVICES") or self.environ.get("ROCR_VISIBLE_DEVICES") or ""
        asked = fields.integer(fields.mapping(trial.get("resources")).get("gpus"), 0)
        return visible.split(",") if asked and visible else []

    def _variables(self, trial: dict[str, object]) -> dict[str, str]:
        """The trial's and Slurm's own; where the profile has commands for a job to begin with, what these have set."""
        given = {name: str(value) for name, value in fields.mapping(trial.get("environment")).items()}
        own = {name: value for name, value in self.environ.items() if name.startswith("SLURM")}
        if fields.mapping(trial.get("options")).get("setup"):
            return {**given, **self.environ}
        return {**environment.of_this_machine(self.environ), **given, **own}

    def _endpoints(self, trial: dict[str, object]) -> list[object]:
        """Of each node its address and free ports, in the order of the nodes."""
        count = max(1, fields.integer(trial.get("workers"), 1)) + 1
        own = [os.uname().nodename, ports.find_free(count, "")]
        wire.write_atomically(self._endpoint_file(self.node), json.dumps(own).encode())
        deadline_s = time.monotonic() + _RENDEZVOUS_S
        found: list[object] = []
        while len(found) < self.nodes:
            with contextlib.suppress(OSError, ValueError):
                found.append(files.read_json(self.batch, os.path.basename(self._endpoint_file(len(found)))))
                continue
            if time.monotonic() > deadline_s:
                sys.exit(f"Node {len(found)} of the trial did not begin within {_RENDEZVOUS_S:g} s.")
            os.scandir(self.batch).close()  # has NFS look again
            time.sleep(_LOOK_AGAIN_S)
        return found

    def _endpoint_file(self, node: int) -> str:
        return f"{self.batch}/endpoint-{self.index}-{self.restart}-{node}"

    def take_secrets(self) -> dict[str, str]:
        """The secrets of this task; the first node removes the file, for all of them."""
        path = f"{self.batch}/secrets-{self.index}"
        try:
            secrets = fields.mapping(files.read_json(self.batch, os.path.basename(path)))
        except OSError:
            return {}
        return {name: str(value) for name, value in secrets.items()}

    def remove_secrets(self) -> None:
        """Remove their file; every node has read it by now."""
        with contextlib.suppress(OSError):
            os.unlink(f"{self.batch}/secrets-{self.index}")

    def supervise(self) -> bool:
        """Supervise the trial to its end; False when it went badly."""
        secrets = self.take_secrets()
        trial = self.prepare()
        if self.node == 0:
            self.remove_secrets()
        lock = trial_lock.acquire()
        if lock is None:  # it runs, or has ended: this is a second submission of it
            return True
        supervisor_main.supervise(trial, {**self.environ, **secrets}, lock)
        status = fields.mapping(files.read_json(".", wire.STATUS_FILE))
        return status.get("state") in _GOOD


def main(batch: str) -> None:
    """Supervise the trial of this task to its end; the exit code tells Slurm whether it went well."""
    os.umask(0o077)
    is_good = SlurmTask(batch, dict(os.environ)).supervise()
    sys.exit(0 if is_good else 1)
