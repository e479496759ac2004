"""The rules by which the corpus picks cells and judges them."""

import ast

import numpy as np
import pytest

from tests.corpus.cells import Training, bound
from tests.corpus.compare import differences
from tests.corpus.outcome import Outcome, judge, lines_that_differ, told_lines, unexplained

NOTICE = "name how\n\nIn a trial, other than here:\n  not carried: the hook of net (cell [2])\n  ... and 1 more\nnote"
RAN_WELL = {"here": "", "trial": "", "reason": ""}


@pytest.mark.parametrize(
    ("cells", "trains"),
    [
        (["model.fit(X, y)"], True),
        (["def step():\n    loss.backward()"], False),
        (["def step():\n    loss.backward()", "def epoch():\n    step()", "epoch()"], True),
        (["class Net:\n    def learn(self):\n        self.model.fit(1)", "Net().learn()"], True),
        (["model.train()"], False),
        (["xgb.train(params, data)"], True),
        (["optimizer.step()"], True),
        (["next_step.step()"], False),
    ],
)
def test_a_cell_trains_when_what_runs_with_it_does(cells, trains):
    training = Training()
    assert [training.trains(ast.parse(cell)) for cell in cells][-1] is trains


def test_a_cell_binds_values_not_definitions_imports_or_targets_of_comprehensions():
    tree = ast.parse("import a\ndef f():\n    b = 1\nc = [d for d in e]\nfor g in c:\n    h = g\n_i = 1")
    assert bound(tree) == ["c", "g", "h"]


def test_values_are_equal_to_the_last_bit_and_nan_equals_nan():
    one, other = ({"a": [1.0, float("nan")], "b": np.array([0.1, np.nan])} for _ in range(2))
    assert differences(one, other) == []
    other["b"][0] = np.nextafter(0.1, 1)
    assert differences(one, other) == ["['b']"]
    assert differences({"a": 1}, {"a": 1.0}) == ["['a']"]
    assert differences([1, 2], [1]) == ["."]


def test_what_varies_from_run_to_run_is_left_out_but_for_measured_times():
    assert unexplained([".tree_.depth", ".params['x']"], [".tree_.nodes"]) == []
    assert unexplained([".scores_", ".fit_time_"], [".fit_time_"]) == [".scores_"]


def test_printed_lines_are_compared_where_two_ordinary_runs_agree():
    assert lines_that_differ("a 1\nb 2\n", "a 9\nb 2\n", "a 5\nb 2\n") == []
    assert len(lines_that_differ("a 1\nb 2\n", "a 9\nb 2\n", "a 5\nb 3\n")) == 1
    assert (
        lines_that_differ("<f at 0x7f00aa00>\n", "<f at 0x7f00aa00>\n", "[picture: 1.png]\n<f at 0x7f11bb11>\n") == []
    )


def test_a_difference_is_told_only_by_a_line_that_names_it():
    told = told_lines(NOTICE)
    assert told[0] == "not carried: the hook of net (cell [2])"
    for path, verdict in (("net.weight", "told"), ("loss", "different")):
        outcome = Outcome("n", 1, notice=told)
        judge(outcome, RAN_WELL, [path])
        assert outcome.verdict == verdict


def test_another_error_than_in_the_notebook_is_a_failure_and_the_same_one_is_equal():
    outcome = Outcome("n", 1)
    judge(outcome, {"here": "ValueError", "trial": "ValueError", "reason": ""}, [])
    assert outcome.verdict == "equal"
    judge(outcome, {"here": "", "trial": "ValueError", "reason": ""}, [])
    assert outcome.verdict == "failed"
    judge(outcome, {"here": "ValueError", "trial": "", "reason": ""}, [])
    assert outcome.verdict == "different"
