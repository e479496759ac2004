"""The notebooks of the `.patterns` files beside this one: what a trial prints is equal, or it is told, or refused.

A file holds notebooks in percent format, the last cell being the one that trains, each under a line such as
`=== what it is about | equal`. Other outcomes are `refused: names`, `told: names` (where it is not equal, these names
are told), and `safe: names` (any of the three). By default the first ones of each outcome in a file are tried.
"""

import re
from collections import Counter

import pytest

from tests.patterns.notebooks import patterns

FEWEST = 60
BY_DEFAULT = 2
SETTLES = re.compile(r"`(setup: \[[\d, ]+\]|ship: \[[^\]]+\])`")


def notebooks():
    alike = Counter()
    for pattern in patterns():
        how, _, names = pattern.outcome.partition(":")
        wanted = [name.strip() for name in names.split(",") if name.strip()]
        alike[pattern.file, how] += 1
        marks = [pytest.mark.long] if alike[pattern.file, how] > BY_DEFAULT else []
        yield pytest.param(pattern.cells, how, wanted, id=f"{pattern.file}: {pattern.about}", marks=marks)


@pytest.mark.parametrize(("cells", "how", "names"), [*notebooks()])
def test_a_trial_is_equal_or_told_or_refused(tried, cells, how, names):
    outcome = tried(cells)
    if outcome.refused:
        assert how in {"refused", "safe"}, outcome.refused
        assert [name for name in names if name not in outcome.refused] == [], outcome.refused
        return
    assert how in {"equal", "told", "safe"}, f"not refused; here:\n{outcome.here}\nthere:\n{outcome.there}"
    assert outcome.here, "a pattern that prints nothing shows nothing"
    if outcome.equal or how == "equal":
        assert outcome.here == outcome.there, outcome.script
        assert outcome.ended_here == outcome.ended_there == 0, outcome.here
    else:
        assert [name for name in names if not outcome.tells(name)] == [], (outcome.told, outcome.here, outcome.there)
        check_that_the_told_line_settles_it(tried, cells, outcome)


def check_that_the_told_line_settles_it(tried, cells, outcome):
    lines = {found[1] for one in outcome.told if (found := SETTLES.search(one))}
    for line in lines:
        again = tried((*cells[:-1], f"{line}\n---\n{cells[-1]}"))
        assert (again.refused, again.here) == ("", again.there), again.script


def test_there_are_many_patterns_and_none_twice():
    ids = Counter(param.id for param in notebooks())
    assert len(ids) >= FEWEST
    assert [name for name, times in ids.items() if times > 1] == []
