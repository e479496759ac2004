"""Parts of code of torch alone: the interpreter's own functions, and a recipe's tensor axis as a table for them."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from importlib.resources import files
from typing import Final

from jupyter_autotrain.parallel.apply.recipe import ExpertRecipe, Layout, ModuleRecipe, TensorRecipe
from jupyter_autotrain.parallel.plan.modules import indices_of, template_of

FUTURE: Final = "from __future__ import annotations"
TABLE: Final = "LAYERS"
EXPERT_TABLE: Final = "EXPERTS"
_MEMORY: Final = "jupyter_autotrain.parallel.cost"
_INTERPRETER: Final = "jupyter_autotrain.parallel.apply"
# Modules in the order in which they need one another.
_SHARED: Final = ("recipe", "recompute", "clipping", "layouts", "fused", "products", "tensor", "experts")
_LOADING: Final = ("ranks", "shards", "weight_files", "drawing", "materializing")
_STAGED: Final = ("ranks", "stages", "sharding", "pipeline")
_FOR_CHECKERS: Final = re.compile(r"  # (?:type: ignore|noqa).*")
_ERROR: Final = '''class PlanError(Exception):
    """A model or a batch that does not fit the plan."""

    def __str__(self):
        return " ".join(self.args)
'''
_MISSING: Final = '''class MissingExtraError(PlanError):
    """A package that is not installed."""

    def __init__(self, package, extra, purpose):
        super().__init__(f"{purpose} needs the package {package}.", f"Install it with: pip install {package}")
'''


def names_in(text: str) -> set[str]:
    """Return the names that code uses, but for attributes."""
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


@dataclass
class Source:
    """Definitions and imports of modules, in order.

    Attributes:
        definitions: Name → text.
        imports: Name → module and name there; those of this package are definitions.
    """

    definitions: dict[str, str] = field(default_factory=lambda: {"PlanError": _ERROR, "MissingExtraError": _MISSING})
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def of_interpreter(cls, *, staged: bool = False, loads: bool = False) -> Source:
        """Return what runs recipes, or those with pipeline stages, but for the entry points; and what loads weights."""
        source = cls()
        if staged:
            source.read(files(_MEMORY).joinpath("memory.py").read_text(encoding="utf-8"))
        modules = dict.fromkeys((*_SHARED, *(_LOADING if loads else ()), *(_STAGED if staged else ("sharding",))))
        for module in modules:
            source.read(files(_INTERPRETER).joinpath(f"{module}.py").read_text(encoding="utf-8"))
        return source

    def read(self, text: str) -> None:
        """Add those of a module."""
        lines = _FOR_CHECKERS.sub("", text).splitlines()
        last = ""
        for node in ast.parse(text).body:
            name = _name_of(node)
            if isinstance(node, ast.ImportFrom | ast.Import):
                self._add_imports(node)
            elif name or last:  # a text behind a constant describes it
                last = name or last
                first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
                own = "\n".join(lines[first - 1 : node.end_lineno])
                self.definitions[last] = f"{self.definitions[last]}{own}\n" if not name else f"{own}\n"

    def _add_imports(self, node: ast.ImportFrom | ast.Import) -> None:
        module = getattr(node, "module", "") or ""
        if not module.startswith(("__future__", "jupyter_autotrain")):
            self.imports |= {alias.asname or alias.name: (module, alias.name) for alias in node.names}

    def import_lines(self, body: str) -> Iterator[str]:
        """Yield the lines that bind the names which code uses."""
        by_module: dict[str, list[str]] = defaultdict(list)
        for bound in sorted(names_in(body) & self.imports.keys()):
            module, name = self.imports[bound]
            by_module[module].append(name if name == bound else f"{name} as {bound}")
        yield from (f"import {name}" for name in by_module.pop("", ()))
        yield from (f"from {module} import {', '.join(by_module[module])}" for module in sorted(by_module))

    def reached_from(self, text: str) -> Iterator[str]:
        """Yield the texts of definitions that code uses without defining them, and of those that these use."""
        own = set(map(_name_of, ast.parse(text).body))
        reached = list(names_in(text) - own)
        for name in reached:
            if name in self.definitions:
                reached += names_in(self.definitions[name]).difference(reached, own)
        return (text for name, text in self.definitions.items() if name in reached)


def _name_of(node: ast.stmt) -> str:
    """Return the name that a statement defines; "" for one that defines none."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return next((target.id for target in targets if isinstance(target, ast.Name)), "")


def tensor_table(recipe: TensorRecipe) -> Iterator[str]:
    """Yield the lines of a recipe's tensor axis."""
    yield f"{TABLE} = TensorRecipe("
    yield f"    ranks={recipe.ranks},"
    modules = ((module.path, f"ModuleRecipe({{}}, {_words(module)})") for module in recipe.modules)
    yield from tuple_lines("modules", modules)
    if recipe.regions:
        yield f"    regions={recipe.regions!r},".replace("'", '"')
    for name in ("gathered", "summed", "sizes"):
        paths = getattr(recipe, name)
        if paths:
            yield from tuple_lines(name, ((path, "{}") for path in paths))
    yield ")\n"


def expert_table(recipe: ExpertRecipe) -> Iterator[str]:
    """Yield the lines of a recipe's expert axis."""
    yield f"{EXPERT_TABLE} = ExpertRecipe("
    yield f"    ranks={recipe.ranks},"
    yield from tuple_lines("modules", ((path, "{}") for path in recipe.modules))
    yield ")\n"


def tuple_lines(name: str, entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a tuple of what is made of paths; of layers that are alike as one entry."""
    alike: dict[tuple[str, str], list[int]] = defaultdict(list)
    for path, made in entries:
        template, index = template_of(path)
        alike[template, made].append(index)
    yield f"    {name}=("
    for (template, made), indices in alike.items():
        if len(indices) > 1:
            each = made.format(f'f"{template}"')
            yield f"        *(\n            {each}\n            for i in {indices_of(indices)}\n        ),"
        else:
            alone = '"{}"'.format(template.replace("{i}", str(indices[0])))
            yield f"        {made.format(alone)},"
    yield "    ),"


def _words(module: ModuleRecipe) -> str:
    """Return the arguments after the path that differ from what is assumed."""
    words = [f"WeightSplit.{module.split.name}"]
    for each in fields(ModuleRecipe)[2:]:
        value = getattr(module, each.name)
        if value != each.default:
            written = f"Layout.{value.name}" if isinstance(value, Layout) else repr(value)
            words.append(f"{each.name}={written}")
    return ", ".join(words)
