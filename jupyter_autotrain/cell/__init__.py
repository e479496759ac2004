"""The notebook entry point: magics, capture of the notebook, completion. Only this package and `widgets` use IPython.

Data flow: `magics` (entry point) → `submission` (header → capture → check → send) → `widgets.show`.
"""

from __future__ import annotations

from IPython.core.interactiveshell import InteractiveShell

from jupyter_autotrain.cell import completion
from jupyter_autotrain.cell.magics import AutotrainMagics
from jupyter_autotrain.client import experiment_names


def load(shell: InteractiveShell) -> None:
    """Register `%%autotrain`, `%autotrain` and completion."""
    shell.register_magics(AutotrainMagics(shell))
    completion.install(shell, experiment_names)


def unload(shell: InteractiveShell) -> None:
    """Undo `load`."""
    completion.remove(shell)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("autotrain", None)
