"""What holds for every plan, checked wherever one is made: each op in one stage, each block in one stage.

A plan that breaks it is a fault of the search, not of the request; it is never returned. Time linear in the ops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from jupyter_autotrain.errors import InvariantError

SHOWN = 3  # names in a message


def check_cover(stages: Iterable[Collection[object]], everything: Collection[object]) -> None:
    """Refuse stages that do not hold everything exactly once.

    Args:
        stages: What each stage holds.
        everything: What there is to hold; no duplicates.

    Raises:
        InvariantError: Naming some of what is missing, held twice or unknown.
    """
    held = list(stages)
    if sum(map(len, held)) == len(everything) and set(chain.from_iterable(held)) == set(everything):
        return
    counts = Counter(chain.from_iterable(held))
    missing = [str(item) for item in everything if item not in counts]
    twice = [str(item) for item, count in counts.items() if count > 1]
    strange = [str(item) for item in counts.keys() - set(everything)]
    raise _broken(
        f"The stages hold {sum(counts.values())} of {len(everything)} ops: {len(missing)} in no stage, {len(twice)} in "
        f"several, {len(strange)} unknown, such as {', '.join(map(repr, (missing + twice + strange)[:SHOWN]))}."
    )


def check_blocks(blocks: Sequence[range], count: int) -> None:
    """Refuse stages whose blocks are not `count` blocks in order, none left out, none twice, at least one per stage.

    Raises:
        InvariantError: With the blocks of each stage.
    """
    ends = [0, *(held.stop for held in blocks)]
    follows = all(held.start == end for held, end in zip(blocks, ends, strict=False))
    if not follows or ends[-1] != count or (count and not all(map(len, blocks))):
        shares = ", ".join(f"{held.start} to {held.stop}" for held in blocks)
        raise _broken(f"The stages hold blocks {shares} where there are {count} blocks.")


def _broken(found: str) -> InvariantError:
    return InvariantError(
        found,
        "Every op and every block lies in exactly one pipeline stage.",
        "This is a fault of the search, not of the model: no plan is given. Report it, and pin other stages.",
    )
