"""The names that trial code imports from `nni.utils`."""

from __future__ import annotations

from typing import Any


def merge_parameter(base_params: Any, override_params: dict[str, Any] | None) -> Any:  # noqa: ANN401 - a namespace or a mapping
    """Set the values of a namespace of arguments, or of a mapping, that the trial's parameters name.

    Raises:
        ValueError: A parameter is none of them.
    """
    if override_params is None:
        return base_params
    known = base_params if isinstance(base_params, dict) else vars(base_params)
    for name, value in override_params.items():
        if name not in known:
            raise ValueError(f"the parameter {name!r} of the search is not among the arguments {', '.join(known)}")
        known[name] = value
    return base_params
