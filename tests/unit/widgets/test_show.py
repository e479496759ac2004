"""A handle as a cell's value shows itself as a view."""

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Store


def test_a_handle_as_the_value_of_a_cell_shows_its_view(tmp_path):
    home = Home(tmp_path / "home")
    with Store.open(home) as store:
        store.add_experiment("e1", ExperimentSpec("digits", Bundle()), 1.0)
        shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
        shell.user_ns["experiment"] = Experiment(home, store, "e1", {})
        with capture_output() as shown:
            shell.run_cell("experiment")
        InteractiveShell.clear_instance()
    assert "%autotrain show digits" in shown.stdout
