"""Metrics that libraries report by themselves inside a trial: their training loops, and what is logged elsewhere.

Nothing is imported for it. A library that the trial imports, or that its warm process has imported, gets a few of its
functions wrapped, which then also report. `autolog: false` in a header turns it off.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from jupyter_autotrain.agent.ranks import api

TYPE_CHECKING = False  # every trial imports this module
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_MODULES = {
    "transformers.trainer_callback": "loops",
    "lightning.pytorch.trainer.connectors.logger_connector.logger_connector": "loops",
    "pytorch_lightning.trainer.connectors.logger_connector.logger_connector": "loops",
    "keras.src.callbacks.callback_list": "loops",
    "tf_keras.src.callbacks": "loops",
    "xgboost.callback": "loops",
    "sklearn.base": "scikit_learn",
    "sklearn.pipeline": "scikit_learn",
    "sklearn.model_selection._search": "scikit_learn",
    "sklearn.model_selection._validation": "scikit_learn",
    "sklearn.neural_network._multilayer_perceptron": "scikit_learn",
    "sklearn.ensemble._gb": "scikit_learn",
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting": "scikit_learn",
    "wandb.sdk.wandb_run": "loggers",
    "wandb.sdk.lib.noop_run": "loggers",
    "trackio.run": "loggers",
    "torch.utils.tensorboard.writer": "loggers",
    "tensorboardX.writer": "loggers",
    "mlflow.tracking.fluent": "loggers",
}
LIBRARIES = frozenset(
    {"transformers", "lightning", "pytorch_lightning", "keras", "tf_keras", "tensorflow", "xgboost", "trl"}
    | {"sentence_transformers", "sklearn", "wandb", "trackio", "torch.utils.tensorboard", "tensorboardX", "mlflow"}
)
"""The packages whose import says that a cell may report without a line of its own."""


def begin(context: api.TrialContext) -> None:
    """Have the libraries of a trial report; of several ranks the first one does."""
    if context.worker or context.trial.get("autolog") is False:
        return
    finder = _AutologFinder(context)
    if sys.modules.keys() & _MODULES.keys():
        finder.hook()
    else:
        sys.meta_path.insert(0, finder)


class _AutologFinder:
    """A finder that waits for the first of these libraries; it loads nothing until then."""

    def __init__(self, context: api.TrialContext) -> None:
        self._context = context

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer Python, which asks for each import."""
        if name not in _MODULES:
            return None
        sys.meta_path.remove(self)
        self.hook()
        return sys.meta_path[0].find_spec(name, path, target)

    def hook(self) -> None:
        """Act on each library: now, or when it is imported."""
        from jupyter_autotrain.agent.ranks import library_hooks  # noqa: PLC0415 - only trials with such a library pay
        from jupyter_autotrain.agent.ranks.autolog import loggers, loops, scikit_learn  # noqa: PLC0415 - as above
        from jupyter_autotrain.agent.ranks.autolog.automatic_reports import AutomaticReports  # noqa: PLC0415 - as above

        reports = AutomaticReports(self._context)
        hooks = {"loops": loops.hook, "scikit_learn": scikit_learn.hook, "loggers": loggers.hook}
        library_hooks.at_import({name: partial(hooks[kind], reports) for name, kind in _MODULES.items()})
