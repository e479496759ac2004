"""Tests of what each launcher tells the ranks: the variables are kept in `tests/golden/launchers.json`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_autotrain.agent.launchers import launcher_of, launchers, mpi
from jupyter_autotrain.agent.launchers.launchers import TorchrunLauncher
from jupyter_autotrain.agent.trial import rank_layout
from jupyter_autotrain.core.spec import LAUNCHERS

GOLDEN = Path(__file__).parents[2] / "golden" / "launchers.json"
TRIAL = {
    "experiment_id": "20261121-digits", "number": 3, "attempt": 1, "python": "/opt/py/bin/python", "workers": 2,
    "gpus": ["GPU-a", "GPU-b", "GPU-c", "GPU-d"],
    "layout": {"node_rank": 1, "endpoints": [["10.0.0.11", [4001, 4002, 4003]], ["10.0.0.12", [5001, 5002, 5003]]]},
}  # fmt: skip


def launcher(name: str, **changes: object) -> launchers.Launcher:
    trial = TRIAL | {"launcher": name} | changes
    return launcher_of(trial, rank_layout.of_trial(trial))


def test_the_variables_of_ranks_are_as_they_were_golden(request: pytest.FixtureRequest) -> None:
    found = {}
    for name in LAUNCHERS:
        found[name] = [launcher(name).variables(local_rank) for local_rank in range(2)]
    elastic = launcher("torchrun", elastic=True)
    commands = [elastic.command(["RANK-COMMAND"]), launcher("torchrun").command(["RANK-COMMAND"])]
    text = json.dumps({**found, "torchrun commands": commands}, indent=1, sort_keys=True) + "\n"
    if request.config.getoption("--golden-update"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_tensorflow_gets_one_cluster_in_which_each_rank_knows_its_own_place() -> None:
    for local_rank in range(2):
        config = json.loads(launcher("tensorflow").variables(local_rank)["TF_CONFIG"])
        assert config["cluster"]["worker"] == ["10.0.0.11:4001", "10.0.0.11:4002", "10.0.0.12:5001", "10.0.0.12:5002"]
        assert config["task"] == {"type": "worker", "index": 2 + local_rank}


def test_paddle_gets_its_endpoints_and_a_share_of_the_gpus() -> None:
    variables = launcher("paddle").variables(1)
    assert variables["PADDLE_CURRENT_ENDPOINT"] == "10.0.0.12:5002"
    assert variables["PADDLE_TRAINER_ENDPOINTS"].split(",")[3] == variables["PADDLE_CURRENT_ENDPOINT"]
    assert variables["PADDLE_MASTER"] == "10.0.0.11:4003"
    assert variables["FLAGS_selected_gpus"] == "2,3"
    assert "PADDLE_DISTRI_BACKEND" not in variables
    without_gpus = launcher("paddle", gpus=[]).variables(1)
    assert without_gpus["PADDLE_DISTRI_BACKEND"] == "gloo"


@pytest.mark.parametrize(
    "told", [
        {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, {"PMI_RANK": "3", "MPI_LOCALRANKID": "1"},
        {"SLURM_PROCID": "3", "SLURM_LOCALID": "1"}, {"PMI_RANK": "3"},
    ],
)  # fmt: skip
def test_ranks_of_all_mpi_implementations_become_the_usual_variables(told: dict[str, str]) -> None:
    local_rank, variables = launcher("mpi").adapt(told)
    assert local_rank == 1
    assert (variables["RANK"], variables["LOCAL_RANK"], variables["WORLD_SIZE"]) == ("3", "1", "4")
    assert variables["MASTER_ADDR"] == "10.0.0.11"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("mpiexec (Open MPI) 5.0.11", "openmpi"), ("mpirun (Open MPI) 4.1.4", "openmpi4"),
        ("HYDRA build details:\n Version: 5.0.2", "mpich"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.13 Build 20240515", "intel"),
    ],
)  # fmt: skip
def test_an_mpiexec_is_known_by_what_it_says_of_its_version(tmp_path: Path, said: str, kind: str) -> None:
    program = tmp_path / "mpiexec"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n")
    program.chmod(0o700)
    assert mpi.kind_of(str(program), {"PATH": "/usr/bin:/bin"}) == kind


def test_an_unknown_mpiexec_is_refused_with_what_it_said(tmp_path: Path) -> None:
    program = tmp_path / "mpiexec"
    program.write_text("#!/bin/sh\necho MyMPI 1\n")
    program.chmod(0o700)
    with pytest.raises(launchers.LaunchError, match="MyMPI 1"):
        mpi.kind_of(str(program), {"PATH": "/usr/bin:/bin"})


def test_agents_of_nodes_in_another_order_than_that_of_their_addresses_are_told_their_ranks() -> None:
    by_number = {"node_rank": 1, "endpoints": [["n2", [4001, 4002, 4003]], ["n10", [5001, 5002, 5003]]]}
    command = launcher("torchrun", layout=by_number).command(["RANK-COMMAND"])
    assert {"--rdzv-backend=static", "--node-rank=1", "--rdzv-endpoint=n2:4003"} <= set(command)
    assert "--rdzv-backend=c10d" in launcher("torchrun").command(["RANK-COMMAND"])
    assert "--rdzv-backend=c10d" in launcher("torchrun", layout=by_number, elastic=True).command(["RANK-COMMAND"])


def test_after_the_loss_of_a_node_a_rank_keeps_what_the_agent_says() -> None:
    found = launcher("torchrun", elastic=True)
    assert isinstance(found, TorchrunLauncher)
    environ = {"LOCAL_RANK": "0", "RANK": "0", "WORLD_SIZE": "2", "GROUP_RANK": "0", "MASTER_ADDR": "10.0.0.12"}
    _, added = found.adapt(environ)
    assert added.keys().isdisjoint(environ)
    assert (added["NODE_RANK"], added["JUPYTER_AUTOTRAIN_RANK"]) == ("0", "2")
