"""The tensor axis of a decision, module by module: what executing it takes, or why it is not executed.

An op reads activations in one layout and leaves them in another (`Layout`). Executed is a decision in which modules
with weights alone change layouts: they gather or cut their input, and sum or gather their output. Everything between
them then runs on the part of an activation that its rank has, unchanged. Where positions are split, they are so inside
of the layers alone: what reads activations outside sees whole sequences. Linear in the graph.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from jupyter_autotrain.parallel.apply.recipe import Layout, ModuleRecipe, TensorRecipe, WeightSplit
from jupyter_autotrain.parallel.cost.layout import Placement, Shard
from jupyter_autotrain.parallel.decision import Decision
from jupyter_autotrain.parallel.graph.graph import PARTS, WHOLE, Family, LoopRole, Op, Operand, OpGraph
from jupyter_autotrain.parallel.graph.tensor_parallel import summed_loops
from jupyter_autotrain.parallel.tensor_layouts import AxisLayouts, NotExecutedError, layer_of, sizes_in

_PRODUCT = frozenset(("linear", "addmm", "mm", "embedding", "view", "t", "transpose", "permute"))
_CUTS = frozenset(("split", "split_with_sizes", "chunk", "unbind", "unsafe_split", "unsafe_chunk"))
_SHAPES = frozenset(("view", "reshape", "_unsafe_view"))
_PASSING = (Family.RESHAPE, Family.ELEMENTWISE)


def tensor_axis(graph: OpGraph, decision: Decision) -> int | None:
    """Return the axis that splits features or heads, and samples nowhere; None where no axis does, or several do."""
    found = []
    for axis, roles in enumerate(roles_of_axes(graph, decision)):
        if LoopRole.BATCH not in roles and roles & {LoopRole.FEATURE, LoopRole.HEAD}:
            found.append(axis)
    return found[0] if len(found) == 1 else None


def roles_of_axes(graph: OpGraph, decision: Decision) -> tuple[set[LoopRole], ...]:
    """Return for each axis the roles of the loops that it splits."""
    found = tuple(set[LoopRole]() for _ in decision.mesh.axes)
    for op in graph.ops:
        for roles, index in zip(found, decision.ops[op.name].loops, strict=True):
            if index is not None:
                roles.add(op.loops[index].role)
    return found


def tensor_recipe(graph: OpGraph, decision: Decision) -> TensorRecipe | None:
    """Return what ranks of the tensor axis do; None without such an axis.

    Raises:
        NotExecutedError: The decision uses the axis otherwise than what is executed.
    """
    axis = tensor_axis(graph, decision)
    if axis is None:
        return None
    if axis != len(decision.mesh.axes) - 1:
        raise NotExecutedError(f"the axis {decision.mesh.axes[axis]} is not the innermost one")
    return _Reader(graph, decision, axis).recipe()


def why_not_executed(graph: OpGraph, decision: Decision) -> str:
    """Return why a decision's tensor axis is not executed; "" where it is, or where there is none."""
    try:
        tensor_recipe(graph, decision)
    except NotExecutedError as reason:
        return str(reason)
    return ""


@dataclass
class _Reader(AxisLayouts):
    """Walks over the ops in order, and collects what modules do.

    Attributes:
        modules: Path → what the module does.
        summed: Paths of modules whose weights meet positions of their rank.
        weights: Weight → how its first reader has it.
        kinds: Path → kinds of what its module itself does.
        shaping: Paths of modules that themselves shape tensors.
    """

    modules: dict[str, ModuleRecipe] = field(default_factory=dict)
    summed: dict[str, None] = field(default_factory=dict)
    weights: dict[int, Placement] = field(default_factory=dict)
    kinds: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    shaping: set[str] = field(default_factory=set)

    def recipe(self) -> TensorRecipe:
        """Return what all ops take."""
        for op in self.graph.ops:
            for name in (op.name, *(member.name for member in op.members)):
                self.kinds[name.rpartition(".")[0]].add(_kind(name))
        self.shaping = {path for path, kinds in self.kinds.items() if kinds & _SHAPES}
        for op in self.graph.ops:
            weight = self._split_weight(op)
            if weight:
                self._take_split(op, weight)
            else:
                self._take_whole(op)
        gathered = dict.fromkeys(self._gathering())
        modules = tuple(self._without_gather(module, gathered) for module in self.modules.values())
        ranks = self.decision.mesh.shape[self.axis]
        sizes = sizes_in(self.graph, [module.path for module in modules if module.split is not WeightSplit.NONE])
        return TensorRecipe(ranks, modules, self.regions, tuple(gathered), tuple(self.summed), tuple(sizes))

    def _split_weight(self, op: Op) -> Operand | None:
        """Return the weight of which a rank has a part."""
        of_matrix = [x for x in self.parameters(op) if len(x.loops) > 1]
        split = [x for x in of_matrix if self.read(op, x) is not Layout.WHOLE]
        if not split:
            return None
        if len(of_matrix) > 1 or op.family not in {Family.MATMUL, Family.EMBEDDING} or len(split[0].loops) != 2:
            raise NotExecutedError(f"{op.name} splits weights, but is not a matrix product or embedding")
        return split[0]

    def _take_whole(self, op: Op) -> None:
        """Take an op with whole weights, or none: it runs on what its rank has."""
        parameters = list(self.parameters(op))
        if any(self.read(op, x) is not Layout.WHOLE for x in parameters):
            raise NotExecutedError(f"{op.name} splits weights, but is not a matrix product or embedding")
        for x in parameters:
            self._take_weight(op, x)
        if {Layout.POSITIONS, Layout.FEATURES} & {self.read(op, x) for x in self.activations(op)}:
            self.summed |= dict.fromkeys(map(self._holder, parameters))
        for number, x in enumerate(self.activations(op)):
            self._check_read(op, x, gathers=bool(parameters) and op.family is Family.NORM and number == 0)
        for out in op.outputs:
            made = self.made(op, out)
            if made is Layout.TERMS and op.family is not Family.LOSS:
                raise NotExecutedError(f"{op.name} leaves terms of a sum")
            self.left[out.tensor] = made

    def _check_read(self, op: Op, x: Operand, *, gathers: bool) -> None:
        comes = self.comes(op, x)
        reads = self.read(op, x)
        is_made_here = x.tensor not in self.graph.producers and op.family is Family.ATTENTION
        if comes is reads or op.family is Family.LOSS or (is_made_here and reads is Layout.FEATURES):
            return
        if not gathers or reads is not Layout.WHOLE or comes is Layout.TERMS:
            raise NotExecutedError(f"{op.name} reads {reads} of what comes as {comes}")
        self._add(ModuleRecipe(_path(op), WeightSplit.NONE, comes, reads), op)

    def _take_split(self, op: Op, weight: Operand) -> None:
        """Take a product or an embedding whose weight is split."""
        self._take_weight(op, weight)
        split = self._split_of(op, weight)
        self._check_alone(op, split)
        makes = Layout.FEATURES if split is WeightSplit.COLUMNS else Layout.TERMS
        comes, reads = self._input_of(op, weight)
        leaves = self._leaves(op, makes)
        for out in op.outputs:
            made = self.made(op, out)
            self.left[out.tensor] = leaves if made is makes else made
        at_loss = makes is Layout.FEATURES and leaves is makes and self._feeds_loss(op)
        left = Layout.CLASSES if at_loss else leaves
        if split is WeightSplit.COLUMNS and op.family is Family.MATMUL:
            parts = self._parts(op)
            sizes = self._sizes(op)
            self._check_shared(op, weight, is_fused=parts > 1 or bool(sizes))
            self._add(ModuleRecipe(_path(op), split, comes, reads, left, parts, sizes), op)
        else:
            self._add(ModuleRecipe(_path(op), split, comes, reads, left), op)

    def _add(self, module: ModuleRecipe, op: Op) -> None:
        if self.modules.setdefault(module.path, module) != module:
            raise NotExecutedError(f"{op.name} is of a module that is used in two ways")

    def _take_weight(self, op: Op, x: Operand) -> None:
        placed = self.decision.ops[op.name].inputs[op.inputs.index(x)][self.axis]
        if len(x.loops) > 1 and self.weights.setdefault(x.tensor, placed) != placed:
            raise NotExecutedError(f"{op.name} reads a weight that another op reads otherwise")

    def _check_alone(self, op: Op, split: WeightSplit) -> None:
        """Check that the module does nothing but the product, so that splitting the product splits the module."""
        path = _path(op)
        if self.kinds[path] - _PRODUCT or path in json.loads(self.graph.meta.get(WHOLE, "[]")):
            raise NotExecutedError(f"{path} does more than its product")
        bias = Layout.FEATURES if split is WeightSplit.COLUMNS else Layout.WHOLE
        if any(len(x.loops) == 1 and self.read(op, x) is not bias for x in self.parameters(op)):
            raise NotExecutedError(f"{op.name} reads a bias otherwise than its weight")

    def _split_of(self, op: Op, weight: Operand) -> WeightSplit:
        placed = self.decision.ops[op.name].inputs[op.inputs.index(weight)][self.axis]
        dim = placed.dim if isinstance(placed, Shard) else 0
        if op.family is Family.EMBEDDING:
            return WeightSplit.COLUMNS if dim else WeightSplit.VOCABULARY
        is_summed = weight.loops[dim] in summed_loops(self.graph, op, weight)
        return WeightSplit.ROWS if is_summed else WeightSplit.COLUMNS

    def _input_of(self, op: Op, weight: Operand) -> tuple[Layout, Layout]:
        """Return how what meets the weight comes and is read; what else the op reads must come as it is read."""
        inner = summed_loops(self.graph, op, weight)
        found = None
        for x in self.activations(op):
            meets = op.family is Family.EMBEDDING or bool(inner & set(x.loops))
            if found is None and meets:
                found = self.comes(op, x), self.read(op, x)
            else:
                self._check_read(op, x, gathers=False)
        return found or (Layout.WHOLE, Layout.WHOLE)

    def _leaves(self, op: Op, makes: Layout) -> Layout:
        """Return the layout in which a module is to leave its output: as the first reader that cannot move it reads."""
        firsts = []
        for out in op.outputs:
            if self.made(op, out) is makes:
                firsts += [(reader, out.tensor) for reader in self.graph.consumers.get(out.tensor, ())]
        for number, tensor in sorted(firsts):
            reader = self.graph.ops[number]
            read = next(self.read(reader, x) for x in reader.inputs if x.tensor == tensor)
            moves = self._split_weight(reader) is not None or reader.family is Family.NORM
            if not moves or makes is Layout.TERMS:
                return self._outside(read, op, reader)
        return makes if makes is Layout.FEATURES else Layout.WHOLE

    def _outside(self, read: Layout, op: Op, reader: Op) -> Layout:
        """Return what is left for a reader: what leaves the layers is gathered where these end."""
        if layer_of(op) and not layer_of(reader):
            return Layout.POSITIONS if layer_of(op) in {last for _, last in self.regions} else read
        return Layout.WHOLE if read is Layout.POSITIONS and not layer_of(op) else read

    def _feeds_loss(self, op: Op) -> bool:
        """Return whether a loss, maybe behind views and casts, reads what the op makes."""
        reached = list(self.graph.readers(op))
        for number in reached:
            reader = self.graph.ops[number]
            if reader.family is Family.LOSS:
                return True
            if reader.family in _PASSING:
                reached += [after for after in self.graph.readers(reader) if after not in reached]
        return False

    def _sizes(self, op: Op) -> tuple[int, ...]:
        """Return the features of each projection where a product's output is cut by places, or into unequal parts."""
        parts: dict[str, list[int]] = json.loads(self.graph.meta.get(PARTS, "{}"))
        return tuple(parts.get(_path(op), ()))

    def _check_shared(self, op: Op, weight: Operand, *, is_fused: bool) -> None:
        """Check that data ranks can share out a weight along the dim that its projections do not lie along."""
        ranks = prod(self.decision.mesh.shape) // self.decision.mesh.shape[self.axis]
        placed = self.decision.ops[op.name].inputs[op.inputs.index(weight)][self.axis]
        is_first = isinstance(placed, Shard) and placed.dim == 0
        if is_fused and is_first and self.graph.tensors[weight.tensor].shape[1] % ranks:
            raise NotExecutedError(
                f"{op.name} has projections in one weight, of inputs that {ranks} data ranks do not divide"
            )

    def _parts(self, op: Op) -> int:
        """Return how many equal parts the features of a product are cut into, as queries, keys and values are.

        What is cut within each head, behind the view that parts these, goes with its head.
        """
        if self._sizes(op):
            return 1
        own = [_kind(member.name) for member in op.members]
        for cut in (op, *(self.graph.ops[reader] for reader in self.graph.readers(op))):
            kinds = own if cut is op else [*own, _kind(cut.name), *(_kind(member.name) for member in cut.members)]
            at = next((place for place, kind in enumerate(kinds) if kind in _CUTS), None)
            if at is None:
                continue
            flat = next((place for place, kind in enumerate(kinds[:at]) if kind in {"addmm", "mm"}), None)
            made = 0 if flat is None else flat + 2  # a product of flat rows, and the view that makes positions of them
            is_within_heads = not _SHAPES.isdisjoint(kinds[made:at])
            sizes = [self.graph.tensors[out.tensor].numel for out in cut.outputs]
            parts = sizes.count(min(sizes))
            if kinds[at] == "unbind" or max(sizes) not in {min(sizes), min(sizes) * parts}:
                raise NotExecutedError(f"{op.name} has projections of unequal size, or interleaved, in one weight")
            return 1 if is_within_heads else parts
        return 1

    def _holder(self, parameter: Operand) -> str:
        return self.graph.tensors[parameter.tensor].name.rpartition(".")[0]

    def _gathering(self) -> Iterator[str]:
        """Yield modules that read positions to gather them for their products, and hold nothing that needs them."""
        needing = set(map(layer_of, self.graph.ops))
        for path in self.summed:
            parts = path.split(".")
            needing |= {".".join(parts[:length]) for length in range(1, len(parts))}
        for module in self.modules.values():
            parent = module.path.rpartition(".")[0]
            if module.comes is not Layout.POSITIONS:
                continue
            if parent not in needing:
                yield parent
            elif parent in self.shaping:
                raise NotExecutedError(f"{parent} shapes heads by the positions of its input, which it reads split")

    def _without_gather(self, module: ModuleRecipe, gathered: Mapping[str, None]) -> ModuleRecipe:
        if module.comes is Layout.POSITIONS and module.path.rpartition(".")[0] in gathered:
            return replace(module, comes=Layout.WHOLE, is_gathered=True)
        return module


def _path(op: Op) -> str:
    """Return the module of an op, whose name ends with what it does; in graphs that are no trace it is the module's."""
    module, _, _ = op.name.rpartition(".")
    return module if _kind(op.name) in {op.kind, *_PRODUCT} else op.name


def _kind(name: str) -> str:
    """Return the last part of an op's name without the number that makes it unique."""
    return name.rpartition(".")[2].rstrip("_0123456789")
