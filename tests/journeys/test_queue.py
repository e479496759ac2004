"""Experiments of one home in one queue: what waits is told what for, and a higher priority goes first."""

from __future__ import annotations

from jupyter_autotrain import backends
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.profile import LOCAL
from jupyter_autotrain.testing import wait_until

WAITS = "import os, time\nwhile not os.path.exists({!r}):\n    time.sleep(0.02)\nreport(acc=1)"


def test_a_higher_priority_goes_first_and_why_says_what_each_trial_waits_for(notebook, home, tmp_path):
    (here,) = backends.create(LOCAL.profile, BackendContext(home)).discover().nodes
    all_cpus = f"resources: {{cpus: {here.cpus}}}"

    def submit(name, header=""):
        notebook.run(f"%%autotrain {name}\n{all_cpus}\n{header}\n---\n{WAITS.format(str(tmp_path / name))}")
        return notebook.value("_")

    running = submit("holding")
    wait_until(lambda: running.state == "RUNNING", "the first one")
    low = submit("low")
    high = submit("high", "priority: 5")
    wait_until(lambda: any("priority" in one for one in low.why()), "what it waits for")
    (blocked,) = high.why()
    assert f"{here.cpus:g} CPU" in blocked
    assert "trial 1 of holding@1 holds" in blocked
    assert "it starts when enough of that ends" in blocked
    assert "trial 1 of high@1 comes first by its priority of 5" in " ".join(low.why())
    (tmp_path / "holding").touch()
    wait_until(lambda: high.state == "RUNNING", "the one of the higher priority")
    assert [str(trial.state) for trial in low.trials] == ["WAITING"]
    notebook.run("%autotrain update low --priority 9")
    assert low.record.spec.priority == 9
    for name in ("high", "low"):
        (tmp_path / name).touch()
    assert low.wait(240)
    assert (high.state, low.state) == ("SUCCEEDED", "SUCCEEDED")
