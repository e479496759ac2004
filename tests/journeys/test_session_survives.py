"""Sessions outlive notebook kernels and managers, and are kernels of Jupyter themselves."""

from __future__ import annotations

import os
import signal

import pytest
from jupyter_client import KernelManager

import jupyter_autotrain as at
from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home
from tests.journeys.kernel import DEADLINE_S, Kernel, text_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("session")


@pytest.fixture(scope="module")
def home(folder):
    home = Home(folder / "home")
    yield home
    if pid := manager.status(home).pid:
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def session(home, folder):
    """Yield a session that one notebook has opened, whose kernel and manager were killed while a cell ran."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DATA_DIR", str(folder / "data"))
        first = Kernel(home, folder / "first.ipynb")
        assert "is open" in first.run("%autotrain session open lab")
        go = folder / "go"
        cell = f"count = 41\nprint('begun', flush=True)\nimport os, time\nwhile not os.path.exists({str(go)!r}):\n"
        first.client.execute(f"%%autotrain --session lab\n{cell}    time.sleep(0.05)\nprint('count is', count)")
        while "begun" not in text_of(first.client.get_iopub_msg(timeout=DEADLINE_S)):
            pass
        first.close()
        os.kill(manager.status(home).pid, signal.SIGKILL)
        go.touch()
        yield at.attach("lab", home=home)
        at.attach("lab", home=home).stop()


def test_another_notebook_shows_the_cell_that_ran_when_kernel_and_manager_were_killed_and_goes_on(session, folder):
    second = Kernel(session.home, folder / "second.ipynb")
    assert "begun\ncount is 41" in second.run("%autotrain session attach lab")
    assert second.run("%%autotrain --session lab\ncount += 1\nprint(count)") == "42\n"
    second.close()
    assert session.state == "RUNNING"


def test_it_is_a_kernel_for_a_whole_notebook_which_is_interrupted_and_killed_without_its_end(session):
    kernel = KernelManager(kernel_name="autotrain-lab")
    assert kernel.kernel_spec.display_name == "Python on lab"
    kernel.start_kernel()
    client = kernel.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=DEADLINE_S)
    shown = []
    client.execute_interactive("count = 7\nprint('here')", output_hook=shown.append, timeout=DEADLINE_S)
    assert "".join(map(text_of, shown)) == "here\n"

    def interrupt(message):
        if "sleeping" in text_of(message):
            kernel.interrupt_kernel()

    code = "import time\nprint('sleeping', flush=True)\nwhile True:\n    time.sleep(0.05)"
    reply = client.execute_interactive(code, output_hook=interrupt, timeout=DEADLINE_S)
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    client.stop_channels()
    kernel.shutdown_kernel(now=True)
    assert session.state == "RUNNING"
