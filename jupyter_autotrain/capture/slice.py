"""From the names a cell needs to everything it needs: each name classified, in turn with what it uses."""

from __future__ import annotations

import ast
import builtins
import types
from collections import ChainMap
from collections.abc import Collection, Mapping

from jupyter_autotrain.capture.absent_names import AbsentNames
from jupyter_autotrain.capture.definitions import imports, kernel_only, sources, staleness
from jupyter_autotrain.capture.definitions.rerun import Notebook
from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.internal_faults import refused_by_name
from jupyter_autotrain.capture.items import EARLIEST, Item, data_item, import_item, in_order, source_item
from jupyter_autotrain.capture.provided_names import ProvidedNames
from jupyter_autotrain.capture.syntax.history import BindingKind, History
from jupyter_autotrain.capture.syntax.names import Names, analyse
from jupyter_autotrain.capture.syntax.scopes import is_special
from jupyter_autotrain.capture.text_names import TextNames
from jupyter_autotrain.capture.values import attributes
from jupyter_autotrain.capture.values.pickles import PickledValues
from jupyter_autotrain.capture.values.stream import ByteBudget


class Slice:
    """The names a cell needs, and all they need, found by following them.

    Args:
        namespace: The notebook's globals.
        history: What its cells bound.
        parameters: Names of the search space.
        by_value: Definitions that cannot be made again from source.
        budget: How much data may travel.
        has_data: Whether the header has a section `data:`.
    """

    def __init__(
        self,
        namespace: Mapping[str, object],
        history: History,
        *,
        parameters: Collection[str] = (),
        by_value: frozenset[str] = frozenset(),
        budget: ByteBudget,
        has_data: bool = False,
    ) -> None:
        self.namespace = namespace
        self.history = history
        self.by_value = by_value
        self.parameters = frozenset(parameters)
        self.home = str(namespace.get("__name__", "__main__"))
        self.items: dict[str, Item] = {}
        self.absent = AbsentNames()
        self.provided = ProvidedNames(namespace, parameters, history, has_data=has_data)
        self.texts = TextNames()
        self.attributes: dict[str, object] = {}
        self.live: Mapping[str, object] = ChainMap(self.attributes, namespace)  # type: ignore[arg-type]  # only read
        self.values = PickledValues(namespace, self.live, self.items, self._in_script, budget)
        self.differences: list[Difference] = []
        self.notes: list[str] = []
        self._rebound: set[str] = set()
        self._todo: list[str] = []
        self._notebook = Notebook(namespace, history, self.home)
        self._known = sources.by_identity(namespace, self.home)

    def follow(self, names: Names) -> None:
        """Take in everything that some code needs."""
        self._rebound |= names.rebound
        self.absent.bind(names)
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
        """The name of one of the notebook's functions or classes; "" for other values."""
        return self._known.get(id(value), "")

    def finish(self) -> None:
        """Write the pickles, once everything has been followed."""
        self.absent.finish()
        for name, user in sorted(self.absent.told.items()):
            text = (
                f"{name}, which {user} reads, does not exist: a trial that comes to that line fails, as the cell would"
            )
            self.differences.append(Difference(DifferenceKind.NOT_CARRIED, text, self.history.label_of(user)))
        for name, difference in self.texts.drop(self.values.refused, self.history.label_of):
            self.items.pop(name, None)
            self.values.pickles.pop(name, None)
            self.differences.append(difference)
        self._leave_rebound()
        staleness.mark_rebound(self.items, self.history)
        self.differences += attributes.emptied(self.items, self.live, self.values.pickles)
        if not (self.absent.missing or self.values.refused or self.values.too_big):
            self.values.share()
            self.differences += self.values.differences()

    def _leave_rebound(self) -> None:
        """Leave out what cannot travel and the code itself binds before it reads it, such as the loss of a loop."""
        needed = frozenset[str]().union(*(item.eager | item.deferred for item in self.items.values()))
        for path in list(self.values.refused):
            name = path.partition("[")[0].partition(".")[0]
            if name in self._rebound - needed:
                del self.values.refused[path]
                self.items.pop(name, None)
                self.values.pickles.pop(name, None)

    def order(self) -> tuple[list[Item], frozenset[str]]:
        """The items in the order the script binds them, and definitions that need each other in a circle."""
        ordered, circle = in_order(self.items)
        again = frozenset(name for name in circle if self.items[name].how == "source") | attributes.owners(circle)
        if circle and not again:  # values that are made of each other: nothing of theirs can be called meanwhile
            for name in circle:
                self.items[name].called = frozenset()
            ordered, circle = in_order(self.items)
        return ordered, again

    # Following names

    def _use_of(self, item: Item) -> None:
        self._use(Names(item.eager, item.called, item.deferred), item.name)

    def _use(self, names: Names, user: str) -> None:
        self.absent.use(names)
        self.differences += self.texts.use(names, self.history.label_of(user))
        self.values.refused.update(kernel_only.waiting_for_input(names.called, self.namespace))
        self.provided.check_called(names.called)
        for name in sorted(names.needed | names.hints):
            if name in self.items or name in self._todo:
                continue
            if self._exists(name, hint=name in names.hints):
                self._todo.append(name)
            elif name not in names.hints and not self._is_builtin(name):
                self.absent.note(name, user, names, is_method=isinstance(self.namespace.get(user), type))

    def _exists(self, name: str, *, hint: bool) -> bool:
        if name in self.provided.names or name in self.parameters:
            return True
        if name not in self.namespace:
            last = self.history.last(name)
            return name == "get_ipython" or (last is not None and hint and last.kind is BindingKind.IMPORT)
        value = self.namespace[name]
        if is_special(name):
            return name == self.home and isinstance(value, types.ModuleType)
        if not self.history.bindings(name) and sources.is_shells_own(name, value):
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
                self.provided.item(name) or self._imported(name) or self._defined(name) or self._plain(name)
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
        uses = analyse([line.binding.outer]) if line.binding and line.whole else analyse([])
        self._use(uses, name)
        return import_item(name, line.text, line.binding, uses)

    def _conditional_import(self, name: str) -> Item | None:
        last = self.history.last(name)
        if last is None or not imports.only_imports(last.outer):
            return None
        text = ast.get_source_segment(last.text, last.outer) or ast.unparse(last.outer)
        uses = analyse([last.outer])
        self._use(uses, name)
        return import_item(name, text, last, uses)

    # Definitions

    def _defined(self, name: str) -> Item | None:
        value = self.namespace.get(name)
        last = self.history.last(name)
        decorated = last is not None and bool(getattr(last.node, "decorator_list", ())) and callable(value)
        if name in self.by_value or not (decorated or sources.is_definition(value, self.home)):
            return None
        found = sources.find(name, value, self._notebook)
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
        return source_item(name, found.binding, found.stale, names, self._set_later(found))

    def _set_later(self, found: sources.DefinitionSource) -> frozenset[str]:
        """Add an item for each attribute that a definition has besides what its statement gives it."""
        later, differences = attributes.items(found.attributes, found.binding)
        self.differences += differences
        self.attributes.update({path: value for path, value in found.attributes if path in later})
        self.items.update(later)
        return frozenset(later)

    # Data

    def _plain(self, name: str, stale: str = "") -> Item:
        binding = self.history.last(name)
        value = self.namespace.get(name)
        if why := kernel_only.reason(name, value, is_bound=name in self.namespace):
            self.values.refused[name] = why
        stale = stale or staleness.reason(value, binding, self.namespace, self.history)
        return data_item(name, binding, stale)

    def _in_script(self, value: object) -> str | None:
        name = self._known.get(id(value))
        root = name.partition(".")[0] if name else ""
        if name is None or root in self.by_value:
            return None
        self._classify(root)
        return name if self.items[root].how == "source" and name not in self.attributes else None
