"""A stand-in for the part of wandb's API that logs a run: `init`, `log`, `config`, `finish`. It needs no account."""

from __future__ import annotations

from typing import Any

from jupyter_autotrain.agent.ranks import api
from jupyter_autotrain.agent.ranks.stand_ins import report_numbers


class Config(dict[str, Any]):
    """The parameters of a run, also as attributes."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the parameter is
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value


class Run:
    """The trial, as a run of wandb."""

    def __init__(self) -> None:
        self.config = config
        self.summary: dict[str, object] = {}

    def log(self, data: dict[str, object], step: int | None = None, commit: bool | None = None) -> None:  # noqa: ARG002 - wandb's contract
        """Report the values that are numbers."""
        self.summary.update(data)
        report_numbers(data, step)

    def watch(self, *_: object, **__: object) -> None:
        """Do nothing: gradients are not kept."""

    def finish(self, *_: object, **__: object) -> None:
        """Do nothing: the trial ends when its code does."""

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()


config = Config()
run = Run()


def init(*_: object, config: dict[str, Any] | None = None, **__: object) -> Run:
    """Return the run of this trial; the trial's parameters go before those of `config`."""
    trial = api.context()
    run.config.update(config or {})
    run.config.update({} if trial is None else dict(trial.params))
    return run


log = run.log
watch = run.watch
finish = run.finish
