"""The objects `params` and `trial` of a cell; `trial` also answers to the calls of an Optuna trial."""

from __future__ import annotations

from collections.abc import Callable


class Params(dict[str, object]):
    """The trial's parameters: `params.lr` and `params["lr"]` are the same."""

    def __getattr__(self, name: str) -> object:
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(f"this trial has no parameter {name!r}; it has: {', '.join(self) or 'none'}") from None
        return Params(value) if type(value) is dict else value


class TrialNamespace:
    """The trial, as its cell sees it: `trial.report(...)`, `trial.params`, and as Optuna's code sees it.

    Args:
        suggested: The parameters that `suggest_...` gives.
        should_stop: The trial's own, which `should_prune` asks too.
        **members: The names a cell may use.
    """

    def __init__(self, suggested: Params, should_stop: Callable[[], bool], **members: object) -> None:
        self._suggested = suggested
        self.should_stop = should_stop
        vars(self).update(members)

    def __repr__(self) -> str:
        return f"<trial with {', '.join(name for name in vars(self) if not name.startswith('_'))}>"

    def should_prune(self) -> bool:
        """Tell whether the trial is to end itself, as `should_stop()`."""
        return self.should_stop()

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> object:
        """Return a parameter of the trial; the header's `search:` says what it may be."""
        form = f"loguniform({low}, {high})" if log else f"uniform({low}, {high})"
        return self._suggest(name, form if step is None else f"quniform({low}, {high}, {step})")

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> object:  # noqa: ARG002 - Optuna's contract
        """Return a parameter of the trial."""
        return self._suggest(name, f"randint({low}, {high + 1})")

    def suggest_categorical(self, name: str, choices: object) -> object:
        """Return a parameter of the trial."""
        options = ", ".join(map(str, choices)) if isinstance(choices, (list, tuple)) else choices
        return self._suggest(name, f"choice({options})")

    def _suggest(self, name: str, form: str) -> object:
        if name not in self._suggested:
            has = ", ".join(self._suggested) or "none"
            raise AttributeError(
                f"this trial has no parameter {name!r}; it has: {has}. Add to the header: search: {{{name}: '{form}'}}"
            )
        return self._suggested[name]


def with_optuna_form(report: Callable[..., None], objective: str) -> Callable[..., None]:
    """Return the trial's `report`, which also takes Optuna's `report(value, step)`, of the objective."""

    def either_form(*positional: object, **named: object) -> None:
        if objective and len(positional) == 2 and not named:
            report(positional[1], **{objective: positional[0]})
        else:
            report(*positional, **named)

    return either_form
