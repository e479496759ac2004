"""A place of which a method never returns: a real cell does not wait for it, and all that is told names it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest

import jupyter_autotrain as at
from jupyter_autotrain import backends, manager
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from tests.journeys.kernel import Kernel

ASKED_BY_A_CELL = ("__init__", "probe", "missing_paths", "check_trial", "inspect_python", "close")
ENDS = {
    "probe": "stopped in",
    "discover": "stopped in",
    "submit": "Still being started on",
    "poll": "Ended on",
    "read": "Ended on",
    "put": "nothing is left",
    "sizes": "its results are still to come: trial 1.",
    "fetch": "its results are still to come: trial 1.",
    "cancel": "Not ended yet on",
}  # what a stop tells of each method that the manager calls
STOPS = """
from concurrent.futures import ThreadPoolExecutor
import jupyter_autotrain as at
with ThreadPoolExecutor({count}) as threads:
    for receipt in threads.map(lambda method: at.attach(method).stop(), {methods}):
        print(f"<{{receipt}}>")
"""
CELL = "%%autotrain {name} {flags}\nbackend: {backend}\ndata: {{there: {{path: /}}}}\n---\n{code}"
WAITS = "import time\nreport(acc=1)\nwhile not should_stop():\n    time.sleep(0.05)"
STOP_S = 25.0  # the longest stop: a cancel that has not returned after its time of grace and some seconds
LOCAL_S = 90.0  # of a cell on a busy machine, beside what it waits for places


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the package of the hanging backend, and a profile for each of its methods."""
    folder = tmp_path_factory.mktemp("hanging")
    installed = folder / "site" / "hanging-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: hanging\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[{backends.GROUP}]\nhanging = hanging_backend:HangingBackend\n")
    methods = {*ASKED_BY_A_CELL, *ENDS, "render"}
    profiles = [f"{m.strip('_')}: {{type: hanging, root: {folder / m}, hangs: {m}}}\n" for m in methods]
    (folder / "config").mkdir()
    (folder / "config" / "backends.yaml").write_text("".join(profiles))
    return folder


@pytest.fixture(scope="module")
def kernel(folder):
    tests = Path(__file__).parents[1]
    paths = [folder / "site", tests / "contract", tests / "journeys"]
    home = Home(folder / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, paths)))
        patch.setenv("JUPYTER_CONFIG_DIR", str(folder / "config"))
        kernel = Kernel(home, folder / "hanging.ipynb")
        kernel.home = home
        yield kernel
    kernel.close()
    if pid := manager.status(home).pid:
        process = psutil.Process(pid)
        process.kill()
        process.wait(240)
    end_trials(folder)


def end_trials(folder):
    """Have the trial stop whose backend never returns from `cancel`."""
    for control in folder.glob("*/experiments/*/trials/*/*/control"):
        (control / "stop").touch()
    wait_until(lambda: not started_in(folder), "the end of the trials")


def started_in(folder):
    """Return the supervisors and workers of trials below a folder."""
    return [process for process in psutil.process_iter(["cmdline"]) if _names(process, folder)]


def _names(process, folder):
    last_words = (process.info["cmdline"] or ())[-2:]
    return any(str(folder) in word for word in last_words)


def timed(kernel, code):
    begun_s = time.monotonic()
    return kernel.run(code), time.monotonic() - begun_s


def cell(name, backend, code=WAITS, flags=""):
    return CELL.format(name=name, flags=flags, backend=backend, code=code)


def test_a_cell_waits_for_no_place_whichever_question_hangs(kernel):
    names = [method.strip("_") for method in ASKED_BY_A_CELL]
    told, took_s = timed(kernel, cell("asked", f"[{', '.join(names)}]", flags="--check"))
    assert took_s < 5 + LOCAL_S
    for name in names:
        assert f"Backend '{name}' could not be asked: no answer within 5 s." in told
    told, took_s = timed(kernel, cell("shown", "render", flags="--dry-run"))
    assert took_s < 5 + LOCAL_S
    assert "The backend 'render' has not answered within 5 s." in told


def test_what_never_returns_keeps_neither_a_cell_nor_the_manager_nor_a_stop_waiting(kernel):
    for method in ENDS:
        _, took_s = timed(kernel, cell(method, method))
        assert took_s < 5 + LOCAL_S
    assert "meanwhile: SUCCEEDED" in kernel.run("%%autotrain meanwhile --wait\n---\nreport(acc=1)")
    experiments = {method: at.attach(method, home=kernel.home) for method in ENDS}
    for method in ("probe", "discover"):
        waits = f"Trial 1 waits: the backend '{method}' has not answered yet."
        wait_until(lambda why=experiments[method].why, waits=waits: waits in why(), waits)
    for method in ("put", "sizes", "fetch", "cancel"):
        wait_until(experiments[method].metrics, f"the first point of {method}")
    told, took_s = timed(kernel, STOPS.format(methods=list(ENDS), count=len(ENDS)))
    assert took_s < STOP_S + LOCAL_S
    for method, end in ENDS.items():
        receipt = told.partition(f"<{method}: ")[2].partition(">")[0]
        assert end in receipt, told
