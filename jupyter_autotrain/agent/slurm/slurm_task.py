"""A task of a Slurm job: it becomes the supervisor of its trial on its node, in the foreground.

What Slurm decides (GPUs, nodes, its own variables) is added to the trial here. Of a trial on several nodes each node
runs one such task. That of node 0 leaves its address, a port and the token of the trial in the batch folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import time

from jupyter_autotrain.agent import environment, fields, files, wire
from jupyter_autotrain.agent.supervisor import supervisor_main
from jupyter_autotrain.agent.system import ports
from jupyter_autotrain.agent.trial import trial_file, trial_lock
from jupyter_autotrain.agent.trial.trial_file import Layout, TrialFile

_RENDEZVOUS_S = 300
_LOOK_AGAIN_S = 0.05
_GOOD = frozenset({"SUCCEEDED", "EARLY_STOPPED"})
_STREAM_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
NODES = "nodes"  # of a trial on several nodes: the directories of all nodes but the first


class SlurmTask:
    """The task itself, by its folder and its variables.

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
        self.token = ""  # of a trial on several nodes
        self.directory = f"{self.trial_directory}/{NODES}/{self.node}" if self.node else self.trial_directory

    def _number(self, name: str) -> int:
        text = self.environ.get(name, "")
        return int(text) if text.isdigit() else 0

    def prepare(self) -> TrialFile:
        """Make the trial directory ready for this run; return the trial."""
        trial = trial_file.of_json(files.read_json(self.batch, f"trial-{self.index}"))
        for name in wire.FOLDERS:
            os.makedirs(f"{self.directory}/{name}", mode=0o700, exist_ok=True)
        os.chdir(self.directory)
        if self.restart:
            self._begin_again(trial)
        trial["directory"] = self.directory
        if self.node:
            self._link_streams(max(1, fields.integer(trial.get("workers"), 1)))
        if self.nodes > 1:
            first, self.token = self._first()
            own: Layout = {"node_rank": self.node, "nodes": self.nodes, "has_one_user": True}
            trial["layout"] = {**own, "first": first, "wait_s": _RENDEZVOUS_S}
        trial["gpus"] = self._gpus(trial)
        trial["environment"] = self._variables(trial)
        trial_file.write(trial)
        return trial

    def _link_streams(self, workers: int) -> None:
        """Link the streams of this node's ranks into the trial directory, beside the others."""
        for rank in range(self.node * workers, (self.node + 1) * workers):
            for stream in wire.STREAMS:
                name = wire.stream_of_rank(stream, rank)
                os.close(os.open(f"{self.trial_directory}/{name}", _STREAM_FLAGS, 0o600))
                with contextlib.suppress(FileExistsError):  # made by an earlier run
                    os.link(f"{self.trial_directory}/{name}", name)

    def _begin_again(self, trial: TrialFile) -> None:
        """Go on from the job's own checkpoints, and write on in its streams: Slurm has put it back into the queue."""
        if os.listdir(f"{self.trial_directory}/{wire.CHECKPOINTS}"):
            trial["resume_from"] = f"{self.trial_directory}/{wire.CHECKPOINTS}"
        with contextlib.suppress(OSError, ValueError):
            status = fields.mapping(files.read_json(".", wire.STATUS_FILE))
            if status.get("state") not in _GOOD:
                os.replace(wire.STATUS_FILE, f"{wire.STATUS_FILE}-{self.restart}")

    def _gpus(self, trial: TrialFile) -> list[str]:
        """Return the devices that Slurm gave the job, as it names them."""
        visible = self.environ.get("CUDA_VISIBLE_DEVICES") or self.environ.get("ROCR_VISIBLE_DEVICES") or ""
        asked = fields.integer(fields.mapping(trial.get("resources")).get("gpus"), 0)
        return visible.split(",") if asked and visible else []

    def _variables(self, trial: TrialFile) -> dict[str, str]:
        """Return the trial's variables and Slurm's own.

        Where the profile has commands for a job to begin with, all that these have set is included.
        """
        given = {name: str(value) for name, value in fields.mapping(trial.get("environment")).items()}
        own = {name: value for name, value in self.environ.items() if name.startswith("SLURM")}
        if fields.mapping(trial.get("options")).get("setup"):
            return {**given, **self.environ}
        return {**environment.of_this_machine(self.environ), **given, **own}

    def _first(self) -> tuple[list[object], str]:
        """Return the address and the port of node 0, which writes them down in this run, and the trial's token."""
        name = f"first-{self.index}-{self.restart}"
        if self.node == 0:
            told = [os.uname().nodename, *ports.find_free(1, ""), secrets.token_hex(16)]
            wire.write_atomically(f"{self.batch}/{name}", json.dumps(told).encode())
        deadline_s = time.monotonic() + _RENDEZVOUS_S
        while time.monotonic() < deadline_s:
            with contextlib.suppress(OSError, ValueError):
                address, port, token = fields.sequence(files.read_json(self.batch, name))
                return [address, port], str(token)
            os.scandir(self.batch).close()  # has NFS look again
            time.sleep(_LOOK_AGAIN_S)
        sys.exit(f"Node 0 of the trial did not begin within {_RENDEZVOUS_S} s.")

    def take_secrets(self) -> dict[str, str]:
        """Return the secrets of this task; the first node removes the file, for all of them."""
        path = f"{self.batch}/secrets-{self.index}"
        try:
            found = fields.mapping(files.read_json(self.batch, os.path.basename(path)))
        except OSError:
            return {}
        return {name: str(value) for name, value in found.items()}

    def remove_secrets(self) -> None:
        """Remove the file of the secrets; every node has read it by now."""
        with contextlib.suppress(OSError):
            os.unlink(f"{self.batch}/secrets-{self.index}")

    def supervise(self) -> bool:
        """Supervise the trial to its end; return False when it went badly."""
        given = self.take_secrets()
        trial = self.prepare()
        if self.node == 0:
            self.remove_secrets()
        lock = trial_lock.acquire()
        if lock is None:  # it runs, or has ended: this is a second submission of it
            return True
        supervisor_main.supervise(trial, {**self.environ, **given, wire.TOKEN_VARIABLE: self.token}, lock)
        status = fields.mapping(files.read_json(".", wire.STATUS_FILE))
        return status.get("state") in _GOOD


def main(batch: str) -> None:
    """Supervise the trial of this task to its end; the exit code tells Slurm whether it went well."""
    os.umask(0o077)
    is_good = SlurmTask(batch, dict(os.environ)).supervise()
    sys.exit(0 if is_good else 1)
