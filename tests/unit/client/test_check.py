"""Tests that what a backend cannot do is said before anything is sent, and that a dry run touches nothing."""

import os
from dataclasses import replace

import pytest

from jupyter_autotrain import backends
from jupyter_autotrain.client.check import check, preview
from jupyter_autotrain.core.backend import Probe, Submission
from jupyter_autotrain.core.capabilities import Capabilities
from jupyter_autotrain.core.data import DataKind, DataSource
from jupyter_autotrain.core.federated import FederatedSpec, named_clients
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Resources
from jupyter_autotrain.errors import BackendError, BackendUnavailableError, DataError


class SimulatedBackend:
    """A backend that can do what it is told to."""

    name = "backend"

    def __init__(self, capabilities, reason="", *, may_return=False):
        self.capabilities = capabilities
        self.reason = reason
        self.may_return = may_return

    def probe(self):
        self.probes = getattr(self, "probes", 0) + 1
        return Probe(not self.reason, self.reason, not self.may_return)

    def close(self):
        self.closes = getattr(self, "closes", 0) + 1

    def render(self, trial, placement):
        return Submission((trial.job_id, trial.script), notes=(trial.experiment_id,))


GREEDY = ExperimentSpec(
    "a",
    Bundle(),
    backends=(BackendChoice(Profile("backend", "test")),),
    secrets=("TOKEN",),
    returns=("model",),
    resources=Resources(cpus=1.0, memory_bytes=10, gpus=1, nodes=2, workers_per_node=2),
)
ABLE = Capabilities(
    multi_node=True,
    multi_worker=True,
    secrets=True,
    artifacts=True,
    gpu_slots=True,
    limits_memory=True,
    limits_cpu=True,
)


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


def use(monkeypatch, backend):
    monkeypatch.setattr(backends, "create", lambda profile, context: backend)


def test_a_backend_that_can_do_it_passes(home, monkeypatch):
    use(monkeypatch, SimulatedBackend(ABLE))
    check(GREEDY, home)
    use(monkeypatch, SimulatedBackend(Capabilities(artifacts=False)))
    check(ExperimentSpec("a", Bundle(), backends=GREEDY.backends), home)
    assert not home.root.exists()


def test_everything_that_is_wanting_is_named_at_once(home, monkeypatch):
    use(monkeypatch, SimulatedBackend(Capabilities(artifacts=False)))
    with pytest.raises(BackendUnavailableError) as caught:
        check(GREEDY, home)
    for key in (
        "secrets",
        "returns",
        "resources.gpus",
        "resources.nodes",
        "resources.workers_per_node",
        "resources.memory",
        "resources.cpus",
    ):
        assert key in caught.value.found
    assert all((caught.value.expected, caught.value.action))


def test_a_backend_that_is_not_usable_says_why(home, monkeypatch):
    use(monkeypatch, SimulatedBackend(ABLE, reason="no cluster answers"))
    with pytest.raises(BackendUnavailableError, match="no cluster answers"):
        check(GREEDY, home)


def test_an_unknown_backend_is_named_with_the_known_ones(home):
    with pytest.raises(BackendError, match="local"):
        check(ExperimentSpec("a", Bundle(), backends=(BackendChoice(Profile("locl", "locl")),)), home)


def test_a_preview_is_what_the_backend_renders_and_touches_nothing(home, monkeypatch):
    use(monkeypatch, SimulatedBackend(ABLE))
    shown = preview(GREEDY, home)
    assert shown.argv[1] == "main.py"
    assert shown.notes == ("dry-run",)
    assert not home.root.exists()


def test_the_local_backend_shows_what_it_would_start(home):
    spec = ExperimentSpec("a", Bundle(), env={"COLOUR": "red"})
    check(spec, home)
    shown = preview(spec, home)
    assert shown.argv
    assert shown == preview(spec, home)
    assert not home.root.exists()


def test_a_federated_training_is_refused_where_one_client_lacks_its_own_data(home, tmp_path):
    (tmp_path / "a.csv").touch()
    data = {"rows": {"local-1": str(tmp_path / "a.csv"), "local-2": str(tmp_path / "b.csv")}}
    source = DataSource("rows", DataKind.PATH)
    spec = ExperimentSpec("a", Bundle(), federated=FederatedSpec(named_clients(["local"] * 2, data)), data=(source,))
    with pytest.raises(DataError, match=r"data.rows.clients.local-2: .*b.csv is not there"):
        check(spec, home)
    (tmp_path / "b.csv").touch()
    check(spec, home)
    assert preview(spec, home).argv


def test_a_federated_training_is_refused_where_one_of_its_places_cannot_be_used(home, monkeypatch):
    able = {"here": SimulatedBackend(ABLE), "lab": SimulatedBackend(ABLE, reason="no cluster answers")}
    monkeypatch.setattr(backends, "create", lambda profile, context: able[profile.name])
    clients = named_clients(["here", "lab"])
    with pytest.raises(BackendUnavailableError, match="no cluster answers"):
        check(replace(BOTH, federated=FederatedSpec(clients)), home)


BOTH = replace(GREEDY, backends=tuple(BackendChoice(Profile(name, "test")) for name in ("here", "lab")))


def use_both(monkeypatch, here, lab):
    monkeypatch.setattr(backends, "create", lambda profile, context: {"here": here, "lab": lab}[profile.name])


def names(checked):
    return [choice.profile.name for choice in checked.spec.backends]


def test_a_backend_that_cannot_do_what_is_asked_is_left_out_with_a_note(home, monkeypatch):
    use_both(monkeypatch, SimulatedBackend(Capabilities()), SimulatedBackend(ABLE))
    checked = check(BOTH, home)
    assert names(checked) == ["lab"]
    (note,) = checked.notes
    assert note.startswith("Backend 'here' is left out, it cannot do this: secrets")


def test_an_elastic_trial_on_several_nodes_is_refused_where_a_lost_node_ends_it(home, monkeypatch):
    able = replace(ABLE, multi_node=True, multi_worker=True)
    use_both(monkeypatch, SimulatedBackend(replace(able, elastic_nodes=False)), SimulatedBackend(able))
    asked = {"launcher": "torchrun", "elastic": True, "resources": Resources(nodes=2)}
    checked = check(replace(BOTH, **asked), home)
    assert names(checked) == ["lab"]
    assert "elastic on several nodes (it ends the job with the first node that is lost" in checked.notes[0]


def test_a_backend_that_does_not_answer_now_refuses_nothing_while_another_can_be_used(home, monkeypatch):
    use_both(monkeypatch, SimulatedBackend(ABLE), SimulatedBackend(ABLE, "h1 does not answer.", may_return=True))
    checked = check(BOTH, home)
    assert names(checked) == ["here", "lab"]
    assert checked.notes == ("Backend 'lab' gets trials as soon as it can be used: h1 does not answer.",)


def test_only_when_no_backend_can_do_it_there_is_an_error_that_names_them_all(home, monkeypatch):
    use_both(monkeypatch, SimulatedBackend(Capabilities()), SimulatedBackend(Capabilities(artifacts=False)))
    with pytest.raises(BackendUnavailableError, match=r"'here' cannot do this: .*'lab' cannot do this: .*returns"):
        check(BOTH, home)
    use_both(
        monkeypatch, SimulatedBackend(ABLE, "no Linux"), SimulatedBackend(ABLE, "no host answers", may_return=True)
    )
    with pytest.raises(BackendUnavailableError, match=r"no Linux.*no host answers"):
        check(BOTH, home)


def test_a_distant_backend_is_checked_once_in_ten_minutes_and_its_connections_are_closed(home, monkeypatch):
    home.root.mkdir()
    backend = SimulatedBackend(ABLE)
    use(monkeypatch, backend)
    for _ in range(3):
        check(GREEDY, home)
    assert (backend.probes, backend.closes) == (1, 3)
    check(GREEDY, home, afresh=True)
    assert backend.probes == 2
    (record,) = home.checks.iterdir()
    os.utime(record, (1.0, 1.0))
    check(GREEDY, home)
    assert backend.probes == 3
    backend.reason = "gone"
    with pytest.raises(BackendUnavailableError, match="gone"):
        check(GREEDY, home, afresh=True)
    assert list(home.checks.iterdir()) == []


class AskedBackend(SimulatedBackend):
    """A backend that says whether its place would take a trial."""

    def __init__(self, fault="", notes=()):
        super().__init__(ABLE)
        self.fault = fault
        self.notes = notes

    def check_trial(self, trial):
        self.asked = [*getattr(self, "asked", []), trial.options]
        if self.fault:
            raise BackendError(self.fault, "Expected another.", "Change it.")
        return self.notes


def test_what_a_place_would_not_take_is_refused_before_anything_is_sent(home, monkeypatch):
    use(monkeypatch, AskedBackend(fault="Job spec.paralelism: unknown field"))
    with pytest.raises(BackendError, match="unknown field"):
        check(GREEDY, home)
    assert not home.root.exists()


def test_a_place_is_asked_again_when_the_header_sets_other_options(home, monkeypatch):
    home.root.mkdir()
    backend = AskedBackend(notes=["it is slow"])
    use(monkeypatch, backend)
    for options in ({"queue": "a"}, {"queue": "a"}, {"queue": "b"}):
        choice = replace(GREEDY.backends[0], options=options)
        assert check(replace(GREEDY, backends=(choice,)), home).notes == ("it is slow",)
    assert backend.asked == [{"queue": "a"}, {"queue": "b"}]
