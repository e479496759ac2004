"""Journeys share one home: what one of them names, no other may name."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

JOURNEYS = Path(__file__).parents[2] / "journeys"
NAMED = re.compile(r"%%autotrain ([a-z][\w-]*)|submit\(\"([a-z][\w-]*)\"")


def test_each_experiment_of_the_journeys_is_named_by_one_file():
    files = defaultdict(set)
    for file in JOURNEYS.glob("*.py"):
        for names in NAMED.findall(file.read_text(encoding="utf-8")):
            files["".join(names)].add(file.name)
    assert files
    assert {name: found for name, found in files.items() if len(found) > 1} == {}
