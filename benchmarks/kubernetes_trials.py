"""Trials on Kubernetes: trials per minute, submit to object, memory with 500 live pods, requests, rendering.

    python benchmarks/kubernetes_trials.py [--trials N] [--pods N] [--skip-memory]

The cluster is the double of the tests, in network namespaces of this machine (needs root): its API server is in this
process, its two nodes run the pods as processes, so all of them share the machine's cores. Everything goes through a
real manager, but rendering, which needs no cluster. Limits: 200 trials per minute with two nodes of four slots, 50 ms
from submit to the object, 60 MB more in the manager with 500 live pods, 2 requests per trial besides watches, 1 s for
1,000 manifests.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import psutil

from jupyter_autotrain import manager
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.trial_program import TrialProgram
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import JobWorkload
from jupyter_autotrain.client.submitting import submit
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.testing.bundles import trial_of, wait_until
from tests.labs.kubernetes import cluster
from tests.labs.kubernetes.lab_node import NodeOptions
from tests.labs.kubernetes.objects.resources import JOBS, PODS, Resource

CELL = "for step in range(11):\n    report(step=step, acc=0.5)\n"
LIMIT_PER_MIN, LIMIT_OBJECT_S, LIMIT_MEMORY_BYTES, LIMIT_REQUESTS, LIMIT_RENDER_S = 200.0, 0.05, 60e6, 2.0, 1.0
SINGLE = 11
RENDERED = 1000
SLOTS = 8
_OF_EACH = (("create", "jobs"), ("get", "pods/log"))  # requests that every trial makes
SLEEPING = "sleeping:1"  # an image whose program does nothing


def line(what: str, value: float, unit: str, limit: float) -> None:
    """Print one figure beside its limit."""
    print(f"{what:<48}{value:9.3f} {unit:<12} limit {limit:g}: {value / limit:.2f}", flush=True)


def profile(lab: cluster.KubernetesLab, **more: str) -> dict[str, object]:
    """Return a header's `backend:` for the cluster."""
    return {"type": "kubernetes", "kubeconfig": str(lab.kubeconfig), **more}


class FirstObjects:
    """When each Job was made."""

    def __init__(self, lab: cluster.KubernetesLab) -> None:
        self.times: list[float] = []
        lab.store.subscribe(self._hear)

    def _hear(self, event_type: str, resource: Resource, found: Mapping[str, object]) -> None:
        del found
        if event_type == "ADDED" and resource.key == JOBS.key:
            self.times.append(time.perf_counter())


def submit_to_object_s(lab: cluster.KubernetesLab, home: Home) -> float:
    """From `submit` in the notebook's process until the Job is stored; the first, which ships the code, is left out."""
    objects = FirstObjects(lab)
    taken = []
    for _ in range(SINGLE + 1):
        begun = time.perf_counter()
        experiment = submit(CELL, home=home, name="single", backend=profile(lab))
        experiment.wait()
        taken.append(objects.times[-1] - begun)
    return statistics.median(taken[1:])


def cpu_s(process: psutil.Process) -> float:
    """Return the CPU time that a process has taken, with its children that have ended, and with those that go on."""
    times = process.cpu_times()
    own = times.user + times.system + times.children_user + times.children_system
    return float(own) + sum(cpu_s(child) for child in process.children())


def trials_per_min(lab: cluster.KubernetesLab, home: Home, trials: int) -> tuple[float, float, float]:
    """Many trials over all slots: trials per minute, requests of each of them, and requests that several share."""
    before = Counter(lab.api.requests)
    processes = {
        "manager": psutil.Process(manager.ensure(home).pid),
        "pods": psutil.Process(),
    }
    own_before = time.process_time()
    used_before = {name: cpu_s(process) for name, process in processes.items()}
    begun = time.perf_counter()
    experiment = submit(CELL, home=home, name="many", backend=profile(lab), trials=trials, concurrency=SLOTS)
    experiment.wait()
    elapsed_s = time.perf_counter() - begun
    used = {name: cpu_s(process) - used_before[name] for name, process in processes.items()}
    double_s = time.process_time() - own_before
    parts = {"manager": used["manager"], "double": double_s, "pods": used["pods"] - double_s}
    shares = ", ".join(f"{name} {taken * 1000 / trials:.0f} ms" for name, taken in parts.items())
    total_s = sum(parts.values())
    cores = os.cpu_count() or 1
    print(
        f"CPU time of a trial: {shares}; {total_s / cores / trials * 1000:.0f} ms on {cores} cores, if nobody else",
        end="",
    )
    print(f" uses them: {cores * 60 * trials / total_s:.0f} trials/min")
    assert all(trial.state is TrialState.SUCCEEDED for trial in experiment.trials)
    made = Counter(lab.api.requests) - before
    for (verb, resource), count in sorted(made.items()):
        print(f"    {count:6} {verb} {resource}")
    own = sum(made[each] for each in _OF_EACH)
    shared = sum(
        count for (verb, resource), count in made.items() if verb != "watch" and (verb, resource) not in _OF_EACH
    )
    return trials / elapsed_s * 60, own / trials, shared / trials


def memory_bytes(lab: cluster.KubernetesLab, home: Home, pods: int) -> float:
    """Return how much more the manager has with many live pods than with one trial here; the pods only sleep."""
    ended = threading.Event()
    lab.images.programs[SLEEPING] = lambda _pod, _container, _folders: int(not ended.wait(600))
    process = psutil.Process(manager.ensure(home).pid)
    submit(CELL, home=home, name="here").wait()
    before = process.memory_info().rss
    submit(CELL, home=home, name="live", backend=profile(lab, image=SLEEPING), trials=pods, concurrency=pods)

    def live() -> int:
        return sum(pod.get("status", {}).get("phase") == "Running" for pod in lab.loop.objects(PODS))

    wait_until(lambda: live() == pods, f"{pods} live pods", within_s=300)
    time.sleep(5)  # the manager follows all of them by now
    more = process.memory_info().rss - before
    ended.set()
    return more


def rendering_s(home: Home) -> tuple[float, float]:
    """Manifests of many trials as they are sent; the second: of one as YAML, for people."""
    options: JsonObject = {"namespace": "lab", "image": "python:3.12"}
    trials = [trial_of(home, CELL, number=number) for number in range(1, RENDERED + 1)]
    begun = time.perf_counter()
    for trial in trials:
        TrialProgram(trial, options, JobWorkload(), "home", "lab", {}).manifests()
    sent_s = time.perf_counter() - begun
    backend = KubernetesBackend(Profile("cluster", "kubernetes", options), BackendContext(home))
    backend.render(trials[0], Placement())
    begun = time.perf_counter()
    backend.render(trials[1], Placement())
    return sent_s, time.perf_counter() - begun


def measure_cluster(folder: Path, trials: int) -> None:
    """Measure with two nodes of four slots."""
    (folder / "lab").mkdir()
    lab = cluster.KubernetesLab(folder / "lab", options=NodeOptions(cpus=4))
    home = Home(folder / "home")
    pid = manager.ensure(home).pid
    try:
        line("submit to object created", submit_to_object_s(lab, home), "s", LIMIT_OBJECT_S)
        rate, own, shared = trials_per_min(lab, home, trials)
        line(f"{trials} trials, 2 nodes of 4 slots", rate, "trials/min", LIMIT_PER_MIN)
        line("requests of each trial besides watches", own, "requests", LIMIT_REQUESTS)
        print(f"requests that many trials share, by trial: {shared:.3f}")
    finally:
        os.kill(pid, signal.SIGTERM)
        lab.close()


def measure_memory(folder: Path, pods: int) -> None:
    """Measure with many pods."""
    (folder / "large").mkdir()
    lab = cluster.KubernetesLab(folder / "large", options=NodeOptions(cpus=pods, pods=pods, memory="4Ti"))
    home = Home(folder / "large-home")
    pid = manager.ensure(home).pid
    try:
        line(f"more in the manager with {pods} live pods", memory_bytes(lab, home, pods), "bytes", LIMIT_MEMORY_BYTES)
    finally:
        os.kill(pid, signal.SIGTERM)
        lab.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--skip-memory", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kubernetes-") as name:
        folder = Path(name)
        sent_s, yaml_s = rendering_s(Home(folder / "rendering"))
        line(f"{RENDERED} manifests rendered, as they are sent", sent_s, "s", LIMIT_RENDER_S)
        print(f"one as YAML, for people: {yaml_s * 1000:.0f} ms")
        if reason := cluster.missing():
            print(f"skipped: {reason}")
            return
        measure_cluster(folder, options.trials)
        if not options.skip_memory:
            measure_memory(folder, options.pods)
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores that cluster, manager and benchmark share")


if __name__ == "__main__":
    sys.exit(main())
