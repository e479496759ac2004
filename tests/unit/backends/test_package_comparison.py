"""Tests that what a place lacks is refused with the line that installs it, and that other versions are told."""

import pytest

from jupyter_autotrain.agent.environments.python_environment import (
    InterpreterReport,
    PythonPackage,
    differences,
    refuse,
)
from jupyter_autotrain.backends.python_packages import InterpreterCheck
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

TORCH = PythonPackage("torch", "2.13.0+cpu", ("torch",))
LEARN = PythonPackage("scikit-learn", "1.9.1", ("sklearn",))
NUMPY = PythonPackage("numpy", "2.4.6", ("numpy",), is_in_data=True)


def report(node, python="3.11.7", fault="", **versions):
    found = {name.replace("_", "-"): version for name, version in versions.items()}
    return InterpreterReport(node, "/opt/venv/bin/python", python, found, fault)


def refused(*reports, packages=(TORCH, LEARN)):
    with pytest.raises(BackendUnavailableError) as caught:
        refuse(reports, packages)
    return caught.value


def test_all_that_is_missing_on_all_nodes_is_named_with_the_lines_that_install_it():
    error = refused(report("gpu1"), report("gpu2", torch="2.13.0"))
    assert "gpu1: missing torch, scikit-learn; gpu2: missing scikit-learn" in error.found
    assert error.action.splitlines() == [
        "gpu1: /opt/venv/bin/python -m pip install torch==2.13.0 scikit-learn==1.9.1",
        "gpu2: /opt/venv/bin/python -m pip install scikit-learn==1.9.1",
        "Or write `environment: match`, to have one made there.",
    ]


def test_into_the_operating_systems_own_interpreter_nothing_is_installed():
    there = InterpreterReport("gpu1", "/usr/bin/python3", "3.11.2", {"numpy": "1.26.4"}, is_managed=True)
    made = (
        "gpu1: /usr/bin/python3 -m venv ~/venv && ~/venv/bin/python -m pip install {}; then `python: ~/venv/bin/python`"
    )
    for package in (LEARN, NUMPY):
        wanted = made.format(f"{package.name}=={package.version}")
        assert refused(there, packages=(package,)).action.startswith(wanted)


def test_many_nodes_are_cut_short():
    error = refused(*(report(f"gpu{number}") for number in range(9)))
    assert len(str(error).splitlines()) <= 6
    assert "and 7 more" in error.action


def test_other_versions_are_no_error_and_major_ones_are_marked():
    there = report("gpu1", torch="2.13.0+cu128", scikit_learn="0.24.2")
    refuse([there], (TORCH, LEARN))
    assert differences([there], (TORCH, LEARN), "3.11.2") == [
        "gpu1: other versions than here: scikit-learn 0.24.2, here 1.9.1 (another major version)"
    ]


def test_another_python_is_told():
    there = report("gpu1", python="3.9.2", torch="2.13.0")
    assert differences([there], (TORCH,), "3.11.7") == ["gpu1: other versions than here: Python 3.9.2, here 3.11.7"]


def test_pickled_data_needs_the_same_major_version():
    assert "pickled data depends on it" in refused(report("gpu1", numpy="1.26.4"), packages=(NUMPY,)).found
    near = report("gpu1", numpy="2.3.0")
    refuse([near], (NUMPY,))
    assert differences([near], (NUMPY,), "3.11.7") == [
        "gpu1: other versions than here: numpy 2.3.0, here 2.4.6 (pickled data depends on it)"
    ]


def test_an_interpreter_that_cannot_be_used_or_is_too_old_is_refused():
    assert "no such file" in refused(report("gpu1", fault="no such file.")).found
    assert "Python 3.8.1 is too old" in refused(report("gpu1", python="3.8.1")).found


def test_of_an_image_that_is_not_there_yet_nothing_is_known():
    unknown = InterpreterReport("gpu1")
    refuse([unknown], (TORCH,))
    assert differences([unknown], (TORCH,), "3.11.7") == []


def test_a_node_is_asked_before_its_first_trial_and_not_again_once_it_has_all():
    trial = TrialSpec("e", 1, 1, python_packages=(TORCH,))
    asked = []
    answers = [report("gpu1"), report("gpu1", torch="2.13.0")]

    def ask():
        asked.append(len(asked))
        return [answers[len(asked) - 1]]

    check = InterpreterCheck()
    with pytest.raises(BackendError, match="pip install torch==") as caught:
        check.check("gpu1", trial, ask)
    assert not isinstance(caught.value, BackendUnavailableError)
    check.check("gpu1", trial, ask)
    check.check("gpu1", trial, ask)
    assert len(asked) == 2
