"""Which variables are passed on."""

import pytest

from jupyter_autotrain.agent import environment
from jupyter_autotrain.agent.wire import MANAGER_VARIABLE, TRIAL_VARIABLE


def test_the_usual_variables_are_passed_and_all_others_stay():
    usual = {
        "PATH": "/bin", "HOME": "/home/a", "LANG": "C", "LC_ALL": "C", "CUDA_VISIBLE_DEVICES": "0", "TZ": "UTC",
        "OMP_NUM_THREADS": "2", "https_proxy": "http://proxy:3128", "VIRTUAL_ENV": "/v", "CONDA_PREFIX": "/c",
        "HF_HOME": "/hf", "PYTHONPATH": "/lib",
    }  # fmt: skip
    others = {"CANARY": "x", "PS1": "$", "JPY_PARENT_PID": "7", TRIAL_VARIABLE: "/t", "AWS_ACCESS_KEY_ID": "AKIA"}
    assert environment.passed(usual | others) == usual


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("https_proxy", "http://user:passw0rd@proxy:3128"),
        ("CONDA_TOKEN", "anything"),
        ("PYTHON_API_KEY", "x"),
        ("TORCH_HOME", "hf_" + "a1B2" * 8),
    ],
)
def test_what_looks_like_a_secret_is_held_back_and_named(name, value):
    environ = {"HOME": "/home/a", name: value}
    assert environment.passed(environ) == {"HOME": "/home/a"}
    assert environment.held_back(environ) == [name]
    assert name not in environment.of_manager(environ)


def test_more_names_may_be_passed_but_no_secret_by_a_wildcard():
    environ = {"MY_MODE": "fast", "MY_TOKEN": "t", "OTHER": "o"}
    assert environment.passed(environ, ["MY_*"]) == {"MY_MODE": "fast"}


def test_a_star_stands_for_any_text_anywhere_in_a_name():
    environ = {"A_MODE": "1", "A_B_MODE": "2", "A_B_C": "3", "A": "4"}
    assert environment.passed(environ, ["A_*MODE"]) == {"A_MODE": "1", "A_B_MODE": "2"}
    assert environment.passed(environ, ["*_B_*"]) == {"A_B_MODE": "2", "A_B_C": "3"}
    assert environment.passed(environ, ["*_C", "A"]) == {"A_B_C": "3", "A": "4"}


def test_a_manager_started_in_a_trial_does_not_carry_its_mark():
    kept = environment.of_manager({TRIAL_VARIABLE: "/t", "JUPYTER_AUTOTRAIN_IDLE_MIN": "1", "CANARY": "x"})
    assert {name for name in kept if "MALLOC" not in name} == {"PATH", "JUPYTER_AUTOTRAIN_IDLE_MIN", MANAGER_VARIABLE}
    assert kept[MANAGER_VARIABLE] == "/t"
    assert environment.of_manager(kept)[MANAGER_VARIABLE] == ""


def test_a_manager_keeps_one_heap_unless_its_starter_says_otherwise():
    assert environment.of_manager({})["MALLOC_ARENA_MAX"] == "1"
    assert environment.of_manager({"MALLOC_ARENA_MAX": "4"})["MALLOC_ARENA_MAX"] == "4"
    assert "MALLOC_ARENA_MAX" not in environment.passed({})


@pytest.mark.parametrize("name", ["SLURM_CONF", "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"])
def test_a_manager_finds_clusters_as_its_starter_does_and_its_trials_do_not(name: str) -> None:
    assert environment.of_manager({name: "x"})[name] == "x"
    assert name not in environment.passed({name: "x"})
