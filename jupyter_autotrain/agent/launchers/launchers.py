"""The launchers: they start the ranks of a trial on a node, with the variables that tell each rank of the others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from jupyter_autotrain.agent import fields
from jupyter_autotrain.agent.environments import choice as environments
from jupyter_autotrain.agent.trial.rank_layout import RankLayout
from jupyter_autotrain.agent.wire import RANK_VARIABLE


class LaunchError(Exception):
    """An error of a launcher that cannot be used here; the text is a reason for users."""


class Launcher:
    """The launcher `env`: the supervisor starts each rank, with the variables that `torchrun` sets.

    Args:
        trial: `TrialSpec` as JSON.
        layout: The ranks.
    """

    starts_ranks = False  # true: another program does, with `command`
    is_elastic = False

    def __init__(self, trial: Mapping[str, object], layout: RankLayout) -> None:
        self.trial = trial
        self.layout = layout

    def variables(self, local_rank: int) -> dict[str, str]:
        """Return the variables that a rank gets besides the trial's environment."""
        layout = self.layout
        rank = str(layout.rank(local_rank))
        return {
            RANK_VARIABLE: rank,
            "RANK": rank,
            "LOCAL_RANK": str(local_rank),
            "WORLD_SIZE": str(layout.world_size),
            "LOCAL_WORLD_SIZE": str(layout.workers_per_node),
            "NODE_RANK": str(layout.node_rank),
            "GROUP_RANK": str(layout.node_rank),
            "MASTER_ADDR": layout.master_address,
            "MASTER_PORT": str(layout.master_port),
        }

    def adapt(self, environ: Mapping[str, str]) -> tuple[int, dict[str, str]]:
        """Return the local rank of a process that another program started, and the variables to be added to its own."""
        local_rank = int(environ["LOCAL_RANK"])
        return local_rank, self.variables(local_rank)

    def command(self, rank_command: Sequence[str]) -> list[str]:
        """Return the command that starts this node's ranks, each by `rank_command`, in the trial's environment."""
        raise NotImplementedError

    def prepare(self, rank_command: Sequence[str]) -> None:
        """Make the files that the program of `command` needs on this machine.

        Raises:
            LaunchError: It cannot be made.
        """

    def additions(self) -> dict[str, str]:
        """Return the variables of the program of `command`."""
        return {}

    def remove_leftovers(self, since_s: float) -> None:
        """Remove leftovers on this machine since then of ranks that could not end in order."""


class TensorflowLauncher(Launcher):
    """The launcher `tensorflow`: as `env`, and the cluster for `MultiWorkerMirroredStrategy`."""

    def variables(self, local_rank: int) -> dict[str, str]:
        """Return the variables of `env`, and `TF_CONFIG`."""
        task = {"type": "worker", "index": self.layout.rank(local_rank)}
        config = {"cluster": {"worker": self.layout.rank_endpoints()}, "task": task}
        return super().variables(local_rank) | {"TF_CONFIG": json.dumps(config)}


class PaddleLauncher(Launcher):
    """The launcher `paddle`: as `env`, and the variables that `paddle.distributed.launch` sets."""

    def variables(self, local_rank: int) -> dict[str, str]:
        """Return the variables of `env` and those of PaddlePaddle; with GPUs each rank selects its own."""
        layout = self.layout
        rank = layout.rank(local_rank)
        endpoints = layout.rank_endpoints()
        size = str(layout.world_size)
        found = super().variables(local_rank) | {
            "PADDLE_MASTER": layout.master_endpoint,
            "PADDLE_GLOBAL_SIZE": size,
            "PADDLE_LOCAL_SIZE": str(layout.workers_per_node),
            "PADDLE_GLOBAL_RANK": str(rank),
            "PADDLE_LOCAL_RANK": str(local_rank),
            "PADDLE_NNODES": str(layout.nodes),
            "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
            "PADDLE_CURRENT_ENDPOINT": endpoints[rank],
            "PADDLE_TRAINER_ID": str(rank),
            "PADDLE_TRAINERS_NUM": size,
            "PADDLE_RANK_IN_NODE": str(local_rank),
        }
        gpus = fields.strings(self.trial.get("gpus"))
        share = len(gpus) // layout.workers_per_node
        if not share:
            return found | {"PADDLE_DISTRI_BACKEND": "gloo"}
        own = range(local_rank * share, (local_rank + 1) * share)
        return found | {"FLAGS_selected_gpus": ",".join(map(str, own))}


# `torchrun`: PyTorch's elastic agent starts the ranks of a node, and starts them again. The agents meet at the first
# node, which the trial cannot lose. There each trial has a rendezvous and a port of its own. Its ranks follow the order
# of the nodes' addresses. Where a backend gives the nodes in another order, as Slurm does that counts n2 before n10,
# each agent is told its rank instead, which an elastic trial cannot be.


_RESTARTS = 3  # of all ranks after one has failed, in an elastic trial
_LAST_CALL_S = 5  # how long a smaller group waits for the others before it begins
_HEARTBEAT_S = 2  # a node that is silent three times as long is lost


class TorchrunLauncher(Launcher):
    """The launcher `torchrun`, with one agent per node."""

    starts_ranks = True

    def __init__(self, trial: Mapping[str, object], layout: RankLayout) -> None:
        super().__init__(trial, layout)
        self.is_elastic = trial.get("elastic") is True

    def command(self, rank_command: Sequence[str]) -> list[str]:
        """Return the agent's command."""
        layout = self.layout
        trial = self.trial
        nodes = f"1:{layout.nodes}" if self.is_elastic and layout.nodes > 1 else str(layout.nodes)
        command = [
            str(trial["python"]), "-m", "torch.distributed.run", f"--nnodes={nodes}",
            f"--nproc-per-node={layout.workers_per_node}", *self._rendezvous(),
            f"--rdzv-endpoint={layout.master_endpoint}", f"--rdzv-id={_job(trial)}",
            f"--local-addr={layout.address}", "--monitor-interval=0.1",
            f"--max-restarts={_RESTARTS if self.is_elastic else 0}", "--no-python", *rank_command,
        ]  # fmt: skip
        return environments.launcher_command(trial, command)

    def _rendezvous(self) -> list[str]:
        layout = self.layout
        addresses = [address for address, _ in layout.endpoints]
        if not self.is_elastic and addresses != sorted(set(addresses)):
            return ["--rdzv-backend=static", f"--node-rank={layout.node_rank}"]
        is_host = int(layout.node_rank == 0)
        times = f"last_call_timeout={_LAST_CALL_S},keep_alive_interval={_HEARTBEAT_S}"
        return ["--rdzv-backend=c10d", f"--rdzv-conf=is_host={is_host},{times}"]

    def additions(self) -> dict[str, str]:
        """Return the variable without which a late agent waits for a key that none writes any more (torch 2.13)."""
        return {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}

    def adapt(self, environ: Mapping[str, str]) -> tuple[int, dict[str, str]]:
        """Return the local rank and its missing variables, as the agent has set nearly all.

        After the loss of a node the agent's ranks differ from those of the layout.
        """
        local_rank = int(environ["LOCAL_RANK"])
        own = self.variables(local_rank)
        kept = {name: value for name, value in own.items() if name not in environ}
        return local_rank, kept | {"NODE_RANK": environ["GROUP_RANK"]}


def _job(trial: Mapping[str, object]) -> str:
    return f"{trial.get('experiment_id')}-{trial.get('number')}-{trial.get('attempt')}"
