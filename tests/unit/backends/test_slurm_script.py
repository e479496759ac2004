"""The script that `sbatch` gets, whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_autotrain.backends.slurm.backend import SlurmBackend
from jupyter_autotrain.backends.slurm.options import SlurmOptions
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources, TrialSpec

GOLDEN = Path(__file__).parents[2] / "golden" / "slurm_script.sh"
OPTIONS = {
    "partition": "gpu", "account": "lab42", "gpu_type": "a100", "extra": ["--constraint=ib"],
    "setup": ["module load cuda"], "requeue": True, "time": 7200,
}  # fmt: skip


def script(tmp_path: Path, resources: Resources, options: dict, **spec: object) -> str:
    backend = SlurmBackend(Profile("cluster", "slurm", options), BackendContext(Home(tmp_path / "home")))
    trial = TrialSpec("20261121-digits", 3, 1, resources=resources, **spec)
    return backend.render(trial, Placement()).files["script"]


def test_the_golden_script_is_as_it_was(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    whole = Resources(cpus=3.5, memory_bytes=2_000_000_000, gpus=2, nodes=2, workers_per_node=2)
    reuse = {"reuse": 4, "reuse_idle": 300.0, "requeue": True, "time": 7200}
    texts = [script(tmp_path, whole, OPTIONS, timeout_s=90.0), script(tmp_path, Resources(), {})]
    text = "\n".join([*texts, script(tmp_path, Resources(gpus=1), reuse, timeout_s=90.0)])
    if request.config.getoption("--golden-update"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_a_trial_with_secrets_is_never_begun_again_by_slurm(tmp_path: Path) -> None:
    text = script(tmp_path, Resources(), {"requeue": True}, secrets=("TOKEN",))
    assert "#SBATCH --no-requeue" in text
    assert "TOKEN" not in text


@pytest.mark.parametrize("bad", ["--array=0-9", "constraint=a100", "--export=ALL", "--wrap=x\n#SBATCH --y"])
def test_extra_takes_no_option_that_the_backend_sets_and_nothing_else(bad: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        SlurmOptions.model_validate({"extra": [bad]})


def test_a_long_job_has_time_for_a_whole_trial_and_one_on_several_nodes_is_a_job_of_its_own(tmp_path: Path) -> None:
    assert "#SBATCH --time=121\n" in script(tmp_path, Resources(), {"reuse": 1}, timeout_s=7200.0)
    assert "#SBATCH --time=60\n" in script(tmp_path, Resources(), {"reuse": 1}, timeout_s=10.0)
    assert "slurm_pilot" not in script(tmp_path, Resources(nodes=2), {"reuse": 1})


def test_reuse_may_be_a_truth_and_never_less_than_0() -> None:
    assert SlurmOptions.model_validate({"reuse": True}).reuse == 1
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        SlurmOptions.model_validate({"reuse": -1})


def test_via_and_extra_may_be_given_as_one_text() -> None:
    assert SlurmOptions.model_validate({"via": "login1", "extra": "--qos=long"}).extra == ("--qos=long",)
