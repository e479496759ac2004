"""The backend contract's part about trials on several nodes."""

from __future__ import annotations

import json

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.backend import Backend, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import NodePlacement, Placement, Resources
from jupyter_autotrain.testing.bundles import trial_of, wait_until
from jupyter_autotrain.testing.harness import WAITS, BackendHarness

_WITHIN_S = 240.0  # supervisors of all nodes have to meet


class NodesContract(BackendHarness):
    """The contract of every backend that runs a trial on several nodes."""

    def start_on_nodes(self, backend: Backend, home: Home, code: str, **spec: object) -> JobRef:
        """Submit a trial on two nodes, with one rank on each where `spec` has no `resources`."""
        resources = spec.pop("resources", Resources(nodes=2))
        assert backend.capabilities.multi_node
        trial = trial_of(home, code, resources=resources, **spec)  # type: ignore[arg-type] # by name
        names = [] if backend.capabilities.queues else [node.name for node in backend.discover().nodes]
        placement = Placement(tuple(map(NodePlacement, names[: trial.resources.nodes])))
        return backend.submit(trial, placement, dict.fromkeys(trial.secrets, "a-value-of-a-secret"))

    def of_rank(self, backend: Backend, ref: JobRef, rank: int) -> str:
        """Return what a rank has printed."""
        return self.read(backend, ref, wire.stream_of_rank(wire.STDOUT, rank)).decode()

    def all_begun(self, backend: Backend, ref: JobRef, ranks: int = 2) -> None:
        """Wait until all ranks have printed something."""
        wait_until(
            lambda: all(self.of_rank(backend, ref, rank) for rank in range(ranks)), "all ranks", within_s=_WITHIN_S
        )

    def test_ranks_of_two_nodes_know_each_other_and_report_together(self, backend: Backend, home: Home) -> None:
        code = """
            import os
            report(all_ranks=True, mean=float(rank))
            print("rank", rank, "of", world_size, "on node", os.environ["NODE_RANK"])
        """
        resources = Resources(nodes=2, workers_per_node=2)
        ref = self.start_on_nodes(backend, home, code, resources=resources)
        end = self.finish(backend, ref)
        assert (end.state, end.reason) == (TrialState.SUCCEEDED, ""), f"{end} {self.read(backend, ref, wire.STDERR)!r}"
        shown = [self.of_rank(backend, ref, rank) for rank in range(4)]
        assert shown == [f"rank {rank} of 4 on node {rank // 2}\n" for rank in range(4)]
        frames = [json.loads(line) for line in self.read(backend, ref, wire.METRICS).splitlines()]
        assert [frame[3] for frame in frames if frame[0] == "m"] == [{"mean": 1.5}]

    def test_secrets_reach_every_node(self, backend: Backend, home: Home) -> None:
        code = "import os\nprint(len(os.environ['API_KEY']))"
        ref = self.start_on_nodes(backend, home, code, secrets=("API_KEY",))
        assert self.finish(backend, ref).state is TrialState.SUCCEEDED
        assert [self.of_rank(backend, ref, rank) for rank in range(2)] == ["19\n", "19\n"]

    def test_a_node_that_fails_ends_the_trial_with_its_reason(self, backend: Backend, home: Home) -> None:
        code = f"if rank == 1:\n    raise ValueError('no data on this node')\n{WAITS}"
        end = self.finish(backend, self.start_on_nodes(backend, home, code))
        assert end.state is TrialState.FAILED
        assert "no data on this node" in end.reason

    def test_a_stop_comes_to_all_nodes_at_the_same_call(self, backend: Backend, home: Home) -> None:
        ref = self.start_on_nodes(backend, home, f"{WAITS}\nprint('stopped')")
        self.all_begun(backend, ref)
        backend.put(ref, wire.STOP_FILE, b"")
        assert self.finish(backend, ref).state is TrialState.EARLY_STOPPED
        assert [self.of_rank(backend, ref, rank) for rank in range(2)] == ["begun\nstopped\n"] * 2

    def test_a_cancel_ends_all_nodes(self, backend: Backend, home: Home) -> None:
        ref = self.start_on_nodes(backend, home, WAITS)
        self.all_begun(backend, ref)
        assert not backend.cancel(ref, 5.0).pids_left
        assert self.status(backend, ref).state is TrialState.CANCELLED
