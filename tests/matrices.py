"""Matrices of which a part does by default: of parameters, and of the contract of backends at each place."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import TypeVar

import pytest

_Value = TypeVar("_Value")
# Of the contract: what the agent does, by the same code at every place. By default it is tested on this machine.
_OF_THE_AGENT = frozenset({
    "test_a_crash_of_native_code_is_told_by_its_signal",
    "test_a_missing_package_is_told_with_the_command_that_brings_it",
    "test_a_trial_goes_on_from_the_checkpoint_of_a_trial_of_another_experiment",
    "test_a_trial_imports_its_own_shipped_module_and_not_that_of_another",
    "test_a_trial_whose_source_has_no_checkpoint_begins_anew_and_says_so",
    "test_an_objective_that_could_not_be_kept_fails_the_trial_with_a_reason",
    "test_an_objective_that_is_never_reported_fails_the_trial",
    "test_attempts_that_save_nothing_or_never_run_hide_no_checkpoint",
    "test_exit_0_is_no_failure_and_exit_3_is_one",
    "test_metrics_come_in_order_with_steps_counted_when_not_given",
    "test_parameters_reach_the_cell_in_all_three_ways",
    "test_processes_cut_loose_by_a_cell_do_not_outlive_it",
    "test_the_first_frame_tells_the_version_of_the_wire",
    "test_the_seed_makes_two_runs_alike",
})  # fmt: skip
_HERE = tuple(f"tests/contract/test_backend_contract.py::{name}" for name in ("TestLocal", "TestDebug"))


def long_besides(default: Collection[_Value], whole: Iterable[_Value]) -> list[object]:
    """Return the whole matrix as parameters where what takes long was asked for; else those in `default`.

    What is not even made is not collected in each of several processes.
    """
    if not os.environ.get("AUTOTRAIN_LONG_TESTS"):
        return [value for value in whole if value in default]
    return [value if value in default else pytest.param(value, marks=pytest.mark.long) for value in whole]


def is_tested_here(item: pytest.Item) -> bool:
    """Return whether a test of a place proves what the same one does on this machine; on a real cluster it is more."""
    name = getattr(item, "originalname", item.name)
    return name in _OF_THE_AGENT and not item.nodeid.startswith(_HERE) and not item.get_closest_marker("cluster")
