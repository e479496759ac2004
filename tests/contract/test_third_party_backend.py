"""A backend that another package brings: found by its entry point, run by the manager, its files copied home."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from jupyter_autotrain import backends, header
from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.manager.context import Clocks, Factories, ManagerContext, Threads
from jupyter_autotrain.manager.jobs.events import EventQueue
from jupyter_autotrain.manager.manager import Manager
from jupyter_autotrain.store import Store
from jupyter_autotrain.testing import wait_until, write_bundle
from tests.contract.copying_backend import CopyingBackend


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the copying backend as a package."""
    distribution = tmp_path / "site" / "copying-1.0.dist-info"
    distribution.mkdir(parents=True)
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: copying\nVersion: 1.0\n")
    line = "copying = copying_backend:CopyingBackend"
    (distribution / "entry_points.txt").write_text(f"[{backends.GROUP}]\n{line}\n")
    for folder in (tmp_path / "site", Path(__file__).parent):
        monkeypatch.syspath_prepend(str(folder))


@pytest.mark.usefixtures("installed")
def test_its_section_is_one_of_the_header_like_any_other() -> None:
    schema = backends.header_schema()
    context = header.HeaderContext(backends=backends.type_names(), schema=schema)
    parsed = header.parse_cell("", "backend: copying\ncopying: {root: /scratch}\n---\n", context)
    assert parsed.header.to_spec(bundle=Bundle(), name="x").backends[0].options == {"root": "/scratch"}
    assert "copying.root" in header.known_keys(schema)
    assert header.help_text("copying.root", schema).splitlines()[1] == "  Where trials run."
    assert backends.create(Profile("copying", "copying"), BackendContext(Home(Path("/nowhere")))).name == "copying"


@contextmanager
def manager_of(context: ManagerContext) -> Iterator[Manager]:
    events = EventQueue()
    with ThreadPoolExecutor(4) as executor:
        yield Manager(context, events, Threads(lambda: executor, executor))
    events.close()


def test_an_experiment_runs_there_and_everything_comes_home(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    options = {"root": str(tmp_path / "there")}
    factories = Factories(
        CopyingBackend,
        lambda _: None,
        lambda _: None,  # type: ignore[arg-type,return-value] # nothing is searched
    )
    code = "print('x' * 100)\nreport(acc=0.5)\nopen('../outputs/made.txt', 'w').write('made')\nmodel = [1, 2]"
    bundle = write_bundle(home.bundle("e1"), code)
    with Store.open(home) as store:
        spec = ExperimentSpec(
            "x",
            bundle,
            backends=(BackendChoice(Profile("lab", "copying", options)),),
            objective=Objective("acc"),
            returns=("model",),
        )
        store.add_experiment("e1", spec, time.time())
        context = ManagerContext(home, store, Clocks(time.time, time.monotonic, time.sleep), factories)
        with manager_of(context) as manager:
            wait_until(lambda: (manager.step((), read_store=True), store.experiment("e1").state.is_final)[1], "the end")
        (trial,) = store.trials("e1")
        node = CopyingBackend(Profile("lab", "copying", options), BackendContext(home)).discover().nodes[0]
    assert (trial.state, trial.value) == (TrialState.SUCCEEDED, 0.5)
    assert [placed.node for placed in trial.placement.nodes] == [node.name]
    directory = home.trial("e1", 1, 1)
    copied = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    copied.discard(wire.USAGE)  # only of a trial that a slow machine took seconds for
    assert sorted(copied) == ["metrics", "outputs/made.txt", "outputs/model.pkl", "status.json", "stdout"]
    assert (directory / "stdout").read_text() == f"{'x' * 100}\n"
