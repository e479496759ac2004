"""The warm processes of this machine, from which trials begin: `ls --warm`, `stop --warm`."""

from __future__ import annotations

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.pool import needed_imports, warm_list
from jupyter_autotrain.agent.pool.warm_list import WarmEntry
from jupyter_autotrain.agent.service import warm_starts
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.capture.bundle import FILES, SCRIPT
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.core.text_format import count, duration, first_of
from jupyter_autotrain.verbs.context import CommandContext

_SHOWN = 6
_HEADS = ("pid", "imported", "left to trials", "memory", "used", "interpreter")


def listed(command: CommandContext) -> list[WarmEntry]:
    """Return them, the most recently used first."""
    return warm_list.living(command.home.root / warm_starts.FOLDER)


def show_warm(command: CommandContext) -> None:
    """List them: what each has imported for trials, what it leaves to them, and why."""
    found = listed(command)
    if found:
        command.present(Table(_HEADS, [_row(command, entry) for entry in found]))
    else:
        command.write("No warm processes. One comes with a trial of this machine, and ends when none follows.\n")


def stop_warm(command: CommandContext) -> None:
    """End them all; trials that began from them go on."""
    ended = warm_list.end_all(command.home.root / warm_starts.FOLDER)
    text = f"Ended {count(ended, 'warm process', 'warm processes')}. Trials that run go on."
    command.write(f"{text if ended else 'No warm processes.'}\n")


def left_to_trials(command: CommandContext, experiment_id: str) -> list[str]:
    """Return a sentence on each import that every trial of an experiment makes for itself, as far as that is known."""
    bundle = command.home.bundle(experiment_id)
    needed = needed_imports.of_script(str(bundle / SCRIPT), str(bundle / FILES))
    tops = {name.partition(":")[0].partition(".")[0] for name in needed}
    found = dict[str, str]()
    for entry in listed(command):
        found.update({name: why for name, why in entry.left_out.items() if name in tops})
    return [f"Each trial imports {name} for itself: {why}." for name, why in found.items()]


def _row(command: CommandContext, entry: WarmEntry) -> tuple[str, ...]:
    left_out = [f"{name}: {why}" for name, why in entry.left_out.items()]
    return (
        str(entry.process.pid),
        first_of(_modules(entry), _SHOWN) or "-",
        "; ".join(left_out) or "-",
        format_bytes(entry.memory_bytes),
        f"{duration(max(0.0, command.now() - entry.used_s))} ago",
        entry.python,
    )


def warm_json(entry: WarmEntry) -> JsonObject:
    """Return one as JSON."""
    return {
        "pid": entry.process.pid,
        "imports": _modules(entry),
        "left_out": entry.left_out,
        "memory_bytes": entry.memory_bytes,
        "used_s": entry.used_s,
        "python": entry.python,
    }


def _modules(entry: WarmEntry) -> list[str]:
    return list(dict.fromkeys(name.partition(":")[0] for name in entry.imports))
