"""Submits that a cluster refuses: they say why, and leave nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptdlBackend
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.framework_backend import FrameworkBackend
from jupyter_autotrain.backends.kubernetes.kubeflow_backend import KubeflowBackend
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.errors import BackendError, BackendUnavailableError
from jupyter_autotrain.testing.bundles import trial_of
from tests.kubernetes.api.conftest import Double
from tests.kubernetes.kubeconfigs import load_once
from tests.labs.kubernetes.objects.resources import CONFIG_MAPS, JOBS, RESOURCE_QUOTAS, SECRETS
from tests.matrices import long_besides

OPERATORS: dict[str, tuple[type[KubernetesBackend], dict[str, JsonValue]]] = {
    "AdaptDLJob": (AdaptdlBackend, {}),
    "Framework": (FrameworkBackend, {}),
    "PyTorchJob": (KubeflowBackend, {"kind": "PyTorchJob"}),
    "TrainJob": (KubeflowBackend, {"kind": "TrainJob"}),
    "MPIJob": (KubeflowBackend, {"kind": "MPIJob"}),
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@contextmanager
def backend_on(
    double: Double, home: Home, make: type[KubernetesBackend] = KubernetesBackend, **more: JsonValue
) -> Iterator[KubernetesBackend]:
    options: dict[str, JsonValue] = {"kubeconfig": str(double.api.kubeconfig()), "namespace": "default", **more}
    backend = make(Profile("lab", "lab", options), BackendContext(home), load_once)
    try:
        yield backend
    finally:
        backend.close()


def left(double: Double) -> list[str]:
    kinds = (JOBS, CONFIG_MAPS, SECRETS)
    return [found["metadata"]["name"] for kind in kinds for found in double.store.list(kind, "default")[0]]


def submit(backend: KubernetesBackend, trial: TrialSpec) -> BackendError:
    with pytest.raises(BackendError) as refused:
        backend.submit(trial, Placement(), dict.fromkeys(trial.secrets, "hunter2-hunter2"))
    assert not isinstance(refused.value, BackendUnavailableError)  # else it would be sent again and again
    return refused.value


@pytest.mark.parametrize("kind", long_besides(["AdaptDLJob", "PyTorchJob"], OPERATORS))
def test_without_its_operator_a_submit_says_what_a_check_says(double: Double, home: Home, kind: str) -> None:
    make, options = OPERATORS[kind]
    with backend_on(double, home, make, **options) as backend:
        trial = trial_of(home, "")
        error = submit(backend, trial)
        with pytest.raises(BackendError) as checked:
            backend.check_trial(trial)
    assert "404" not in str(error)
    assert "serve" in error.found
    assert (error.found, error.expected, error.action) == (
        checked.value.found, checked.value.expected, checked.value.action
    )  # fmt: skip
    assert left(double) == []


def test_a_namespace_that_is_not_there_is_named(double: Double, home: Home) -> None:
    with backend_on(double, home, namespace="nowhere") as backend:
        assert "There is no namespace 'nowhere' in the cluster." in submit(backend, trial_of(home, "")).found


@pytest.mark.parametrize("verb_of", ["jobs", "secrets"])
def test_what_is_forbidden_leaves_nothing(double: Double, home: Home, verb_of: str) -> None:
    double.api.forbid("create", verb_of)
    with backend_on(double, home) as backend:
        error = submit(backend, trial_of(home, "", secrets=("API_KEY",)))
    assert "is forbidden" in error.found
    assert left(double) == []


def test_a_full_quota_leaves_nothing(double: Double, home: Home) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"count/jobs.batch": "0"}}}
    double.store.create(RESOURCE_QUOTAS, "default", quota)
    with backend_on(double, home) as backend:
        assert "exceeded quota: q" in submit(backend, trial_of(home, "")).found
    assert left(double) == []


def test_a_manifest_that_is_invalid_leaves_nothing(double: Double, home: Home) -> None:
    with backend_on(double, home, patch={"spec": {"backoffLimit": -1}}) as backend:
        assert "must be greater than or equal to 0" in submit(backend, trial_of(home, "")).found
    assert left(double) == []


def test_code_that_another_trial_uses_stays_where_one_is_refused(double: Double, home: Home) -> None:
    with backend_on(double, home) as backend:
        backend.submit(trial_of(home, ""), Placement(), {})
        double.api.forbid("create", "jobs")
        submit(backend, trial_of(home, "", number=2))
        double.api.access.allow_again()
        assert len(double.store.list(CONFIG_MAPS, "default")[0]) == 2
    with backend_on(double, home) as later:  # which knows nothing of the first trial's code
        double.api.forbid("create", "jobs")
        submit(later, trial_of(home, "", number=3))
    owned = [
        found for found in double.store.list(CONFIG_MAPS, "default")[0] if found["metadata"].get("ownerReferences")
    ]
    assert len(owned) == len(double.store.list(CONFIG_MAPS, "default")[0])
