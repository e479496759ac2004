"""The values that a cell sees as `params` and `trial`."""

from __future__ import annotations


class Params(dict[str, object]):
    """The trial's parameters: `params.lr` and `params["lr"]` are the same."""

    def __getattr__(self, name: str) -> object:
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(f"this trial has no parameter {name!r}; it has: {', '.join(self) or 'none'}") from None
        return Params(value) if type(value) is dict else value


class TrialNamespace:
    """The trial, as its cell sees it: `trial.report(...)`, `trial.params`.

    Args:
        **members: The names a cell may use.
    """

    def __init__(self, **members: object) -> None:
        vars(self).update(members)

    def __repr__(self) -> str:
        return f"<trial with {', '.join(vars(self))}>"
