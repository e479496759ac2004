"""A checked header, and the experiment that it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Self

from pydantic import PrivateAttr

from jupyter_autotrain.core import grid
from jupyter_autotrain.core.environment import passed
from jupyter_autotrain.core.hooks import Hook
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.profile import LOCAL, BackendChoice
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Resources
from jupyter_autotrain.core.stop_options import Budget, EarlyStopOptions
from jupyter_autotrain.header.backend_models import BackendTypes
from jupyter_autotrain.header.keys import HeaderKeys

EXHAUSTIVE_TUNERS = ("grid", "batch")
DEFAULT_TRIALS = 10  # of a search without `trials:`
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Header(HeaderKeys):
    """What a cell header says, checked. A subclass made by `with_backend_types` knows the backends' options."""

    backend_types: ClassVar[BackendTypes] = ()
    backend_sections: ClassVar[tuple[str, ...]] = ()

    _text: str = PrivateAttr("")
    _choices: tuple[BackendChoice, ...] = PrivateAttr((LOCAL,))

    def written_as(self, text: str) -> Self:
        """The same header, remembering how it was written."""
        copy = self.model_copy()
        copy._text = text  # noqa: SLF001 - a copy of itself
        return copy

    def with_choices(self, choices: tuple[BackendChoice, ...]) -> Self:
        """The same header, with the backends that `backend:` means."""
        copy = self.model_copy()
        copy._choices = choices  # noqa: SLF001 - a copy of itself
        return copy

    @property
    def choices(self) -> tuple[BackendChoice, ...]:
        """The backends that trials may use, each with the options that this header sets for its type."""
        return tuple(replace(choice, options=self._options_of(choice.profile.type)) for choice in self._choices)

    @property
    def trial_count(self) -> int:
        """How many trials to run, at most."""
        points = grid.count(self.search) if self.tuner in EXHAUSTIVE_TUNERS and self.search else None
        given = self.trials or points or (DEFAULT_TRIALS if self.search else 1)
        return min(given, points) if points else given

    @property
    def data_paths(self) -> dict[str, str]:
        """The entries of `data:`: of each the path here that is sent, or ""."""
        return {name: entry.send or "" for name, entry in self.data.items()}

    @property
    def chosen_hooks(self) -> tuple[Hook, ...]:
        """The hooks that this experiment uses."""
        names = self.hooks if self.notify is None else self.notify
        return tuple(self.hooks[name].to_hook(name) for name in names)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names and patterns of the environment variables that this header gives to trials."""
        return (*self.env, *self.secrets, *self.pass_env)

    def to_spec(self, *, bundle: Bundle, name: str, environ: Mapping[str, str] = _NOTHING) -> ExperimentSpec:
        """The experiment this header asks for.

        Args:
            bundle: The captured code.
            name: The experiment's name where the header gives none.
            environ: The submitter's environment; trials get a part of it.
        """
        needs = self.resources
        return ExperimentSpec(
            name=self.name or name,
            bundle=bundle,
            backends=self.choices,
            objective=self.objective,
            search=dict(self.search),
            tuner=self.tuner or default_tuner(self.objective),
            early_stop=self.early_stop.rule,
            early_stop_options=EarlyStopOptions(self.early_stop.warmup_steps, self.early_stop.min_trials),
            trials=self.trial_count,
            concurrency=self.concurrency,
            resources=Resources(
                needs.cpus, needs.memory, needs.gpus, needs.gpu_memory, needs.nodes, needs.workers_per_node
            ),
            launcher=self.launcher,
            elastic=self.elastic,
            timeout_s=self.timeout,
            budget=Budget(self.budget.time, self.budget.failures),
            seed=self.seed,
            environment=passed(environ, self.pass_env),
            env=dict(self.env),
            python_environment=self.environment.to_spec(),
            secrets=self.secrets,
            returns=self.returns,
            data=tuple(entry.to_source(name) for name, entry in self.data.items()),
            fetch_limit_bytes=self.fetch_limit,
            retries=self.retries,
            hooks=self.chosen_hooks,
            header=self._text,
        )

    def _options_of(self, type_name: str) -> JsonObject:
        """What the section of a type of backends sets."""
        section = getattr(self, type_name) if type_name in self.backend_sections else None
        return {} if section is None else section.model_dump(mode="json", exclude_unset=True)


def default_tuner(objective: Objective | None) -> str:
    """The search algorithm of a header that names none."""
    return "tpe" if objective else "random"
