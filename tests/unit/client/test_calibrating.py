"""Measuring a place by a trial there, and planning for it by its name."""

import json
import stat
from dataclasses import replace

import pytest

from jupyter_autotrain import plan
from jupyter_autotrain.agent.json import to_json
from jupyter_autotrain.client import calibrating
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.measurement import MEASUREMENT_LEVEL, Measurement
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError, PlanError
from jupyter_autotrain.store import Ingest, Store
from tests.example_graphs import gpt
from tests.unit.parallel.calibrate.test_fitting import calibration, samples

SMALL = {"width": 64, "layers": 2, "heads": 4, "sequence": 32, "vocabulary": 128}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_HOME", str(tmp_path / "home"))
    return Home(tmp_path / "home")


def source(ranks):
    """Return a script that takes the place of the measurements."""
    device = {"name": "CPU", "type": "cpu", "memory_bytes": 8 << 30, "multiprocessors": 1, "cpus": 2, "torch": "2"}
    found = [sample for count in (1, ranks) for sample in samples(count)]
    text = json.dumps({"device": device, "samples": found})
    return f"def main(cpus):\n    open('measured.json', 'w').write({text!r})\n"


def test_a_trial_at_the_place_makes_a_machine_that_plan_knows_by_name(home, monkeypatch):
    monkeypatch.setattr(calibrating, "probe_source", lambda: source(2))
    told = []
    found = calibrating.calibrate("local", workers=2, home=home, say=told.append)
    assert [one.ranks for one in found.constants] == [1, 2]
    assert told[0].startswith("Measuring at local with up to 2 ranks")
    assert stat.S_IMODE(home.calibration("local").stat().st_mode) == 0o600
    made = plan(gpt(batch=8, **SMALL), None, "2xlocal")
    assert made.cluster.device.name == "local"
    assert made.request.settings.efficiency.launch_s == pytest.approx(5e-6)
    assert type(made).from_json(made.to_json()).cost == made.cost


@pytest.mark.timeout(300)
def test_what_ranks_of_this_machine_measure_makes_constants(home, monkeypatch):
    pytest.importorskip("torch")
    once = (
        calibrating.probe_source()
        .replace("MOST_S = 15.0", "MOST_S = 0.0")
        .replace("LONGEST_S = 0.04", "LONGEST_S = 0.0")
    )
    monkeypatch.setattr(calibrating, "probe_source", lambda: once)
    found = calibrating.calibrate("local", workers=2, home=home, say=str)
    assert [one.ranks for one in found.constants] == [1, 2]
    for one in found.constants:
        assert {"native_dropout", "gelu", "_softmax"} <= one.kernels.keys()
        assert min(one.matrix32_flops_per_s, one.memory_bytes_per_s, one.update) > 0
    assert found.constants[1].link_bytes_per_s + found.constants[1].latency_s > 0


def test_a_measurement_that_fails_is_told_with_its_reason(home, monkeypatch):
    monkeypatch.setattr(calibrating, "probe_source", lambda: "def main(cpus):\n    raise ValueError('no torch here')\n")
    with pytest.raises(AutotrainError, match=r"is FAILED: .*no torch here"):
        calibrating.calibrate("local", workers=1, home=home, say=str)


def test_a_place_that_is_not_there_is_told(home):
    with pytest.raises(PlanError, match="no place 'nowhere'"):
        calibrating.calibrate("nowhere", home=home, say=str)


def test_more_ranks_than_were_measured_are_refused(home):
    calibrating.keep(home, calibration())
    with pytest.raises(PlanError, match="calibrated for up to 4 ranks, and 16 are asked for"):
        plan(gpt(batch=16, **SMALL), None, "16xlab")


def test_a_damaged_calibration_is_told(home):
    calibrating.keep(home, calibration())
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    home.calibration("lab").write_text('{"format": 99}')
    with pytest.raises(PlanError, match="Measure again: %autotrain calibrate --backend lab"):
        plan(gpt(batch=8, **SMALL), None, "lab")


def measured(home, predicted_s, times=3):
    told = Measurement("gpt", "DDP over 2", "2xlab", ("lab",), predicted_s, 1.0, (1.0,))
    with Store.open(home) as store:
        store.add_experiment("a1", ExperimentSpec("a", Bundle()), 1.0)
        store.add_trial("a1", 1, {}, 1.0)
        texts = [json.dumps(to_json(replace(told, plan=f"plan {number}"))) for number in range(times)]
        notes = [(5.0, MEASUREMENT_LEVEL, text, 1) for text in texts]
        store.ingest([Ingest("a1", 1, 1, "metrics", 1, notes=notes)])


@pytest.mark.parametrize(("predicted_s", "times", "share"), [(1.02, 3, 0.03), (1.02, 2, 0.05), (1.2, 3, 0.05)])
def test_plans_are_told_apart_by_the_error_that_was_measured(home, predicted_s, times, share):
    calibrating.keep(home, calibration())
    measured(home, predicted_s, times)
    made = plan(gpt(batch=8, **SMALL), None, "2xlab")
    assert made.request.simplicity == share
    assert f"measured here were predicted within {predicted_s - 1:.0%}" in made.notes[-1]
    assert type(made).from_json(made.to_json()).notes == made.notes


def test_plans_for_other_devices_say_nothing_of_it(home):
    measured(home, 1.02)
    made = plan(gpt(batch=8, **SMALL), None, "2xA100")
    assert made.accuracy is None
