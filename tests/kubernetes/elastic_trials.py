"""Trials that AdaptDL rescales, for tests."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptdlBackend
from jupyter_autotrain.backends.kubernetes.objects.naming import LABEL_HOME
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.testing import trial_of
from jupyter_autotrain.testing.bundles import wait_until
from tests.kubernetes.kubeconfigs import load_once
from tests.labs.kubernetes.adaptdl.controller import ADAPTDL_JOBS
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import PERSISTENT_VOLUME_CLAIMS, PODS, SECRETS

COUNTS = """
import os, time
start = checkpoint.load(default=-1)
replicas = os.environ["ADAPTDL_NUM_REPLICAS"]
print(f"group {os.environ['ADAPTDL_NUM_RESTARTS']} of {replicas} begins after step {start}", flush=True)
step = start
while step < 100_000:
    step += 1
    if rank == 0:
        report(step, replicas=int(replicas))
    if should_stop():
        checkpoint.save(step, step)
        break
    if os.path.exists("/autotrain/storage/end"):
        break
    time.sleep(0.02)
"""
HINTS = COUNTS.replace("step = start\n", "trial.hints(batch_size=8, max_batch_size=64)\nstep = start\n")


@contextlib.contextmanager
def backend(cluster: KubernetesLab, home: Home) -> Iterator[AdaptdlBackend]:
    options = {
        "kubeconfig": str(cluster.kubeconfig), "python": sys.executable, "checkpoint": {"size": 1 << 20},
        "min_replicas": 1,
    }  # fmt: skip
    made = AdaptdlBackend(Profile("cluster", "adaptdl", options), BackendContext(home), load_once)
    try:
        yield made
    finally:
        made.close()


class Trial:
    """A trial on the cluster."""

    def __init__(self, cluster: KubernetesLab, backend: AdaptdlBackend, ref: JobRef) -> None:
        self.cluster = cluster
        self.backend = backend
        self.ref = ref
        self.seen: set[TrialState] = set()

    @property
    def status(self) -> JobStatus:
        found = self.backend.poll([self.ref])[0]
        self.seen.add(found.state)
        return found

    def printed(self, stream: str = wire.STDOUT) -> str:
        return self.backend.read([Cursor(self.ref, stream, 0)])[0].data.decode()

    def points(self) -> list[tuple[int, int]]:
        frames = [json.loads(line) for line in self.printed(wire.METRICS).splitlines()]
        return [(frame[1], frame[3]["replicas"]) for frame in frames if frame[0] == "m"]

    def allocate(self, *nodes: str) -> None:
        """As AdaptDL's allocator does."""
        name = str(self.ref.data["name"])
        change = {"status": {"allocation": list(nodes)}}
        self.cluster.store.patch(ADAPTDL_JOBS, "default", name, change, subresource="status")

    def wait_for(self, text: str, within_s: float = 240.0) -> None:
        def has_come() -> bool:
            assert not self.status.state.is_final, self.status.reason
            return text in self.printed()

        wait_until(has_come, text, within_s=within_s)

    def end(self) -> None:
        """Have the cell come to its end, and wait for it."""
        for pod in self.cluster.store.list(PODS, "default", LABEL_HOME)[0]:
            process = self.cluster.access.exec(
                pod, "trial", ["touch", "/autotrain/storage/end"], stdin=0, stdout=1, stderr=2
            )
            assert process.wait(240) == 0
        wait_until(lambda: self.status.state.is_final, "the end")

    def left(self) -> list[str]:
        found = []
        for resource in (ADAPTDL_JOBS, PODS, SECRETS, PERSISTENT_VOLUME_CLAIMS):
            found += [item["metadata"]["name"] for item in self.cluster.store.list(resource, "default", LABEL_HOME)[0]]
        return found


def start(cluster: KubernetesLab, backend: AdaptdlBackend, home: Home, code: str, **spec: object) -> Trial:
    return Trial(cluster, backend, backend.submit(trial_of(home, code, **spec), Placement(), {}))  # type: ignore[arg-type] # by name
