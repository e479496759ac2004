"""`early_stop:` is the name of a rule, or a mapping with what the rule waits for."""

import pytest

from jupyter_autotrain import header
from jupyter_autotrain.core.spec import Bundle
from jupyter_autotrain.core.tuner import EarlyStopOptions
from jupyter_autotrain.errors import HeaderError


def spec(text):
    cell = f"objective: maximize acc\nearly_stop: {text}\n---\nreport(acc=1)"
    return header.parse_cell("", cell, header.HeaderContext()).header.to_spec(bundle=Bundle(), name="x")


@pytest.mark.parametrize(
    ("text", "rule", "options"),
    [
        ("median", "median", EarlyStopOptions()),
        ("{rule: median, warmup_steps: 5, min_trials: 3}", "median", EarlyStopOptions(5, 3)),
        ("{rule: asha, warmup_steps: 20000}", "asha", EarlyStopOptions(20000)),
        ("{warmup_steps: 5}", "median", EarlyStopOptions(5)),
        ("none", "none", EarlyStopOptions()),
        ("{rule: threshold, lower: -1, upper: 10.5}", "threshold", EarlyStopOptions(lower=-1.0, upper=10.5)),
        ("{rule: patience, patience: 4, min_delta: 0.1}", "patience", EarlyStopOptions(patience=4, min_delta=0.1)),
        ("optuna:NopPruner", "optuna:NopPruner", EarlyStopOptions()),
        (
            "{rule: 'optuna:MedianPruner', options: {n_min_trials: 3}}",
            "optuna:MedianPruner",
            EarlyStopOptions(options={"n_min_trials": 3}),
        ),
    ],
)
def test_a_rule_is_named_shortly_or_with_its_options(text, rule, options):
    made = spec(text)
    assert (made.early_stop, made.early_stop_options) == (rule, options)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("medain", "line 3: early_stop: 'medain'; did you mean 'median'?"),
        ("{rule: medain}", "did you mean 'median'?"),
        ("{rule: median, warmup: 5}", "warmup_steps"),
        ("{rule: median, warmup_steps: -1}", "at least 0"),
    ],
)
def test_a_wrong_rule_or_option_is_told_with_the_nearest(text, told):
    with pytest.raises(HeaderError) as error:
        spec(text)
    assert told in str(error.value)


def test_the_assessor_of_nni_is_understood_with_its_first_step():
    cell = "objective: maximize acc\nassessor: {name: Medianstop, class_args: {start_step: 7}}\n---\nreport(acc=1)"
    made = header.parse_cell("", cell, header.HeaderContext()).header.to_spec(bundle=Bundle(), name="x")
    assert (made.early_stop, made.early_stop_options) == ("median", EarlyStopOptions(7))


def test_help_schema_and_completion_know_rule_and_options():
    text = header.help_text("early_stop")
    rules = "one of: none, median, asha, hyperband, curve, threshold, patience"
    for word in (rules, "early_stop.warmup_steps", "early_stop.min_trials", "warmup_steps: 5"):
        assert word in text
    short, section = header.json_schema()["properties"]["early_stop"]["anyOf"]
    assert short["enum"][:3] == ["none", "median", "asha"]
    assert section["$ref"].endswith("EarlyStopSection")
    cell = "%%autotrain\nearly_stop: {w\n---\nreport(acc=1)"
    assert header.completions(cell, cell.index("\n---")).matches == ("warmup_steps: ",)
    cell = "%%autotrain\nearly_stop: m\n---\nreport(acc=1)"
    assert header.completions(cell, cell.index("\n---")).matches == ("median",)
