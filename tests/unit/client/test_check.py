"""What a backend cannot do is said before anything is sent, and a dry run touches nothing."""

import pytest

from jupyter_autotrain import backends
from jupyter_autotrain.client.check import check, preview
from jupyter_autotrain.core.backend import Probe, Submission
from jupyter_autotrain.core.capabilities import Capabilities
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Resources
from jupyter_autotrain.errors import BackendError, BackendUnavailableError


class SimulatedBackend:
    """A backend that can do what it is told to."""

    name = "backend"

    def __init__(self, capabilities, reason=""):
        self.capabilities, self.reason = capabilities, reason

    def probe(self):
        return Probe(not self.reason, self.reason)

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
