"""Names that are no plain value of the notebook: absent, provided by the trial, or named by a text alone."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterator

from jupyter_autotrain.capture import name_conflicts
from jupyter_autotrain.capture.differences import Difference, not_carried
from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.syntax.history import History
from jupyter_autotrain.capture.syntax.names import Names
from jupyter_autotrain.capture.values.unpicklable import name_in
from jupyter_autotrain.core.spec import DATA, TRIAL_NAMES


class AbsentNames:
    """A collection of the names that a trial would lack.

    Attributes:
        missing: The names that a trial would not find -> the definition that reads each, or "" for the cell.
        told: Those that it would not find on a path that may never run, with the definition that reads each.
    """

    def __init__(self) -> None:
        self.missing: dict[str, str] = {}
        self.told: dict[str, str] = {}
        self._bound: set[str] = set()
        self._set_by_functions: set[str] = set()
        self._may_bind_any = False

    def bind(self, names: Names) -> None:
        """Take in the names that the cell binds: a definition reads its globals at its call, and finds them then."""
        self._bound |= names.binds

    def use(self, names: Names) -> None:
        """Take in the names that functions bind when they are called."""
        self._set_by_functions |= names.sets
        self._may_bind_any |= names.binds_unseen

    def note(self, name: str, user: str, names: Names, *, is_method: bool) -> None:
        """Note that some code reads an absent name.

        Args:
            name: The name.
            user: The definition that reads it, or "" for the cell.
            names: All that the same code reads.
            is_method: Whether a method of `user` reads it, which need never be called.
        """
        if name in names.optional:
            return
        is_certain = name not in names.uncertain
        if not user or (name in names.eager and is_certain):
            self.missing.setdefault(name, user)
        elif name not in self._bound:
            found = self.told if is_method or not is_certain else self.missing
            found.setdefault(name, user)

    def finish(self) -> None:
        """Leave out the names that functions that run before may bind."""
        self.missing = {name: user for name, user in self.missing.items() if not self._may_be_set(name, user)}
        self.told = {name: user for name, user in self.told.items() if not self._may_be_set(name, user)}

    def _may_be_set(self, name: str, user: str) -> bool:
        return name in self._set_by_functions or (self._may_bind_any and user != "")


# Names that the trial provides: the parameters of the search, and those of `trial`


class ProvidedNames:
    """The names that the trial provides, with a collection of those that the notebook uses for something else.

    Args:
        parameters: Names of the search space.
        history: What the notebook's cells bound, and its globals.
        has_data: Whether the header has a section `data:`, so that `data` is a name of the trial.

    Attributes:
        names: The names of the trial, without those of the search.
        conflicts: Names of the trial that stay the notebook's in this cell.
        clashes: Searched names that cannot be searched, with what else they are used for.
    """

    def __init__(self, parameters: frozenset[str], history: History, *, has_data: bool = False) -> None:
        self.names = TRIAL_NAMES | {DATA} if has_data else TRIAL_NAMES
        self._namespace = history.values
        self._parameters = parameters
        self._history = history
        self.conflicts: list[name_conflicts.NameConflict] = []
        self.clashes: dict[str, str] = {}

    def item(self, name: str) -> Item | None:
        """Return the item of a name that the trial provides; None for a name that is the notebook's."""
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


# Names that only texts have: they travel where they can, and are reported where they cannot or are not known


class TextNames:
    """The names that nothing but texts have so far, such as that of `df.query("a > @limit")`."""

    def __init__(self) -> None:
        self.only: frozenset[str] = frozenset()
        self._read: frozenset[str] = frozenset()

    def use(self, names: Names, origin: str) -> list[Difference]:
        """Take in the names that some code reads, and return the unknown parts of it."""
        plain = names.needed - names.texts
        self._read |= plain
        self.only = (self.only | names.texts) - self._read
        text = "names that only {} reads, as they are not known before it runs: write them in the cell too"
        return [not_carried(text.format(call), origin) for call in sorted(names.unknown)]

    def drop(self, refused: dict[str, str], origin: Callable[[str], str]) -> Iterator[tuple[str, Difference]]:
        """Take names that cannot travel out of `refused`: in a text they may well be a column, or a parameter.

        Args:
            refused: How to reach what cannot travel -> why.
            origin: Gives the cell that bound a name.
        """
        for path in sorted(refused):
            name = name_in(path)
            if name in self.only:
                text = f"{name}, which a text names: {refused.pop(path)}"
                yield name, not_carried(text, origin(name))
