"""The tests of trials on several nodes that each double of a service passes."""

from __future__ import annotations

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.backend import Backend, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import NodesContract
from jupyter_autotrain.testing.harness import WAITS
from tests.labs.service_double import ServiceDouble


class SeveralNodes(NodesContract):
    """The contract, and a worker that is lost.

    Attributes:
        double: The service.
    """

    double: ServiceDouble

    def kill_worker(self, ref: JobRef, number: int) -> None:
        """Kill a worker, as with its node."""
        (job_id,) = self.double.ids(str(ref.data["name"]))
        self.double.runner.jobs[job_id].workers[number].kill()

    def test_a_lost_worker_ends_the_trial_and_is_named(self, backend: Backend, home: Home) -> None:
        ref = self.start_on_nodes(backend, home, WAITS)
        self.all_begun(backend, ref)
        self.kill_worker(ref, 1)
        end = self.finish(backend, ref)
        assert end.state is TrialState.LOST
        assert "node 1" in end.reason


del NodesContract
