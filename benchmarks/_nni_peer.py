"""The same load on NNI 3.0: run by an interpreter that has it, prints one JSON object.

    PEER_PYTHON benchmarks/_nni_peer.py SLOTS TRIALS

The times are those of NNI's own database: from a trial's first event to its first metric, and from the first trial's
first event to the last one's end.
"""

from __future__ import annotations

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


def run(slots: int, trials: int, folder: Path) -> Path:
    """Run an experiment to its end; gives its database."""
    from nni.experiment import Experiment  # the peer is installed elsewhere

    (folder / "code").mkdir()
    (folder / "code" / "trial.py").write_text(TRIAL)
    experiment = Experiment("local")
    config = experiment.config
    config.experiment_working_directory = str(folder / "experiments")
    config.search_space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    config.tuner.name = "Random"
    config.trial_code_directory = str(folder / "code")
    config.trial_command = f"{sys.executable} trial.py"
    config.trial_concurrency, config.max_trial_number = slots, trials
    config.training_service.reuse_mode = False
    experiment.start(port=18080 + slots)
    try:
        while experiment.get_status() not in {"DONE", "ERROR", "STOPPED"}:
            time.sleep(0.2)
        return folder / "experiments" / experiment.id / "db" / "nni.sqlite"
    finally:
        experiment.stop()


def main() -> None:
    """Measure and print."""
    slots, trials = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="peer-") as name:
        connection = sqlite3.connect(run(slots, trials, Path(name)))
        begun = dict(connection.execute("SELECT trialJobId, min(timestamp) FROM TrialJobEvent GROUP BY trialJobId"))
        ended = connection.execute("SELECT max(timestamp) FROM TrialJobEvent WHERE event = 'SUCCEEDED'").fetchone()[0]
        first = dict(connection.execute("SELECT trialJobId, min(timestamp) FROM MetricData GROUP BY trialJobId"))
        connection.close()
    waits = [(first[trial] - begun[trial]) / 1000 for trial in first]
    per_minute = 60_000 * len(first) / (ended - min(begun.values()))
    print(json.dumps({"first_metric_s": statistics.median(waits), "trials_per_min": per_minute}))


if __name__ == "__main__":
    main()
