"""What the expressions of a program may be, as far as paths are concerned: constant propagation over the whole code.

A value is a text in which `ANY` stands for a part that is known only at run time, a number, or a live object of the
notebook.
What can be no path (an open file, a tensor) has no values at all. A container stands for all that it holds.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from jupyter_autotrain.capture.files import path_methods
from jupyter_autotrain.capture.files.bindings import UNKNOWN, Bindings, PossibleValues, merged
from jupyter_autotrain.capture.files.live_values import OPEN_FILE, attribute, elements, item, scalars
from jupyter_autotrain.capture.files.path_methods import ANY, MOST
from jupyter_autotrain.capture.files.possible_values import added, combined, filled, of_method, single
from jupyter_autotrain.capture.files.program import Program, ProgramScope, called

_MOST_DEPTH = 40
_MOST_LOOKS = 50_000
_PERCENT: Final = re.compile(r"%(?:\(\w+\))?[-+ #0-9.]*[a-zA-Z]")
_BRACES: Final = re.compile(r"\{[^{}]*\}")
_OF_LOGGERS: Final = frozenset({"best_model_path", "last_model_path", "log_dir", "logger", "metrics_file_path"})
_PARTS: Final = frozenset({"name", "parent", "parents", "stem", "suffix"})
_NO_PATH: Final = frozenset({
    "BytesIO", "NamedTemporaryFile", "StringIO", "TemporaryDirectory", "TemporaryFile", "__autotrain_data__",
    "cached_path", "extractfile", "fetch", "get_file", "hf_hub_download", "mkdtemp", "mkstemp",
    "snapshot_download", "urlopen", "urlretrieve",
})  # fmt: skip
_METHODS: Final[Mapping[type[ast.AST], str]] = {
    ast.Attribute: "_attribute", ast.BinOp: "_operation", ast.Call: "_call", ast.Constant: "_constant",
    ast.Dict: "_dict", ast.JoinedStr: "_f_string", ast.Name: "_named", ast.Starred: "_element",
    ast.Subscript: "_item", **dict.fromkeys((ast.List, ast.Tuple, ast.Set), "_sequence"),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), "_comprehension"),
    **dict.fromkeys((ast.IfExp, ast.BoolOp), "_either"), **dict.fromkeys((ast.NamedExpr, ast.Await), "_value"),
}  # fmt: skip


class PathValues(Bindings):
    """Gives the values that expressions may have.

    Args:
        program: The code.
        values: The captured values by name.
        parameters: Names that the search chooses.
    """

    def __init__(self, program: Program, values: Mapping[str, object], parameters: Collection[str]) -> None:
        super().__init__(program, values, parameters)
        self._busy: set[ProgramScope] = set()
        self._depth = self._looks = 0

    def texts(self, node: ast.expr, scope: ProgramScope) -> frozenset[str]:
        """The texts that an expression may be; none when it is no path."""
        return frozenset(str(one) for one in scalars(self.of(node, scope)))

    def of(self, node: ast.expr, scope: ProgramScope) -> PossibleValues:
        """The values that an expression may have."""
        if self._depth >= _MOST_DEPTH or self._looks >= _MOST_LOOKS:
            return UNKNOWN
        method = _METHODS.get(type(node))
        if method is None:
            return []
        self._depth, self._looks = self._depth + 1, self._looks + 1
        found: PossibleValues = getattr(self, method)(node, scope)
        self._depth -= 1
        return found[:MOST]

    # Expressions

    def _constant(self, node: ast.Constant, _: ProgramScope) -> PossibleValues:
        value = node.value
        return [value] if isinstance(value, str | int | float) and not isinstance(value, bool) else []

    def _named(self, node: ast.Name, scope: ProgramScope) -> PossibleValues:
        return self.name(node.id, scope)

    def _value(self, node: ast.NamedExpr | ast.Await, scope: ProgramScope) -> PossibleValues:
        return self.of(node.value, scope)

    def _either(self, node: ast.IfExp | ast.BoolOp, scope: ProgramScope) -> PossibleValues:
        return self._union(node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse], scope)

    def _union(self, nodes: Iterable[ast.expr], scope: ProgramScope) -> PossibleValues:
        return merged(self.of(node, scope) for node in nodes)

    def _sequence(self, node: ast.List | ast.Tuple | ast.Set, scope: ProgramScope) -> PossibleValues:
        return [[single(self.of(part, scope)) for part in node.elts]] if node.elts else []

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: ProgramScope
    ) -> PossibleValues:
        return [self.of(node.value if isinstance(node, ast.DictComp) else node.elt, scope)]

    def _element(self, node: ast.Starred, scope: ProgramScope) -> PossibleValues:
        return merged(elements(value) for value in self.of(node.value, scope))

    def _dict(self, node: ast.Dict, scope: ProgramScope) -> PossibleValues:
        found: dict[object, PossibleValues] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            name = key.value if isinstance(key, ast.Constant) else None
            found[name] = merged([found.get(name, []), self.of(value, scope)])
        return [{name: single(values) for name, values in found.items()}]

    def _operation(self, node: ast.BinOp, scope: ProgramScope) -> PossibleValues:
        match node.op:
            case ast.Div():
                return self._joined([node.left, node.right], scope)
            case ast.Add():
                return added(self.of(node.left, scope), self.of(node.right, scope))
            case ast.Mod():
                parts = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
                return filled(self.of(node.left, scope), _PERCENT, [self.of(part, scope) for part in parts])
        return UNKNOWN

    def _f_string(self, node: ast.JoinedStr, scope: ProgramScope) -> PossibleValues:
        return combined([self._formatted(part, scope) for part in node.values])

    def _formatted(self, part: ast.expr, scope: ProgramScope) -> PossibleValues:
        if not isinstance(part, ast.FormattedValue):
            return self.of(part, scope)
        values = self.of(part.value, scope)
        if part.format_spec is None:
            return values
        spec = self.texts(part.format_spec, scope)
        return path_methods.formatted(scalars(values), next(iter(spec)) if len(spec) == 1 else ANY)

    def _attribute(self, node: ast.Attribute, scope: ProgramScope) -> PossibleValues:
        dotted = self._program.dotted(node, scope.source)
        if dotted:
            return self.imported(dotted) or UNKNOWN
        owners = self.of(node.value, scope)
        if node.attr in _PARTS and (texts := [one for one in scalars(owners) if isinstance(one, str)]):
            return [path_methods.part(text, node.attr) for text in texts]
        found = merged([*(attribute(owner, node.attr) for owner in owners), self.attribute(node.attr)])
        if found or node.attr in self._program.attributes:
            return found
        return UNKNOWN if owners and node.attr not in _OF_LOGGERS else []  # what these hold, the run itself has written

    def _item(self, node: ast.Subscript, scope: ProgramScope) -> PossibleValues:
        owners = self.of(node.value, scope)
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        bound = self._program.items.get(key, ()) if isinstance(key, str) else ()
        return merged([*(item(owner, key) for owner in owners), *(self.of(value, where) for value, where in bound)])

    # Calls

    def _call(self, call: ast.Call, scope: ProgramScope) -> PossibleValues:
        name = called(call)
        own = self._program.function(call, scope)
        if own or (isinstance(call.func, ast.Name) and name in self._program.classes):
            return self._returned(own)
        if name == "open":
            return [OPEN_FILE]
        if name in _NO_PATH or name.startswith("download"):
            return []
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if owner is None or self._program.dotted(owner, scope.source):
            return self._function(name, call, scope)
        if isinstance(owner, ast.Call) and called(owner) == "super":
            return []
        return self._method(name, owner, call, scope)

    def _returned(self, functions: Iterable[ProgramScope]) -> PossibleValues:
        found: list[PossibleValues] = []
        for one in [one for one in functions if one not in self._busy]:
            self._busy.add(one)
            found += [self.of(value, one) for value in one.returns]
            self._busy.discard(one)
        return merged(found)

    def _function(self, name: str, call: ast.Call, scope: ProgramScope) -> PossibleValues:
        """Functions that are not the user's own."""
        if name in path_methods.JOINS:
            return self._joined(call.args, scope) if call.args else ["."]
        if name in path_methods.KEEPS:
            return self._union([one for one in call.args if not isinstance(one, ast.Lambda)], scope)
        if name in {"getenv", "get", "pop", "__autotrain_override__"}:
            return [*self._union(call.args[1:], scope), ANY]
        if name in {"dict", "Namespace", "SimpleNamespace", "Box", "DotDict"}:
            return [{keyword.arg: single(self.of(keyword.value, scope)) for keyword in call.keywords}]
        arguments = [self.of(argument, scope) for argument in call.args]
        if name == "range":
            return path_methods.counted(arguments)
        return path_methods.of_function(name, scalars(arguments[0]) if arguments else ["."])

    def _method(self, name: str, owner: ast.expr, call: ast.Call, scope: ProgramScope) -> PossibleValues:
        if name == "joinpath":
            return self._joined([owner, *call.args], scope)
        owners = self.of(owner, scope)
        arguments = [self.of(argument, scope) for argument in call.args]
        if name == "format":
            return filled(owners, _BRACES, [*arguments, *(self.of(one.value, scope) for one in call.keywords)])
        if name == "get" and call.args and isinstance(call.args[0], ast.Constant):
            found = [item(one, call.args[0].value) for one in owners]
            return merged([*found, *arguments[1:]])
        return merged(of_method(one, name, arguments) for one in owners)

    def _joined(self, parts: Iterable[ast.expr], scope: ProgramScope) -> PossibleValues:
        """The parts of a path, put together in all ways."""
        return combined(
            [UNKNOWN if isinstance(one, ast.Starred) else self.of(one, scope) for one in parts], posixpath.join
        )
