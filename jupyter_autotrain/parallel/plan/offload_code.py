"""The part of a plan's code that keeps tables and optimizer states in the host's memory."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_autotrain.parallel.plan.modules import ModuleSharding
from jupyter_autotrain.parallel.plan.patterns import matches


def tables(modules: Sequence[ModuleSharding]) -> str:
    """Embeddings on the host: indices go there, looked-up rows come back, their optimizer works there."""
    paths = [module.path for module in modules if module.host_table]
    if not paths:
        return ""
    return "\n".join(
        [
            "# These tables stay on the host, with their optimizer; only looked-up rows come to the device.",
            f"tables = [{', '.join(f'model.{path}' for path in paths)}]",
            "for table in tables:",
            '    table.to("cpu").sparse = True',
            '    table.register_forward_pre_hook(lambda table, ids: (ids[0].to("cpu"),))',
            '    table.register_forward_hook(lambda table, ids, rows: rows.to("cuda"))',
            "tables_optimizer = torch.optim.SparseAdam([table.weight for table in tables], lr=3e-4)",
        ]
    )


def offloaded(modules: Sequence[ModuleSharding]) -> str:
    """An optimizer whose states and update are on the host, for the modules that want it."""
    away = [module for module in modules if module.offload]
    if not away:
        return ""
    every = len(away) == len(modules)
    which = "model.parameters()"
    if not every:
        which = f"[p for name, p in model.named_parameters() if {matches(away, modules)}]"
    return (
        "# The states of these weights stay on the host, and are updated there.\n"
        f"optimizer = CPUOffloadOptimizer({which}, torch.optim.AdamW, lr=3e-4)"
    )
