"""From a live function or class back to the source that made it.

The last cell that defines a name need not be the one the live object comes from: cells fail half-way, names are
kept under an alias, wrapped or patched. So the compiled source is compared with the object itself.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType

from jupyter_autotrain.capture.history import Binding, History, compiler_flags, is_literal
from jupyter_autotrain.capture.scopes import Function

_MAKES_OBJECTS = frozenset({
    "__eq__", "__getnewargs__", "__getnewargs_ex__", "__hash__", "__init_subclass__", "__new__", "__reduce__",
    "__reduce_ex__", "__set_name__", "__setstate__",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """Source for a live object.

    Attributes:
        binding: The statement that made it.
        stale: Why it is not the notebook's latest, or "".
        unmakeable: Why running the source again would give something else, or "".
    """

    binding: Binding
    stale: str = ""
    unmakeable: str = ""


def is_definition(value: object, home: str) -> bool:
    """True for functions and classes made in the module `home`, wrapped ones included."""
    if getattr(value, "__module__", None) != home or not callable(value):
        return False
    return isinstance(value, type) or isinstance(getattr(value, "__qualname__", None), str)


def find(name: str, value: object, history: History) -> Found | None:
    """The source that made `value`, live under `name`; None when no executed cell holds it."""
    last = history.last(name)
    for binding in history.named(name):
        if _made_by(binding, value, history.futures, trusted=binding is last):
            return _judge(name, value, binding, history)
    return None


def runs_when_unpickled(value: object) -> bool:
    """True for a class with methods that rebuilding its instances may call."""
    return isinstance(value, type) and not _MAKES_OBJECTS.isdisjoint(vars(value))


def code_names(code: CodeType) -> set[str]:
    """Every global name that a compiled function, and what is nested in it, may read."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= code_names(constant)
    return names


def _judge(name: str, value: object, binding: Binding, history: History) -> Found:
    stale = ""
    newer = [b for b in history.bindings(name) if b.position > binding.position]
    if newer and newer[-1].kind is binding.kind:
        stale = f"{newer[-1].label} defines {name} again, but the live one is from {binding.label}"
    elif again := _rerun_without(binding, history):
        stale = f"its cell ran again as {again}, without {name}"
    return Found(binding, stale, _unmakeable(name, value, binding, history))


def _rerun_without(binding: Binding, history: History) -> str:
    index, cell_id = binding.position[0], binding.cell.cell_id
    later = [cell for cell in history.cells[index + 1 :] if cell_id and cell.cell_id == cell_id]
    return later[-1].label if later else ""


def _unmakeable(name: str, value: object, binding: Binding, history: History) -> str:
    for used in sorted(history.names_of(binding).eager - {name}):
        if why := history.changed_since(used, binding.position):
            return f"made before {why}"
    if why := history.patches(name, binding.position):
        return why
    if isinstance(value, type) and isinstance(binding.node, ast.ClassDef):
        return _changed_attribute(value, binding.node)
    if isinstance(value, FunctionType) and isinstance(binding.node, Function):
        return _changed_default(value, binding.node)
    return ""


def _changed_default(value: FunctionType, node: Function) -> str:
    """A default, such as `seen=[]`, that is no longer what the source says."""
    if node.decorator_list:
        return ""
    for written, live in zip(node.args.defaults, value.__defaults__ or (), strict=False):
        mutable = isinstance(written, ast.List | ast.Dict | ast.Set) and is_literal(written)
        if mutable and ast.literal_eval(written) != live:
            return f"its default {ast.unparse(written)} has changed"
    return ""


def _changed_attribute(value: type, node: ast.ClassDef) -> str:
    """A class attribute that the body sets to a literal, but that holds something else now."""
    for statement in node.body:
        if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
            continue
        name = statement.targets[0].id
        if is_literal(statement.value) and type(value) is type and name in vars(value):
            written, live = ast.literal_eval(statement.value), vars(value)[name]
            if type(written) is type(live) and written != live:
                return f"its attribute {name} has changed"
    return ""


def _made_by(binding: Binding, value: object, futures: tuple[str, ...], *, trusted: bool) -> bool:
    """Whether this statement made the value; a decorator's result without a trace is believed when `trusted`."""
    node = binding.node
    codes = _compiled(binding, futures)
    if isinstance(node, ast.ClassDef):
        return isinstance(value, type) and _class_made_by(value, node, codes, trusted=trusted)
    live = list(_live_codes(value, set()))
    own = [code for code in codes if code.co_name == (node.name if isinstance(node, Function) else "<lambda>")]
    if any(same_code(mine, theirs) for mine in own for theirs in live):
        closed = isinstance(value, FunctionType) and bool(value.__closure__)
        return not closed or bool(getattr(node, "decorator_list", ()))
    return trusted and bool(getattr(node, "decorator_list", ()))


def _class_made_by(value: type, node: ast.ClassDef, codes: list[CodeType], *, trusted: bool) -> bool:
    if node.decorator_list and trusted:
        return True
    methods = [code for body in codes for code in body.co_consts if isinstance(code, CodeType)]
    defined = {part.name for part in node.body if isinstance(part, Function) and not part.decorator_list}
    for name in defined:
        live = vars(value).get(name)
        written = [code for code in methods if code.co_name == name]
        if isinstance(live, FunctionType) and not any(same_code(code, live.__code__) for code in written):
            return False
    hints = {s.target.id for s in node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)}
    return (
        hints == set(vars(value).get("__annotations__", {}))
        and defined <= set(vars(value))
        and value.__name__ == node.name
    )


def _compiled(binding: Binding, futures: tuple[str, ...]) -> list[CodeType]:
    """What the definition compiles to: alone, as IPython does, and with its cell or file around it.

    The two may differ: the compiler treats a method of a name imported in the same text in another way.
    """
    flags = compiler_flags(futures) | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    node = binding.node
    alone = compile(ast.Module([node], type_ignores=[]), "<cell>", "exec", flags=flags, dont_inherit=True)
    whole = compile(binding.text, "<cell>", "exec", flags=flags, dont_inherit=True)
    codes = [code for code in (*alone.co_consts, *whole.co_consts) if isinstance(code, CodeType)]
    return [code for code in codes if binding.first_line <= code.co_firstlineno <= (node.end_lineno or node.lineno)]


def _live_codes(value: object, seen: set[int]) -> Iterator[CodeType]:
    """The code of a function, and of those it wraps."""
    if id(value) in seen or len(seen) > 20:
        return
    seen.add(id(value))
    if isinstance(value, FunctionType):
        yield value.__code__
        for cell in value.__closure__ or ():
            if callable(content := _content(cell)):
                yield from _live_codes(content, seen)
    wrapped = inspect.getattr_static(value, "__wrapped__", None) or getattr(value, "__func__", None)
    if wrapped is not None:
        yield from _live_codes(wrapped, seen)


def _content(cell: object) -> object:
    try:
        return getattr(cell, "cell_contents", None)
    except ValueError:  # an empty cell
        return None


def same_code(mine: CodeType, theirs: CodeType) -> bool:
    """Whether two code objects do the same, wherever they stand."""
    if (mine.co_code, mine.co_names, mine.co_varnames) != (theirs.co_code, theirs.co_names, theirs.co_varnames):
        return False
    if len(mine.co_consts) != len(theirs.co_consts) or mine.co_argcount != theirs.co_argcount:
        return False
    return all(map(_same_constant, mine.co_consts, theirs.co_consts))


def _same_constant(mine: object, theirs: object) -> bool:
    if isinstance(mine, CodeType) and isinstance(theirs, CodeType):
        return same_code(mine, theirs)
    return type(mine) is type(theirs) and (mine == theirs or repr(mine) == repr(theirs))


def is_shells_own(name: str, value: object) -> bool:
    """True for a builtin that IPython replaced in the user's namespace, such as `open` or `exit`."""
    plain = getattr(builtins, name, None)
    replaced = type(value).__module__.startswith("IPython") or getattr(value, "__wrapped__", None) is plain
    return plain is not None and replaced
