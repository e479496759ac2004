"""`objective:` says which metric ranks trials, which way, and over which of its values."""

import json
import re

import pytest

from jupyter_autotrain import header
from jupyter_autotrain.core.objective import Direction, Objective, Summary
from jupyter_autotrain.errors import HeaderError


def pattern():
    return header.json_schema()["properties"]["objective"]["anyOf"][0]["pattern"]


MIN = Direction.MINIMIZE
MAX = Direction.MAXIMIZE


@pytest.mark.parametrize(
    ("text", "meant", "label"),
    [
        ("maximize val_acc", Objective("val_acc", MAX), "val_acc (last)"),
        ("maximize last(val_acc)", Objective("val_acc", MAX), "val_acc (last)"),
        ("maximize max(val_acc)", Objective("val_acc", MAX, Summary.MAX), "max(val_acc)"),
        ("min min( loss )", Objective("loss", MIN, Summary.MIN), "min(loss)"),
        ("minimize mean(loss, last=5)", Objective("loss", MIN, Summary.MEAN, 5), "mean(loss, last=5)"),
        ("minimize mean(loss,last = 5)", Objective("loss", MIN, Summary.MEAN, 5), "mean(loss, last=5)"),
        ("maximize min(val/acc, last=3)", Objective("val/acc", MAX, Summary.MIN, 3), "min(val/acc, last=3)"),
        ({"metric": "max(acc)", "direction": "maximize"}, Objective("acc", MAX, Summary.MAX), "max(acc)"),
    ],
)
def test_an_objective_says_over_which_values_it_is_taken(text, meant, label):
    (objective,) = header.from_mapping({"objective": text}).objective
    assert (objective, objective.label) == (meant, label)
    assert isinstance(text, dict) or re.search(pattern(), text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("maximize maxx(acc)", "did you mean `maximize max(acc)`?"),
        ("maximise mean(acc)", "did you mean `maximize mean(acc)`?"),
        ("maximize median(acc)", "did you mean `maximize mean(acc)`?"),
        ("maximize best(acc)", "expected one of last, max, min, mean before (acc)"),
        ("minimize mean(loss, 5)", "write `mean(loss, last=5)`"),
        ("minimize mean(loss, lasst=5)", "write `mean(loss, last=5)`"),
        ("minimize mean(loss, last=0)", "write `mean(loss, last=5)`"),
        ("minimize mean(loss, last=5000)", "at most 1000"),
        ("minimize last(loss, last=5)", "write `mean(loss, last=5)`"),
        ("minimize loss)", "expected `maximize METRIC`"),
        ("minimize mean()", "expected `maximize METRIC`"),
        ("minimize loss acc", "expected `maximize METRIC`"),
        ("minimize", "expected `maximize METRIC`"),
        ("loss", "expected `maximize METRIC`"),
    ],
)
def test_a_wrong_objective_is_told_with_the_nearest_spelling(text, told):
    with pytest.raises(HeaderError) as error:
        header.parse_cell("", f"objective: {text}\n---\nreport(loss=1)", header.HeaderContext())
    assert str(error.value).startswith("line 2: objective: ")
    assert "last=" in text or not re.search(pattern(), text)
    assert told in str(error.value)


def test_the_flag_takes_an_objective_with_and_without_quotes():
    for line in ("--objective minimize mean(loss, last=5) --wait", "--objective 'minimize mean(loss, last=5)' --wait"):
        found = header.parse_cell(line, "", header.HeaderContext())
        assert found.header.objective == (Objective("loss", MIN, Summary.MEAN, 5),)
        assert found.flags.wait


def test_the_schema_and_the_help_know_every_form():
    text, mapping, _, _ = header.json_schema()["properties"]["objective"]["anyOf"]
    assert mapping["type"] == "object"
    for good in ("maximize val_acc", "maximize max(val_acc)", "minimize mean(loss, last=5)"):
        assert re.search(text["pattern"], good)
        assert f"example: objective: {good}" in header.help_text("objective")
    assert not re.search(text["pattern"], "val_acc")
    assert "last value" in header.help_text("objective")
    assert json.dumps(header.json_schema())


def test_completion_offers_the_forms_of_each_reported_metric():
    cell = "%%autotrain\nobjective: minimize \n---\nreport(loss=1)"
    found = header.completions(cell, cell.index("\n---"))
    assert set(found.matches) == {"minimize loss", "minimize min(loss)", "minimize mean(loss, last=5)"}
