"""Real kernels of two notebooks: who is whose, over a restart, in Python, in a shell line, and when asked."""

from __future__ import annotations

import os

import pytest
from jupyter_client import KernelManager

import jupyter_autotrain as at
from jupyter_autotrain.testing import wait_until

WAITS = "import time\nreport(acc=0.25)\nwhile not should_stop():\n    time.sleep(0.05)"
DEADLINE_S = 120


class Kernel:
    """A kernel that runs a notebook file, as JupyterLab starts it."""

    def __init__(self, home, notebook):
        self.manager = KernelManager(kernel_name="python3")
        self.env = {
            **os.environ,
            "JUPYTER_AUTOTRAIN_HOME": str(home.root),
            "JPY_SESSION_NAME": str(notebook),
            "IPYTHONDIR": str(notebook.parent / "ipython"),
        }
        self.manager.start_kernel(env=self.env, cwd=str(notebook.parent))
        self.connect()

    def connect(self):
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=DEADLINE_S)
        self.run("%load_ext jupyter_autotrain")

    def restart(self):
        self.client.stop_channels()
        self.manager.restart_kernel(now=True)
        self.connect()

    def run(self, code, answer=None):
        shown = []
        self.client.execute_interactive(
            code,
            allow_stdin=answer is not None,
            stdin_hook=lambda question: self.client.input(answer),
            output_hook=lambda message: shown.append(text_of(message)),
            timeout=DEADLINE_S,
        )
        return "".join(shown)

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def text_of(message):
    content = message["content"]
    if message["msg_type"] == "stream":
        return content["text"]
    if message["msg_type"] == "error":
        return "\n".join(content["traceback"])
    return str(content.get("data", {}).get("text/plain", ""))


@pytest.fixture
def kernels(home, tmp_path):
    started = []

    def kernel(name):
        started.append(Kernel(home, tmp_path / name))
        return started[-1]

    yield kernel
    for one in started:
        one.close()


def test_two_kernels_know_their_own_experiments_also_after_a_restart(kernels, home):
    one = kernels("one.ipynb")
    other = kernels("other.ipynb")
    one.run("%%autotrain twin\nobjective: maximize max(acc)\n---\n" + WAITS)
    wait_until(at.attach("twin", home=home).metrics, "its report")
    other.run("%%autotrain twin --wait\nobjective: maximize max(acc)\n---\nreport(acc=0.75)")
    one.restart()
    assert "max(acc) = 0.75" in other.run("%autotrain best")
    assert "twin@1" in one.run("print(__import__('jupyter_autotrain').attach('-1').name)")
    assert "twin@2" in other.run("print(__import__('jupyter_autotrain').attach('_').name)")
    assert "twin@1: stopped in" in one.run("%autotrain stop")
    assert "trial 1 (CANCELLED), max(acc) = 0.25" in one.run("%autotrain best")
    python = "import sys; shell = f'{sys.executable} -m jupyter_autotrain.cli best'\n"
    assert "twin@1: trial 1" in one.run(python + "!{shell}")
    assert "twin@2: trial 1" in other.run(python + "!{shell}")


def test_a_kernel_asks_whether_the_earlier_run_shall_be_stopped(kernels):
    kernel = kernels("asks.ipynb")
    kernel.run("%%autotrain asked\n" + WAITS)
    shown = kernel.run("%%autotrain asked --wait --on-rerun ask\nreport(acc=1)", answer="y")
    assert "The earlier run is stopped first. asked: stopped in" in shown
