"""The notebooks of the `.patterns` files beside this one: what a trial prints is equal, or it is told, or refused.

A file holds notebooks in percent format, the last cell being the one that trains, each under a line such as
`=== what it is about | equal`. Other outcomes are `refused: names`, `told: names` (where it is not equal, these names
are told), and `safe: names` (any of the three).
"""

from collections import Counter
from pathlib import Path

import pytest

HEAD = "=== "
NEXT_CELL = "# %%\n"
FEWEST = 60


def notebooks():
    for file in sorted(Path(__file__).parent.glob("*.patterns")):
        for text in file.read_text(encoding="utf-8").split(f"\n{HEAD}")[1:]:
            head, _, body = text.partition("\n")
            about, _, outcome = head.partition(" | ")
            how, _, names = outcome.partition(":")
            wanted = [name.strip() for name in names.split(",") if name.strip()]
            cells = [cell.strip("\n") for cell in body.split(NEXT_CELL)]
            yield pytest.param(cells, how, wanted, id=f"{file.stem}: {about}")


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


def test_there_are_many_patterns_and_none_twice():
    ids = Counter(param.id for param in notebooks())
    assert len(ids) >= FEWEST
    assert [name for name, times in ids.items() if times > 1] == []
