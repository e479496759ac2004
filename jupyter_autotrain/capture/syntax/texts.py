"""Names in the texts of known calls: `df.query("a > @limit")`, `eval("a + b")`, `smf.ols("y ~ half(x)", df)`.

Python does not see that such a text reads names; what is called reads them in the caller's globals. Texts of other
calls mean nothing here.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from jupyter_autotrain.capture.syntax import main_module
from jupyter_autotrain.capture.syntax.main_module import Known
from jupyter_autotrain.capture.syntax.text_languages import (
    at_names,
    format_fields,
    identifiers,
    percent_names,
    template_placeholders,
)

_FORMULAS = frozenset({
    "build_design_matrices", "dmatrices", "dmatrix", "from_formula", "gee", "glm", "gls", "glsar", "lmer", "logit",
    "mixedlm", "mnlogit", "model_matrix", "negativebinomial", "ols", "ordinal_gee", "phreg", "poisson", "probit",
    "quantreg", "rlm", "wls",
})  # fmt: skip
_TIMERS = frozenset({"Timer", "repeat", "timeit"})
_OF_A_TABLE = frozenset({"eval", "evaluate", "query"})
_OF_SCOPE = frozenset({"globals", "locals", "vars"})
_OF_A_MODULE = frozenset({"delattr", "getattr", "hasattr", "setattr"})


@dataclass(slots=True)
class TextReading:
    """What a call reads by its texts.

    Attributes:
        names: Names it may read.
        code: Code that it runs in the caller's scope.
        unknown: What is not known of it, for people; "" when all is.
        used: `globals()`, `__main__` and the like, whose use is explained by this one.
        binds: Whether it binds names.
    """

    names: set[str] = field(default_factory=set)
    code: list[str] = field(default_factory=list)
    unknown: str = ""
    used: list[ast.expr] = field(default_factory=list)
    binds: bool = False


def is_scope(node: ast.AST | None, known: Known) -> bool:
    """Return True for `globals()`, `locals()` and `vars()`, and for the names of the module `__main__`."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[], keywords=[]):
            return name in _OF_SCOPE
        case ast.Call(func=ast.Name(id="vars"), args=[module]) | ast.Attribute(value=module, attr="__dict__"):
            return main_module.is_main(module, known)
    return False


def in_call(call: ast.Call, known: Known) -> TextReading | None:
    """What a call reads by its texts; None for a call that is not known to read any."""
    for rule in (_runs, _times, _of_a_table, _formula, _format, _lookup, _of_main):
        reading = rule(call, known)
        if reading is not None:
            return reading
    return None


def in_percent(node: ast.BinOp, known: Known) -> TextReading | None:
    """What `"%(name)s" % globals()` reads."""
    if not (isinstance(node.op, ast.Mod) and is_scope(node.right, known)):
        return None
    text = known(node.left)
    reading = TextReading(used=[node.right])
    if isinstance(text, str):
        reading.names.update(percent_names(text))
    else:
        reading.unknown = f"the text before % {ast.unparse(node.right)}"
    return reading


def in_subscript(node: ast.Subscript, known: Known) -> TextReading | None:
    """What `globals()["name"]` reads."""
    return _key(node.value, node.slice, known) if is_scope(node.value, known) else None


def in_attribute(node: ast.Attribute, known: Known) -> TextReading | None:
    """Return what `__main__.name` reads."""
    if node.attr == "__dict__" or not main_module.is_main(node.value, known):
        return None
    is_read = isinstance(node.ctx, ast.Load)
    return TextReading({node.attr} if is_read else set(), used=[node.value], binds=not is_read)


def in_comparison(node: ast.Compare, known: Known) -> TextReading | None:
    """The name that `"name" in globals()` tests."""
    if len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn) and is_scope(node.comparators[0], known):
        return _key(node.comparators[0], node.left, known)
    return None


def _key(scope: ast.expr, key: ast.expr, known: Known) -> TextReading:
    text = known(key)
    if isinstance(text, str):
        return TextReading({text}, used=[scope])
    return TextReading(unknown=f"{ast.unparse(scope)}[{ast.unparse(key)}]", used=[scope])


def _called(call: ast.Call) -> tuple[str, str]:
    """The name of what is called, and that of what it is an attribute of."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr, function.value.id if isinstance(function.value, ast.Name) else "?"
    return (function.id if isinstance(function, ast.Name) else ""), ""


def _argument(call: ast.Call, index: int, *names: str) -> ast.expr | None:
    given = next((keyword.value for keyword in call.keywords if keyword.arg in names), None)
    return given if given is not None or len(call.args) <= index else call.args[index]


def _runs(call: ast.Call, known: Known) -> TextReading | None:
    """`eval` and `exec`, and the profilers' `run`."""
    name, owner = _called(call)
    if not ((name in {"eval", "exec"} and not owner) or (name == "run" and owner in {"cProfile", "profile"})):
        return None
    scope = _argument(call, 1, "globals")
    text = _argument(call, 0, "source", "statement")
    if scope is not None and not is_scope(scope, known) and name != "run":
        return TextReading()  # it has names of its own
    if isinstance(text, ast.Call) and _called(text)[0] == "compile":
        text = _argument(text, 0, "source")
    reading = TextReading(used=[scope] if scope is not None else [])
    _run(reading, text, known, f"{name}({ast.unparse(text) if text else ''})")
    return reading


def _times(call: ast.Call, known: Known) -> TextReading | None:
    name, owner = _called(call)
    scope = next((keyword.value for keyword in call.keywords if keyword.arg == "globals"), None)
    if name not in _TIMERS or owner not in {"", "timeit"} or not is_scope(scope, known):
        return None
    reading = TextReading(used=[scope] if scope is not None else [])
    for index, argument in enumerate(("stmt", "setup")):
        text = _argument(call, index, argument)
        if text is not None and not isinstance(text, ast.Lambda):
            _run(reading, text, known, f"{name}({ast.unparse(text)})")
    return reading


def _run(reading: TextReading, text: ast.expr | None, known: Known, written: str) -> None:
    code = known(text) if text is not None else None
    if isinstance(code, str):
        reading.code.append(code.strip())
    elif text is not None and not callable(code):
        reading.unknown = written


def _of_a_table(call: ast.Call, known: Known) -> TextReading | None:
    """`df.query`, `df.eval`, `pd.eval` and `numexpr.evaluate`."""
    name, owner = _called(call)
    text = _argument(call, 0, "expr", "ex")
    if text is None or not owner or name not in _OF_A_TABLE:
        return None
    value = _known_parts(text, known) if isinstance(text, ast.JoinedStr) else known(text)
    if not isinstance(value, str):
        return None
    if (name == "eval" and owner in {"pd", "pandas"}) or (name == "evaluate" and owner in {"ne", "numexpr"}):
        return TextReading(set(identifiers(value.replace("@", " "))))
    if name in {"eval", "query"}:
        return TextReading(set(at_names(value)))
    return None


def _formula(call: ast.Call, known: Known) -> TextReading | None:
    """Formulas of statsmodels and patsy: a name that is no column of the data is the caller's."""
    name, _ = _called(call)
    named = [keyword.value for keyword in call.keywords if "formula" in (keyword.arg or "")]
    if name not in _FORMULAS and not named:
        return None
    texts = [known(part) for part in (*call.args, *named)]
    formulas = [text for text in texts if isinstance(text, str) and ("~" in text or name.startswith("dmatri"))]
    if not formulas:
        return None
    data = _argument(call, 1, "data")
    found = set[str]().union(*map(identifiers, formulas))
    return TextReading(found - _columns(known(data) if data is not None else None))


def _columns(data: object) -> set[str]:
    """The names of a table's columns; empty for what is no table."""
    try:
        return {str(column) for column in getattr(data, "columns", ())}
    except Exception:  # noqa: BLE001 - whatever the user's object has under this name
        return set()


def _format(call: ast.Call, known: Known) -> TextReading | None:
    """`"{name}".format(**globals())`, `.format_map(globals())` and `Template("$name").substitute(globals())`."""
    named = [keyword.value for keyword in call.keywords]
    scopes = [part for part in (*call.args, *named) if is_scope(part, known)]
    if not scopes or not isinstance(call.func, ast.Attribute):
        return None
    owner = call.func.value
    method = call.func.attr
    reading = TextReading(used=scopes)
    if method in {"format", "format_map"}:
        text = known(owner)
        find = format_fields
    elif method in {"safe_substitute", "substitute"} and isinstance(owner, ast.Call) and owner.args:
        text = known(owner.args[0])
        find = template_placeholders
    else:
        return None
    if isinstance(text, str):
        reading.names.update(find(text))
    else:
        reading.unknown = f"{ast.unparse(owner)}.{method}(...)"
    return reading


def _lookup(call: ast.Call, known: Known) -> TextReading | None:
    """`globals().get("name")`; what only binds names reads none."""
    if not (isinstance(call.func, ast.Attribute) and is_scope(call.func.value, known)):
        return None
    if call.func.attr in {"setdefault", "update"}:
        return TextReading(used=[call.func.value], binds=True)
    if call.func.attr in {"get", "pop", "__getitem__"} and call.args:
        return _key(call.func.value, call.args[0], known)
    return None


def _of_main(call: ast.Call, known: Known) -> TextReading | None:
    """Read `getattr(__main__, "name")` and its like."""
    name, owner = _called(call)
    if owner or name not in _OF_A_MODULE or len(call.args) < 2 or not main_module.is_main(call.args[0], known):
        return None
    module, key = call.args[:2]
    if name not in {"getattr", "hasattr"}:
        return TextReading(used=[module], binds=True)
    text = known(key)
    if isinstance(text, str):
        return TextReading({text}, used=[module])
    return TextReading(unknown=ast.unparse(call), used=[module])


def _known_parts(node: ast.JoinedStr, known: Known) -> str:
    """The text of an f-string without what is not known of it: a number, most likely."""
    parts = [known(part) for part in node.values]
    return "".join(part if isinstance(part, str) else " " for part in parts)
