"""How the parts of pandas tables are pickled, so that they are copied when they are written to, as here."""

from __future__ import annotations

import sys
from typing import Any

from jupyter_autotrain.capture.values.array_layout import ArrayLayout, ReducedValue
from jupyter_autotrain.capture.values.embedded import Embedded

_BLOCK = Embedded("block")


def reduce_table_part(value: Any, layout: ArrayLayout) -> ReducedValue:  # noqa: ANN401 - any part of a table
    """Pickle the inside of a table, or an index; other values as pickle does it."""
    pandas = sys.modules.get("pandas")
    internals = sys.modules.get("pandas.core.internals.managers")
    if pandas is None or internals is None:
        return None
    if isinstance(value, pandas.Index):
        return _index(value, layout)
    if isinstance(value, internals.BaseBlockManager):
        return _manager(value)
    if type(value).__name__ == "BlockValuesRefs":
        return type(value), ()
    if isinstance(value, internals.Block) and _is_counted(value):
        return _BLOCK, (value.values, (value.mgr_locs.indexer, value.ndim), value.refs)
    return None


def set_on_table(value: Any) -> list[str]:  # noqa: ANN401 - as above
    """Return the attributes that were set on a table or a column by hand; pandas keeps them in no pickle."""
    core = sys.modules.get("pandas.core.generic")
    if core is None or not isinstance(value, core.NDFrame):
        return []
    return [name for name in vars(value) if not name.startswith("_") and name not in value._metadata]  # noqa: SLF001 - as pandas does


def _is_counted(block: Any) -> bool:  # noqa: ANN401 - a block
    """Whether another block has the same values: both must know, else writing to one changes the other."""
    references = getattr(block, "refs", None)
    return references is not None and references.has_reference()


def _manager(value: Any) -> ReducedValue:  # noqa: ANN401 - what holds the blocks of a table
    if not any(map(_is_counted, value.blocks)):
        return None
    single = len(value.axes) == 1
    return type(value), (value.blocks[0], value.axes[0]) if single else (value.blocks, value.axes)


def _index(value: Any, layout: ArrayLayout) -> ReducedValue:  # noqa: ANN401 - an index
    """An index never changes, so its values need not be those of a column that may."""
    reduced = value.__reduce__()
    data = reduced[1][1].get("data") if len(reduced) > 1 and isinstance(reduced[1][-1], dict) else None
    if not isinstance(data, sys.modules["numpy"].ndarray):
        return None
    alone = data.view()
    layout.keep_apart(alone)
    make, (kind, parts), *rest = reduced
    return make, (kind, {**parts, "data": alone}), *rest
