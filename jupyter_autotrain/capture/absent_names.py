"""Names that the notebook does not bind: a fault, bound by the cell in time, or read on a path that may never run."""

from __future__ import annotations

from jupyter_autotrain.capture.syntax.names import Names


class AbsentNames:
    """Collects them.

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
        """Take in what the cell binds: a definition reads its globals when it is called, and finds it then."""
        self._bound |= names.binds

    def use(self, names: Names) -> None:
        """Take in what functions bind when they are called."""
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
        """Leave out what functions that run before may bind."""
        self.missing = {name: user for name, user in self.missing.items() if not self._may_be_set(name, user)}
        self.told = {name: user for name, user in self.told.items() if not self._may_be_set(name, user)}

    def _may_be_set(self, name: str, user: str) -> bool:
        return name in self._set_by_functions or (self._may_bind_any and user != "")
