"""Real kernels of two notebooks: who is whose, over a restart, in Python, in a shell line, and when asked."""

from __future__ import annotations

import json
import re

import pytest

import jupyter_autotrain as at
from jupyter_autotrain.testing import wait_until
from tests.journeys.kernel import Kernel
from tests.patterns.notebooks import TIMES, bundle_in, patterns, try_notebook

WAITS = "import time\nreport(acc=0.25)\nwhile not should_stop():\n    time.sleep(0.05)"
WHOLE = "kernels"
BY_DEFAULT = "classes over several cells"  # of these; tests/patterns captures the others in the harness


def is_by_default(pattern):
    return pattern.file == WHOLE and pattern.about == BY_DEFAULT


REAL = [
    pytest.param(
        pattern, id=f"{pattern.file}: {pattern.about}", marks=[] if is_by_default(pattern) else pytest.mark.long
    )
    for pattern in patterns()
]


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
    kernel.run("%%autotrain rerun\n" + WAITS)
    shown = kernel.run("%%autotrain rerun --wait --on-rerun ask\nreport(acc=1)", answer="y")
    assert "The earlier run is stopped first. rerun: stopped in" in shown


DEFINITIONS = [
    "import math\nn_calls = 0",
    "def helper(x):\n    return math.sqrt(x) * gain",
    "class Net:\n    def forward(self, x):\n        return helper(x)",
    "def tick():\n    global n_calls\n    n_calls += 1\n    return n_calls",
    "schedule = lambda step: rate * step\nrate = 1",
]
TRAINING = "gain = 2\nrate = 5\ntick(); tick(); tick()\nreport(acc=Net().forward(16) + schedule(10) + n_calls)"


def bundle_of(name, home):
    return at.attach(name, home=home).record.spec.bundle


def test_functions_of_a_kernel_travel_as_source_and_see_what_the_cell_binds(kernels, home):
    kernel = kernels("source.ipynb")
    for cell in DEFINITIONS:
        kernel.run(cell)
    kernel.run(f"%%autotrain sources --wait\nobjective: maximize acc\n---\n{TRAINING}")
    assert at.attach("sources", home=home).best.value == 8 + 50 + 3
    how = {row.name: row.how for row in bundle_of("sources", home).captured}
    assert {name: how[name] for name in ("helper", "Net", "tick")} == dict.fromkeys(("helper", "Net", "tick"), "source")


@pytest.mark.parametrize("pattern", REAL)
def test_a_notebook_gives_the_same_bundle_and_output_in_a_kernel_as_in_the_harness(kernels, home, monkeypatch, pattern):
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # the order of sets in pickles
    kernel = kernels("same.ipynb")
    *before, training = pattern.cells
    for cell in before:
        kernel.run(cell)
    told = kernel.run(f"%%autotrain alike --wait\n{training}")
    forked = try_notebook(["%load_ext jupyter_autotrain", *pattern.cells], "alike", modules=())
    if forked.refused:
        assert forked.refused.splitlines()[0] in told
        return
    submitted = at.attach("alike", home=home)
    sent = bundle_in(home.bundle(submitted.id))
    assert script_and_table(sent) == script_and_table(forked.bundle)
    if pattern.file == WHOLE:  # nothing in these is random, names a folder or has an address
        assert comparable(sent) == comparable(forked.bundle)
        assert submitted.logs() == forked.there
        assert TIMES.sub("", kernel.run(training)) == forked.here


def script_and_table(bundle):
    """Return the script, how each name travels, and what is told, without the numbers of a process's threads."""
    manifest = json.loads(bundle["bundle.json"])
    how = [(row["name"], row["how"], row["origin"], row["stale"]) for row in manifest["captured"]]
    told = [re.sub(r"(Thread|Task)-\d+", r"\1", json.dumps(one)) for one in manifest["differences"]]
    return bundle["main.py"], how, told, manifest["files"], manifest["source_map"]


def comparable(bundle):
    """Return what must be equal of two whole bundles: all but random numbers, and identities that cloudpickle draws."""
    settled = {name: content for name, content in bundle.items() if "__generator_" not in name}
    files = {name: re.sub(rb"[0-9a-f]{32}", b"", content) for name, content in settled.items()}
    manifest = json.loads(bundle["bundle.json"])
    return files | {"bundle.json": {**manifest, "cwd": "", "sha256": "", "size_bytes": 0}}
