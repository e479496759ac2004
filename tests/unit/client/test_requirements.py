"""Tests that what a backend cannot do is refused before submit, by the key of the header."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.local.backend import LocalBackend
from jupyter_autotrain.backends.slurm.backend import SlurmBackend
from jupyter_autotrain.client import requirements
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.federated import FederatedSpec, named_clients
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Resources


@pytest.mark.parametrize(
    ("kind", "told"), [(LocalBackend, []), (SlurmBackend, ["resources.adjacent (it chooses GPUs and nodes by itself)"])]
)
def test_neighbours_are_asked_only_of_places_whose_devices_the_manager_chooses(
    kind: type[Backend], told: list[str], tmp_path: Path
) -> None:
    backend = kind(Profile("lab", "lab", {}), BackendContext(Home(tmp_path / "home")))
    spec = ExperimentSpec("wide", Bundle(), resources=Resources(gpus=4, adjacent="ring"))
    assert [*requirements.missing(spec, backend)] == told


def test_a_place_whose_output_comes_back_by_itself_takes_no_client(tmp_path: Path) -> None:
    spec = ExperimentSpec("shared", Bundle(), federated=FederatedSpec(named_clients(["lab"])))
    context = BackendContext(Home(tmp_path / "home"))
    assert not [*requirements.missing(spec, SlurmBackend(Profile("lab", "slurm", {}), context))]
    (told,) = requirements.missing(spec, KubernetesBackend(Profile("lab", "kubernetes", {}), context))
    assert "what a client prints leaves" in told
