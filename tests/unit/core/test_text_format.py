"""Tests of how values read, and the nearest known name."""

from __future__ import annotations

import pytest

from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.core.text_format import closest_match, closest_matches, count, cut, duration, number, parameters


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"lr": 0.0123456, "width": 64, "act": "relu"}, "lr=0.01235 width=64 act=relu"),
        ({"model": {"_name": "big", "width": 15, "depth": 1.7961816}}, "model=big(width=15 depth=1.796)"),
        ({"layer": {"_name": "Empty"}}, "layer=Empty"),
        ({"x": {"a": 1}}, "x=(a=1)"),
        ({}, ""),
    ],
)
def test_parameters_read_on_one_line(params, text):
    assert parameters(params) == text


def test_numbers_durations_sizes_and_counts_read_at_a_glance():
    assert [number(value) for value in (None, float("nan"), 0.123456, 12)] == ["-", "NaN", "0.1235", "12"]
    assert [duration(s) for s in (0.44, 12.3, 185, 7800)] == ["0.4 s", "12 s", "3 min 05 s", "2 h 10 min"]
    assert [format_bytes(b) for b in (12, 3_400, 56_000_000)] == ["12 B", "3.4 kB", "56 MB"]
    rounded_up = [format_bytes(b, up=True) for b in (12, 7_020_000, 7_100_000, 157_040_000_000)]
    assert rounded_up == ["12 B", "7.02 MB", "7.1 MB", "158 GB"]
    assert (count(1, "trial"), count(3, "trial")) == ("1 trial", "3 trials")
    assert cut("one\ntwo three", 7) == "one tw…"


KNOWN = ("trials", "timeout", "Backend")


def test_the_closest_name_is_found_in_any_letter_case():
    assert closest_match("TRAILS", KNOWN) == "trials"
    assert closest_match("backnd", KNOWN) == "Backend"


def test_nothing_similar_gives_no_name_unless_any_will_do():
    assert closest_match("zzz", KNOWN) == ""
    assert closest_match("zzz", KNOWN, cutoff=0.0) in KNOWN
    assert closest_match("zzz", (), cutoff=0.0) == ""


def test_the_best_matches_come_first_and_long_names_are_cut():
    assert closest_matches("trial", (*KNOWN, "trial_s"), most=2) == ["trials", "trial_s"]
    assert closest_match("x" * 1_000_000, ["x" * 64]) == "x" * 64
