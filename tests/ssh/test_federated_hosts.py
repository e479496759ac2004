"""Clients of a federated training on real hosts: what leaves them, and what a killed manager takes up."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.data import DataKind, DataSource
from jupyter_autotrain.core.federated import FederatedSpec, named_clients
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.testing import write_bundle
from tests.labs.ssh_lab import SshLab
from tests.ssh.served_home import ServedHome, until

CELL = """
import os, pathlib, sys, time
import numpy as np
import pytest
rows = data.rows.read_text().splitlines()
weights = {{"w": np.zeros(2)}}
print(rows)
print(rows, file=sys.stderr)
pathlib.Path("seen.txt").write_text(str(rows))
checkpoint.save(rows)
for round in trial.rounds(weights, samples=len(rows)):
    while round.number == 3 and not os.path.exists({enough!r}):
        time.sleep(0.01)
    weights["w"] += len(rows)
    report(rows=len(rows))
if {fails}:
    raise KeyError(rows[0])
"""
ROUNDS = 4


def _submit(served: ServedHome, lab: SshLab, *, fails: bool = False) -> tuple[Experiment, str]:
    """Two hosts with different data at different paths, each with a secret of its own."""
    secret = f"canary{secrets.token_hex(16)}"
    places = []
    own = {}
    for number, host in enumerate(lab.hosts[:2], 1):
        path = own[f"hospital-{number}"] = f"/tmp/{secrets.token_hex(8)}.csv"
        host.path(path).write_text("\n".join([f"{secret}-{host.name}"] * number))
        options = {"hosts": [host.name], "config_file": str(lab.config), "python": sys.executable}
        places.append(BackendChoice(Profile(f"hospital-{number}", "ssh", options)))
    federated = FederatedSpec(named_clients([*own], {"rows": own}), rounds=ROUNDS)
    code = CELL.format(enough=served.enough, fails=fails)
    bundle = write_bundle(served.home.bundle("e1"), code)
    data = (DataSource("rows", DataKind.PATH),)
    spec = ExperimentSpec(
        "exp", bundle, backends=tuple(places), trials=2, concurrency=2, federated=federated, data=data
    )
    served.store.add_experiment("e1", spec, time.time())
    served.begin()
    return Experiment(served.home, served.store, "e1", {}), secret


def _holding(folder: Path, text: str) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and text.encode() in path.read_bytes():
            yield path


def _global_rounds(served: ServedHome) -> list[int]:
    return [point.step for point in served.store.points("e1") if point.name == "global_rows"]


def test_nothing_of_a_clients_data_leaves_it_though_its_cell_prints_keeps_and_raises_it(
    served: ServedHome, lab: SshLab
) -> None:
    experiment, secret = _submit(served, lab, fails=True)
    served.end()
    assert [trial.state for trial in experiment.trials] == [TrialState.FAILED] * 2
    assert "KeyError." in experiment.trials[0].reason
    np.testing.assert_allclose(experiment.global_weights()["w"], ROUNDS * (1 + 2 * 2) / 3)
    assert list(_holding(served.home.root, secret)) == []
    for mine, other in ((0, 1), (1, 0)):
        host = lab.hosts[mine]
        assert list(_holding(host.home(), f"{secret}-{host.name}"))  # its own jobs have printed it
        assert not list(_holding(host.home(), f"{secret}-{lab.hosts[other].name}"))


@pytest.mark.long
def test_the_next_manager_makes_the_round_that_was_under_way_and_counts_none_twice(
    served: ServedHome, lab: SshLab
) -> None:
    experiment, _ = _submit(served, lab)
    until(lambda: _global_rounds(served) == [1, 2], "two rounds")
    served.kill()
    for host in lab.hosts:
        host.path(served.enough).touch()
    served.begin()
    served.end()
    assert [trial.state for trial in experiment.trials] == [TrialState.SUCCEEDED] * 2
    assert _global_rounds(served) == [1, 2, 3, 4]
    np.testing.assert_allclose(experiment.global_weights()["w"], ROUNDS * (1 + 2 * 2) / 3)
