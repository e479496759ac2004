"""Measure the manager with trials on many hosts: resident memory, and its own part of the time per trial.

    python benchmarks/manager_remote.py [--hosts 8] [--running 200] [--trials 1000] [--skip-memory]

Memory: a real manager with this many hosts of the SSH lab (network namespaces, needs root) and trials that run there.
Rate: trials that end at once on three backends in memory, so that what is measured is the manager alone: placing,
store, polling. Limits: 120 MB with 8 hosts and 200 running trials; 10 trials/s.
"""

from __future__ import annotations

import argparse
import select
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from jupyter_autotrain import manager
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.backend import BackendContext, Chunk, Cursor, JobRef, JobStatus, Probe
from jupyter_autotrain.core.capabilities import Capabilities, PollInterval
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Placement, Resources, TrialSpec
from jupyter_autotrain.manager.context import Clocks, Factories, ManagerContext, Threads
from jupyter_autotrain.manager.jobs.events import EventQueue
from jupyter_autotrain.manager.manager import Manager
from jupyter_autotrain.store import Store
from jupyter_autotrain.testing import write_bundle
from tests.labs import ssh_lab

LIMIT_BYTES, LIMIT_PER_S = 120e6, 10.0
MOST_SLOTS = 20.0
METRICS = b'["v", 1]\n' + b"".join(b'["m", %d, 1.0, {"acc": 0.5}]\n' % step for step in range(10))
WAITS = "import time\nreport(alive=1)\nwhile not should_stop():\n    time.sleep(2)\n"


class InstantBackend:
    """A backend in memory, whose trials have ended and reported when they are first asked for."""

    capabilities = Capabilities(shares_home=True, limits_cpu=True)
    poll_interval = PollInterval(least_s=0.02, most_s=0.5)

    def __init__(self, profile: Profile, slots: float) -> None:
        self.name = profile.name
        self._slots = slots

    def probe(self) -> Probe:
        """Usable."""
        return Probe(usable=True, reason="in memory")

    def discover(self) -> Inventory:
        """One node."""
        return Inventory((Node(self.name, self._slots, 8 << 30),))

    def submit(self, trial: TrialSpec, _placement: Placement, _secrets: Mapping[str, str]) -> JobRef:
        """Nothing is started."""
        return JobRef(self.name, trial.job_id)

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        """All have ended."""
        return [JobStatus(ref, TrialState.SUCCEEDED) for ref in refs]

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        """Ten reports each."""
        return [Chunk(one, METRICS[one.offset :] if one.stream == "metrics" else b"") for one in cursors]


def choices(names: Sequence[str]) -> tuple[BackendChoice, ...]:
    """Backends of these names."""
    return tuple(BackendChoice(Profile(name, "instant")) for name in names)


def rate(home: Home, trials: int, concurrency: int) -> tuple[float, float]:
    """Run trials over three backends in memory; gives trials per second and CPU milliseconds per trial."""
    with Store.open(home) as store:

        def create(profile: Profile, _context: BackendContext) -> InstantBackend:
            return InstantBackend(profile, min(concurrency / 3, MOST_SLOTS))

        factories = Factories(create, lambda _spec: None, lambda _spec: None)  # type: ignore[arg-type,return-value]  # no tuner is asked
        context = ManagerContext(home, store, Clocks(time.time, time.monotonic, time.sleep), factories)
        queue = EventQueue()
        serving = Manager(context, queue, Threads(lambda: ThreadPoolExecutor(32), ThreadPoolExecutor(2)))
        spec = ExperimentSpec(
            "rate",
            Bundle(),
            backends=choices(("a", "b", "c")),
            objective=Objective("acc"),
            trials=trials,
            concurrency=concurrency,
            resources=Resources(cpus=1.0),
        )
        store.add_experiment("rate", spec, time.time())
        begun_s, cpu_s = time.perf_counter(), time.process_time()
        serving.step((), read_store=True)
        while not serving.is_idle:
            queue_has_news(queue)
            serving.step((), read_store=False)
        seconds = time.perf_counter() - begun_s
        assert all(trial.state is TrialState.SUCCEEDED for trial in store.trials("rate"))
        return trials / seconds, 1e3 * (time.process_time() - cpu_s) / trials


def queue_has_news(queue: EventQueue) -> None:
    """Wait for the next event, as the manager's event loop does."""
    select.select([queue.fileno()], [], [], 0.4)


def memory_bytes(home: Home, lab: ssh_lab.SshLab, running: int) -> tuple[float, float]:
    """Resident memory of a real manager with all its trials running, in bytes; and its CPU use then, in percent."""
    hosts = [host.name for host in lab.hosts]
    bundle = write_bundle(home.bundle("many"), WAITS)
    options = {"hosts": hosts, "config_file": str(lab.config), "python": sys.executable}
    choice = BackendChoice(Profile("lab", "ssh", options))  # type: ignore[arg-type]  # the options are JSON
    with Store.open(home) as store:
        spec = ExperimentSpec("many", bundle, backends=(choice,), trials=running, concurrency=running)
        store.add_experiment("many", spec, time.time())
        process = psutil.Process(manager.ensure(home).pid)
        manager.notify(home)
        while len(store.points("many")) < running:
            time.sleep(0.5)
        process.cpu_percent()
        time.sleep(10.0)
        percent = process.cpu_percent()
        resident = float(process.memory_info().rss)
        process.kill()
        return resident, percent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--running", type=int, default=200)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--skip-memory", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="remote-") as folder:
        for concurrency in (30, 300):  # the second with four of five that wait
            per_s, cpu_ms = rate(Home(Path(folder) / f"rate{concurrency}"), options.trials, concurrency)
            print(
                f"{options.trials} trivial trials, 3 backends, concurrency {concurrency}: {per_s:7.1f} trials/s, "
                f"limit {LIMIT_PER_S:g}: {LIMIT_PER_S / per_s:.2f}; CPU {cpu_ms:.1f} ms per trial"
            )
        reason = "left out" if options.skip_memory else ssh_lab.missing()
        if reason:
            print(f"memory: {reason}")
            return
        (Path(folder) / "lab").mkdir()
        lab = ssh_lab.SshLab(Path(folder) / "lab", options.hosts)
        try:
            with lab.inside():
                resident, percent = memory_bytes(Home(Path(folder) / "memory"), lab, options.running)
        finally:
            lab.close()
        share = resident / LIMIT_BYTES
        print(
            f"manager, {options.hosts} hosts, {options.running} running trials: {resident / 1e6:.1f} MB resident, "
            f"limit {LIMIT_BYTES / 1e6:g} MB: {share:.2f}; CPU {percent:.1f} %"
        )


if __name__ == "__main__":
    main()
