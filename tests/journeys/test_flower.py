"""The cell of a federated training on a real SuperLink of Flower with two nodes, all on loopback."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from jupyter_autotrain.agent.system import ports
from jupyter_autotrain.client import attach
from jupyter_autotrain.core.home import Home

from .conftest import Notebook

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
PATIENCE_S = 240.0
CELL = """%%autotrain on-flower --wait
mode: federated
clients: [first, second]
federated: {{engine: flower, superlink: lab, rounds: 2}}
objective: minimize global_loss
env: {{FLWR_HOME: {home}}}
---
weights = {{"w": np.zeros(3), "b": np.zeros(())}}
many = {{"first": 1, "second": 3}}[params.client]
for round in trial.rounds(weights, samples=many):
    weights["w"] += added * many
    report(loss=float(many))
"""


@pytest.fixture
def flower_home(tmp_path: Path) -> Iterator[Path]:
    """Flower's folder, whose connection `lab` leads to a SuperLink with two nodes."""
    pytest.importorskip("flwr", reason="package flwr is not installed")
    folder = tmp_path / "flower"
    folder.mkdir()
    link, *nodes = ports.find_free(3)
    (folder / "config.toml").write_text(
        f'[superlink]\ndefault = "lab"\n\n[superlink.lab]\naddress = "127.0.0.1:{link}"\ninsecure = true\n'
    )
    programs = Path(sys.executable).parent
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "FLWR_HOME": str(folder), "FLWR_TELEMETRY_ENABLED": "0", "PATH": path}
    commands = [["flower-superlink", "--insecure", "--disable-runtime-dependency-installation", "--port", str(link)]]
    for number, port in enumerate(nodes):
        to = ["--superlink", f"127.0.0.1:{link}", "--node-config", f"partition-id={number}", "--port", str(port)]
        commands.append(["flower-supernode", "--insecure", *to])
    with contextlib.ExitStack() as running, (tmp_path / "flower.log").open("w") as log:
        for command in commands:
            command[0] = str(programs / command[0])
            process = running.enter_context(
                subprocess.Popen(command, env=environ, stdout=log, stderr=log, start_new_session=True)
            )
            running.callback(process.terminate)
            answers(link if process.args == commands[0] else 0)
        yield folder


def answers(port: int) -> None:
    """Wait until a server of HTTP answers there."""
    end_s = time.monotonic() + PATIENCE_S
    while port:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE_S)
        except urllib.error.HTTPError:
            return
        except OSError:
            assert time.monotonic() < end_s, "the SuperLink does not answer"
            time.sleep(0.1)
        else:
            return


def test_the_same_cell_trains_on_a_superlink_with_the_curves_and_the_model_here(
    notebook: Notebook, home: Home, flower_home: Path
) -> None:
    notebook.run("import numpy as np\nadded = 2")
    result, shown = notebook.run(CELL.format(home=flower_home))
    assert result.success, shown
    experiment = attach("on-flower", home=home)
    assert [trial.state for trial in experiment.trials] == ["SUCCEEDED"], experiment.logs(1)
    np.testing.assert_allclose(experiment.global_weights()["w"], 2 * 2 * (1 * 1 + 3 * 3) / 4)
    assert list(experiment.metrics_frame("global_loss").iloc[:, 0]) == [2.5, 2.5]
