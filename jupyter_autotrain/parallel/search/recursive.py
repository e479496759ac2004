"""Placeholder."""

from jupyter_autotrain.parallel.search.space import Candidate
from jupyter_autotrain.parallel.search.whole import Search


def recursive(search: Search, found: list[Candidate]) -> None:
    """Later."""
    search.run(found)
