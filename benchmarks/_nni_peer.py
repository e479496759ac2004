"""The same load on NNI 3.0: run by an interpreter that has it, prints one JSON object.

    PEER_PYTHON benchmarks/_nni_peer.py SLOTS TRIALS [--hosts ADDRESS ... --key FILE --manager ADDRESS [--reuse]]

The times are those of NNI's own database: from a trial's first event to its first metric, from the first trial's
first event to the last one's end, and from the call that starts the experiment to the first metric of all. With hosts,
its remote service runs there: as root, with this interpreter, and they must reach its manager at the address.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path

TRIAL = """
import nni
x = nni.get_next_parameter()["x"]
for step in range(10):
    nni.report_intermediate_result(x)
nni.report_final_result(x)
"""


def machines(arguments: argparse.Namespace) -> list[object]:
    """Return the hosts, as NNI is told of them."""
    from nni.experiment import RemoteMachineConfig  # the peer is installed elsewhere

    return [
        RemoteMachineConfig(
            host=host, user="root", ssh_key_file=arguments.key, python_path=str(Path(sys.executable).parent)
        )
        for host in arguments.hosts
    ]


def run(arguments: argparse.Namespace, folder: Path) -> Path:
    """Run an experiment to its end; gives its database."""
    from nni.experiment import Experiment  # the peer is installed elsewhere

    (folder / "code").mkdir()
    (folder / "code" / "trial.py").write_text(TRIAL)
    experiment = Experiment("remote" if arguments.hosts else "local")
    config = experiment.config
    config.experiment_working_directory = str(folder / "experiments")
    config.search_space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    config.tuner.name = "Random"
    config.trial_code_directory = str(folder / "code")
    config.trial_command = f"{sys.executable} trial.py"
    config.trial_concurrency, config.max_trial_number = arguments.slots, arguments.trials
    config.training_service.reuse_mode = arguments.reuse
    if arguments.hosts:
        config.nni_manager_ip = arguments.manager
        config.training_service.machine_list = machines(arguments)
    experiment.start(port=18080 + arguments.slots)
    try:
        while experiment.get_status() not in {"DONE", "ERROR", "STOPPED"}:
            time.sleep(0.2)
        return folder / "experiments" / experiment.id / "db" / "nni.sqlite"
    finally:
        experiment.stop()


def figures(database: Path, started_s: float) -> dict[str, float]:
    """Return what an experiment's database tells."""
    connection = sqlite3.connect(database)
    begun = dict(connection.execute("SELECT trialJobId, min(timestamp) FROM TrialJobEvent GROUP BY trialJobId"))
    ended = connection.execute("SELECT max(timestamp) FROM TrialJobEvent WHERE event = 'SUCCEEDED'").fetchone()[0]
    first = dict(connection.execute("SELECT trialJobId, min(timestamp) FROM MetricData GROUP BY trialJobId"))
    connection.close()
    waits_s = [(first[trial] - begun[trial]) / 1000 for trial in first]
    return {
        "start_to_metric_s": min(first.values()) / 1000 - started_s,
        "first_metric_s": statistics.median(waits_s),
        "trials_per_min": 60_000 * len(first) / (ended - min(begun.values())),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("slots", type=int)
    parser.add_argument("trials", type=int)
    parser.add_argument("--hosts", nargs="*", default=[])
    parser.add_argument("--key")
    parser.add_argument("--manager")
    parser.add_argument("--reuse", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="peer-") as name:
        started_s = time.time()
        print(json.dumps(figures(run(arguments, Path(name)), started_s)))


if __name__ == "__main__":
    main()
