"""`mode: federated` in a header: what it makes of the clients, and what does not go with it."""

from __future__ import annotations

import pytest

from jupyter_autotrain import header
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.attempt import trial_spec
from jupyter_autotrain.core.federated import FederatedSpec, check_packages, named_clients
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError, HeaderError


def spec_of(**federated: object) -> ExperimentSpec:
    settings = {"mode": "federated", "clients": ["local", "local", "local"], "federated": federated}
    return header.from_mapping(settings).to_spec(bundle=Bundle(), name="x")


def test_each_client_is_a_trial_at_its_place_and_those_of_one_place_are_numbered() -> None:
    spec = spec_of()
    assert spec.federated is not None
    assert [client.name for client in spec.federated.clients] == ["local-1", "local-2", "local-3"]
    assert {client.place for client in spec.federated.clients} == {"local"}
    assert (spec.trials, spec.concurrency, len(spec.backends)) == (3, 3, 1)
    assert spec.federated.min_clients == 2
    assert [client.name for client in named_clients(["a", "b"])] == ["a", "b"]


def test_on_flower_it_is_one_trial_here_and_clients_are_names_alone() -> None:
    settings = {"mode": "federated", "clients": ["north", "south"], "federated": {"superlink": "lab"}}
    spec = header.from_mapping(settings).to_spec(bundle=Bundle(), name="x")
    assert spec.federated is None
    assert spec.flower is not None
    assert (spec.flower.superlink, spec.trials, spec.concurrency, spec.backends[0].profile.name) == (
        "lab",
        1,
        1,
        "local",
    )


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"clients": []}, "mode: federated without clients"),
        ({"mode": "batch"}, "clients without mode: federated"),
        ({"search": {"lr": "uniform(0, 1)"}}, "search with mode: federated"),
        ({"returns": ["model"]}, "weights and metrics alone"),
        ({"resources": {"workers_per_node": 2}}, "one process"),
        ({"federated": {"min_clients": 4}}, "min_clients 4 of 3 clients"),
        ({"federated": {"secure": True, "strategy": "median"}}, "compares"),
        ({"clients": ["local"] * 2, "federated": {"secure": True}}, "fewer than 3 clients"),
        ({"federated": {"engine": "flower", "privacy": {}}}, "privacy with engine"),
        ({"federated": {"strategy": "fedavgg"}}, "did you mean 'fedavg'?"),
        ({"data": {"rows": {"clients": {"local-1": "/a"}}}}, "data.rows has no path of local-2, local-3"),
        ({"data": {"rows": {"clients": {"lokal-1": "/a"}}}}, "which is no client; did you mean 'local-1'?"),
        ({"data": {"rows": {"clients": {"local-1": "a"}}}}, "expected a path from the root or from ~"),
        ({"mode": "batch", "clients": [], "data": {"rows": {"clients": {"a": "/a"}}}}, "without mode: federated"),
    ],
)
def test_what_does_not_go_together_is_a_fault_of_the_header(settings: dict[str, object], says: str) -> None:
    with pytest.raises(HeaderError) as caught:
        header.from_mapping({"mode": "federated", "clients": ["local"] * 3, **settings})
    assert says in str(caught.value)


def test_a_client_has_its_own_path_under_the_common_name_and_learns_no_other() -> None:
    own = {"local-1": "/a.csv", "local-2": "~/b.csv"}
    settings = {
        "mode": "federated",
        "clients": ["local", "local"],
        "data": {"rows": {"clients": own}, "shared": {"path": "/x"}},
    }
    spec = header.from_mapping(settings).to_spec(bundle=Bundle(), name="x")
    for number, (client, path) in enumerate(own.items(), 1):
        trial = trial_spec(spec, TrialRecord("x", number, TrialState.WAITING, {"client": client}))
        assert {source.name: source.path for source in trial.data} == {"rows": path, "shared": "/x"}
        assert path in str(trial)
        assert not any(other in str(trial) for other in own.values() if other != path)


def test_a_missing_package_is_told_at_submit_with_the_extra_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyter_autotrain.core.federated.find_spec", lambda _: None)
    check_packages(FederatedSpec(named_clients(["a"])), by_flower=False)
    with pytest.raises(AutotrainError, match="needs the package flwr") as caught:
        check_packages(FederatedSpec(named_clients(["a"]), strategy="krum"), by_flower=False)
    assert "jupyter-autotrain[federated]" in str(caught.value)
