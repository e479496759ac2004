"""The way from the names a cell needs to everything it needs: each name classified, in turn with those it uses."""

from __future__ import annotations

import ast
import builtins
import sys
import types
from collections.abc import Collection
from dataclasses import dataclass

from jupyter_autotrain.capture import script
from jupyter_autotrain.capture.definitions import imports, sources
from jupyter_autotrain.capture.differences import Difference, not_carried
from jupyter_autotrain.capture.items import EARLIEST, Item, bound_item, in_order, source_item
from jupyter_autotrain.capture.looking import refused_by_name
from jupyter_autotrain.capture.outside_names import AbsentNames, ProvidedNames, TextNames
from jupyter_autotrain.capture.syntax.history import BindingKind, History
from jupyter_autotrain.capture.syntax.names import Names, analyse
from jupyter_autotrain.capture.syntax.scopes import is_special
from jupyter_autotrain.capture.values.by_value import cached_in
from jupyter_autotrain.capture.values.data import PickledValues
from jupyter_autotrain.capture.values.stream import ByteBudget
from jupyter_autotrain.capture.values.unpicklable import name_in


@dataclass(frozen=True, slots=True)
class HeaderOptions:
    """The header's options for trials.

    Attributes:
        parameters: Names of the search space.
        seed: What they seed all random generators with, if anything.
        trials: How many there will be.
        variables: Names and patterns of environment variables.
        has_data: Whether they find the paths of a section `data:`.
        setup: The numbers of the cells that run first.
    """

    parameters: frozenset[str] = frozenset()
    seed: int | None = None
    trials: int = 1
    variables: Collection[str] = ()
    has_data: bool = False
    setup: Collection[int] = ()


class Slice:
    """The names a cell needs, and all they need, found by following them.

    Args:
        history: What the notebook's cells bound, and its globals.
        options: What trials get by the header.
        by_value: Definitions that cannot be made again from source.
        budget: How much data may travel.
    """

    def __init__(self, history: History, options: HeaderOptions, by_value: frozenset[str], budget: ByteBudget) -> None:
        namespace = history.values
        self.namespace = namespace
        self.history = history
        self.options = options
        self.by_value = by_value
        self.home = history.home
        self.items: dict[str, Item] = {}
        self.absent = AbsentNames()
        self.provided = ProvidedNames(options.parameters, history, has_data=options.has_data)
        self.texts = TextNames()
        self.values = PickledValues(namespace, self.items, self._in_script, budget)
        self.differences: list[Difference] = []
        self.notes: list[str] = []
        self._rebound: set[str] = set()
        self._todo: list[str] = []
        self._made_first: dict[str, Item] = {}
        self._known = sources.by_identity(history)

    def follow(self, names: Names) -> None:
        """Take in everything that some code needs."""
        self._rebound |= names.rebound
        self.absent.bind(names)
        for item, defines in script.read(self.history, self.options.setup):
            self._made_first |= dict.fromkeys(defines, item)
            self.items[item.name] = item
            self._use_of(item)
        self._use(names, "")
        self._follow()

    def include(self, names: Collection[str]) -> None:
        """Take in names that no code reads, and everything that they need."""
        self._todo += sorted(name for name in names if name in self.namespace and name not in self.items)
        self._follow()

    def _follow(self) -> None:
        while True:
            while self._todo:
                self._classify(self._todo.pop())
            waiting = self.values.waiting()
            if not waiting or self.values.too_big:
                break
            self.values.add(waiting)
            for name in waiting:
                self._use_of(self.items[name])

    def take(self, item: Item) -> None:
        """Take in a statement that binds no name, and everything that it needs."""
        self.items[item.name] = item
        self._use_of(item)
        self._follow()

    def name_of(self, value: object) -> str:
        """Return the name of one of the notebook's functions or classes; "" for other values."""
        return self._known.get(id(value), "")

    def finish(self) -> None:
        """Write the pickles, once everything has been followed."""
        self.absent.finish()
        for name, user in sorted(self.absent.told.items()):
            text = (
                f"{name}, which {user} reads, does not exist: a trial that comes to that line fails, as the cell would"
            )
            self.differences.append(not_carried(text, self.history.label_of(user)))
        for name, difference in self.texts.drop(self.values.refused, self.history.label_of):
            self.items.pop(name, None)
            self.values.pickles.pop(name, None)
            self.differences.append(difference)
        self._leave_rebound()
        sources.mark_rebound(self.items, self.history)
        self.differences += self._emptied()
        if not (self.absent.missing or self.values.refused or self.values.too_big):
            self.values.write()
            self.differences += self.values.differences()

    def _leave_rebound(self) -> None:
        """Leave out what cannot travel and the code itself binds before it reads it, such as the loss of a loop."""
        needed = frozenset[str]().union(*(item.eager | item.deferred for item in self.items.values()))
        for path in list(self.values.refused):
            name = name_in(path)
            if name in self._rebound - needed:
                del self.values.refused[path]
                self.items.pop(name, None)
                self.values.pickles.pop(name, None)

    def _emptied(self) -> list[Difference]:
        """Return the differences of functions that cache results: a trial computes them again."""
        found = {name for pickled in self.values.pickles.values() for name in pickled.emptied}
        defined = [name for name, item in self.items.items() if item.how == "source" and name in self.namespace]
        found = found.union(*(cached_in(name, self.namespace[name]) for name in defined))
        text = "what {} has cached; a trial computes it again"
        return [not_carried(text.format(name)) for name in sorted(found)]

    def order(self) -> tuple[list[Item], frozenset[str]]:
        """Return the items in the order the script binds them, and definitions that need each other in a circle."""
        while True:
            ordered, circle = in_order(self.items)
            again = frozenset(name for name in circle if self.items[name].how == "source")
            if again or not circle:
                return ordered, again
            if not any(self.items[name].called for name in circle):
                raise RuntimeError(f"these names need each other: {', '.join(sorted(circle))}")
            for name in circle:  # values that are made of each other: nothing of theirs can be called meanwhile
                self.items[name].called = frozenset()

    # Following names

    def _use_of(self, item: Item) -> None:
        self._use(Names(item.eager, item.called, item.deferred), item.name)

    def _use(self, names: Names, user: str) -> None:
        self.absent.use(names)
        self.differences += self.texts.use(names, self.history.label_of(user))
        self.values.refused.update(sources.waiting_for_input(names.called, self.namespace))
        self.provided.check_called(names.called)
        for name in sorted(names.needed | names.hints):
            if name in self.items or name in self._todo:
                continue
            if self._exists(name, hint=name in names.hints):
                self._todo.append(name)
            elif name not in names.hints and not self._is_builtin(name):
                self.absent.note(name, user, names, is_method=isinstance(self.namespace.get(user), type))

    def _exists(self, name: str, *, hint: bool) -> bool:
        if name in self.provided.names or name in self.options.parameters:
            return True
        last = self.history.last(name)
        if name not in self.namespace:
            return name == "get_ipython" or (last is not None and hint and last.kind is BindingKind.IMPORT)
        value = self.namespace[name]
        if is_special(name):
            return name == self.home and isinstance(value, types.ModuleType)
        if last is None and sources.is_shells_own(name, value):
            return False
        return not hint or isinstance(value, types.ModuleType | type) or sources.is_definition(value, self.home)

    @staticmethod
    def _is_builtin(name: str) -> bool:
        return hasattr(builtins, name) or is_special(name)

    def _classify(self, name: str) -> None:
        if name in self.items:
            return
        with refused_by_name(name):
            self.items[name] = (
                self.provided.item(name)
                or self._imported(name)
                or self._defined_first(name)
                or self._defined(name)
                or self._plain(name)
            )

    # Imports

    def _imported(self, name: str) -> Item | None:
        value = self.namespace.get(name)
        if name not in self.namespace:
            return self._conditional_import(name)
        last = self.history.last(name)
        if sources.is_definition(value, self.home) and (last is None or last.kind is not BindingKind.IMPORT):
            return None
        line = imports.find(name, value, self.history)
        if line is None:
            return None
        uses = analyse([line.binding.outer]) if line.binding and line.whole else Names()
        self._use(uses, name)
        return bound_item(name, "import", line.binding, line.text, uses=uses)

    def _conditional_import(self, name: str) -> Item | None:
        last = self.history.last(name)
        if last is None or not imports.only_imports(last.outer):
            return None
        text = ast.get_source_segment(last.text, last.outer) or ast.unparse(last.outer)
        uses = analyse([last.outer])
        self._use(uses, name)
        return bound_item(name, "import", last, text, uses=uses)

    # Definitions

    def _defined_first(self, name: str) -> Item | None:
        """Return the item of a definition that a cell makes which runs first."""
        first = self._made_first.get(name)
        if first is None or not sources.is_definition(self.namespace.get(name), self.home):
            return None
        position = (first.position[0], sys.maxsize, 0)
        return Item(name, "source", "", first.label, position=position, eager=frozenset({first.name}))

    def _defined(self, name: str) -> Item | None:
        value = self.namespace.get(name)
        last = self.history.last(name)
        decorated = last is not None and bool(getattr(last.node, "decorator_list", ())) and callable(value)
        if name in self.by_value or not (decorated or sources.is_definition(value, self.home)):
            return None
        found = sources.find(name, value, self.history)
        if found is None:
            return self._alias(name, value)
        if found.unmakeable:
            return self._plain(name, f"by value: {found.unmakeable}")
        return self._source(name, found)

    def _alias(self, name: str, value: object) -> Item | None:
        if self._known.get(id(value), name) == name or (other := self._in_script(value)) is None:
            return None
        position = binding.position if (binding := self.history.last(name)) else EARLIEST
        text = f"{name} = {other}"
        origin = binding.label if binding else ""
        return Item(name, "source", text, origin, position=position, eager=frozenset({other.partition(".")[0]}))

    def _source(self, name: str, found: sources.DefinitionSource) -> Item:
        names = self.history.names_of(found.binding)
        self._use(names, name)
        return source_item(name, found.binding, found.stale, names)

    # Data

    def _plain(self, name: str, stale: str = "") -> Item:
        binding = self.history.last(name)
        value = self.namespace.get(name)
        if why := sources.kernel_only(name, value, is_bound=name in self.namespace):
            self.values.refused[name] = why
        stale = stale or sources.stale(value, binding, self.history)
        return bound_item(name, "data", binding, stale=stale)

    def _in_script(self, value: object) -> str | None:
        name = self._known.get(id(value))
        root = name.partition(".")[0] if name else ""
        if name is None or root in self.by_value:
            return None
        self._classify(root)
        return name if self.items[root].how == "source" else None
