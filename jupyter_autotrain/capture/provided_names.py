"""Names that the trial provides: the parameters of the search, and those of `trial`."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping

from jupyter_autotrain.capture import name_conflicts
from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.syntax.history import History
from jupyter_autotrain.core.trial_names import DATA, TRIAL_NAMES


class ProvidedNames:
    """Classifies names that the trial provides, and collects those that the notebook uses for something else.

    Args:
        namespace: The notebook's globals.
        parameters: Names of the search space.
        history: What the notebook's cells bound.
        has_data: Whether the header has a section `data:`, so that `data` is a name of the trial.

    Attributes:
        names: The names of the trial, without those of the search.
        conflicts: Names of the trial that stay the notebook's in this cell.
        clashes: Searched names that cannot be searched, with what else they are used for.
    """

    def __init__(
        self, namespace: Mapping[str, object], parameters: Collection[str], history: History, *, has_data: bool = False
    ) -> None:
        self.names = TRIAL_NAMES | {DATA} if has_data else TRIAL_NAMES
        self._namespace = namespace
        self._parameters = frozenset(parameters)
        self._history = history
        self.conflicts: list[name_conflicts.NameConflict] = []
        self.clashes: dict[str, str] = {}

    def item(self, name: str) -> Item | None:
        """The item of a name that the trial provides; None for a name that is the notebook's."""
        if name in self._parameters:
            self._check_default(name)
            return Item(name, "parameter", origin="search")
        if name not in self.names:
            return None
        if not name_conflicts.is_notebooks(name, self._namespace):
            return Item(name, "builtin", origin="trial")
        self.conflicts.append(name_conflicts.NameConflict(name, self._namespace[name], self._history.label_of(name)))
        return None

    def check_called(self, called: Collection[str]) -> None:
        """Note searched names that the code calls as functions of Python."""
        for name in self._parameters.intersection(called).difference(self._namespace):
            if callable(getattr(builtins, name, None)):
                self.clashes[name] = "a function of Python that this code calls"

    def _check_default(self, name: str) -> None:
        if name in self._namespace:
            clash = name_conflicts.clash(self._namespace[name], self._history.label_of(name))
            if clash:
                self.clashes[name] = clash
