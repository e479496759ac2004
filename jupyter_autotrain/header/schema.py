"""A checked header, and the experiment that it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Self

from pydantic import PrivateAttr

from jupyter_autotrain.agent.environment import passed
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.core.federated import FederatedSpec
from jupyter_autotrain.core.hooks import Hook
from jupyter_autotrain.core.profile import LOCAL, BackendChoice
from jupyter_autotrain.core.space import count_points, is_finite
from jupyter_autotrain.core.spec import Budget, Bundle, ExperimentSpec, Resources
from jupyter_autotrain.header.backend_models import BackendTypes
from jupyter_autotrain.header.header_keys import HeaderKeys
from jupyter_autotrain.header.search_keys import TunerChoice
from jupyter_autotrain.header.sections.federated import FederatedSection

EXHAUSTIVE_TUNERS = ("grid", "batch")
DEFAULT_TRIALS = 10  # of a search without `trials:`
DEFAULT_POPULATION_TRIALS = 50  # five generations of ten
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Header(HeaderKeys):
    """The content of a cell header, checked. A subclass made by `with_backend_types` knows the backends' options."""

    backend_types: ClassVar[BackendTypes] = ()
    backend_sections: ClassVar[tuple[str, ...]] = ()

    _text: str = PrivateAttr("")
    _choices: tuple[BackendChoice, ...] = PrivateAttr((LOCAL,))

    def written_as(self, text: str) -> Self:
        """Return the same header, remembering how it was written."""
        copy = self.model_copy()
        copy._text = text  # noqa: SLF001 - a copy of itself
        return copy

    def with_choices(self, choices: tuple[BackendChoice, ...]) -> Self:
        """Return the same header, with the backends that `backend:` means."""
        copy = self.model_copy()
        copy._choices = choices  # noqa: SLF001 - a copy of itself
        return copy

    @property
    def choices(self) -> tuple[BackendChoice, ...]:
        """The backends that trials may use, each with the options that this header sets for its type."""
        return tuple(replace(choice, options=self._options_of(choice.profile.type)) for choice in self._choices)

    @property
    def trial_count(self) -> int:
        """Return how many trials to run, at most."""
        if self.clients:
            return len(self.clients) if self._federated else 1
        if not self.search:
            return self.trials or 1
        if self.tuner is not None and self.tuner.name in EXHAUSTIVE_TUNERS:
            points = count_points(self.search)
            return min(self.trials or points, points)
        if self.tuner is not None and self.tuner.name == "pbt":
            return self.trials or DEFAULT_POPULATION_TRIALS
        return self.trials or self._least(DEFAULT_TRIALS)

    def _least(self, trials: int) -> int:
        """Return a number of trials, or that of the space's points where these are fewer."""
        return min(trials, count_points(self.search)) if is_finite(self.search) else trials

    @property
    def chosen_tuner(self) -> TunerChoice:
        """The search algorithm: the one that the header names, else one by what is searched."""
        if isinstance(self.tuner, TunerChoice):
            return self.tuner
        trials = self.trial_count
        if self.search and is_finite(self.search) and count_points(self.search) <= trials:
            return TunerChoice("grid")
        return TunerChoice("tpe" if self.objective else "random")

    @property
    def workers_per_node(self) -> int:
        """The number of processes of a trial on each of its hosts."""
        workers = self.parallel.workers if self.parallel else None
        return workers // self.resources.nodes if workers else self.resources.workers_per_node

    @property
    def data_paths(self) -> dict[str, str]:
        """The entries of `data:`: of each the path here that is sent, or ""."""
        return {name: entry.local for name, entry in self.data.items()}

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
        """Return the experiment this header asks for.

        Args:
            bundle: The captured code.
            name: The experiment's name where the header gives none.
            environ: The submitter's variables; trials get some of them.
        """
        needs = self.resources
        return ExperimentSpec(
            name=self.name or name,
            bundle=bundle,
            backends=self.choices,
            objective=self.objective[0] if self.objective else None,
            more_objectives=self.objective[1:] if self.objective else (),
            constraints=self.constraints,
            search=dict(self.search),
            tuner=self.chosen_tuner.name,
            tuner_options=self.chosen_tuner.options,
            early_stop=self.early_stop.rule,
            early_stop_options=self.early_stop.to_options(),
            trials=self.trial_count,
            concurrency=self.trial_count if self.clients else self.concurrency,
            priority=self.priority,
            weight=self.weight,
            resources=Resources(
                needs.cpus,
                needs.memory,
                needs.gpus,
                needs.gpu_memory,
                needs.nodes,
                self.workers_per_node,
                needs.adjacent,
            ),
            launcher=self.launcher,
            elastic=self.elastic,
            timeout_s=self.timeout,
            stall_s=self.stall,
            post_mortem=self.post_mortem,
            budget=Budget(self.budget.time, self.budget.failures),
            seed=self.seed,
            environment=passed(environ, self.pass_env),
            env=dict(self.env),
            python_environment=self.environment.to_spec(),
            secrets=self.secrets,
            returns=self.returns,
            autolog=self.autolog,
            data=tuple(entry.to_source(name) for name, entry in self.data.items()),
            fetch_limit_bytes=self.fetch_limit,
            retries=self.retries,
            hooks=self.chosen_hooks,
            track=self.track,
            federated=self._federated,
            flower=self._flower,
            header=self._text,
        )

    @property
    def _federated(self) -> FederatedSpec | None:
        section = self.federated or FederatedSection()
        return section.to_spec(self.clients, self.data) if self.clients and not section.is_flower else None

    @property
    def _flower(self) -> FederatedSpec | None:
        section = self.federated
        return section.to_spec(self.clients, self.data) if section is not None and section.is_flower else None

    def _options_of(self, type_name: str) -> JsonObject:
        """Return what the section of a type of backends sets."""
        section = getattr(self, type_name) if type_name in self.backend_sections else None
        return {} if section is None else section.model_dump(mode="json", exclude_unset=True)
