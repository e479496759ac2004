"""The launcher `torchrun`: PyTorch's elastic agent starts the ranks of a node, and starts them again.

The agents meet at the first node, which the trial cannot lose. There each trial has a rendezvous and a port of its own.
Its ranks follow the order of the nodes' addresses. Where a backend gives the nodes in another order, as Slurm does that
counts n2 before n10, each agent is told its rank instead, which an elastic trial cannot be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jupyter_autotrain.agent.environments import choice as environments
from jupyter_autotrain.agent.launchers.launchers import Launcher
from jupyter_autotrain.agent.trial.rank_layout import RankLayout

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
