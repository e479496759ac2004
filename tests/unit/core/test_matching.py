"""The nearest known name."""

from jupyter_autotrain.core.matching import closest_match, closest_matches

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
