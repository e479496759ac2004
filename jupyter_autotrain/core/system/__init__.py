"""The operating system: the only package that uses what not every Unix has.

`linux` uses `/proc`, prctl(2), pidfd_open(2), memfd_create(2), CPU masks and control groups. `portable` does the same
with psutil and POSIX alone, for macOS; its `limitations` say what is weaker. Which of them acts is settled when a
process imports this package; the variable `JUPYTER_AUTOTRAIN_PORTABLE=1` hides Linux's interfaces, for tests.
Every supervisor imports this, so it uses only the cheapest parts of the standard library.
"""

from __future__ import annotations

import os
import sys

from jupyter_autotrain.core.system.common import ProcessInfo, exists, peak_resident_bytes

PORTABLE_VARIABLE = "JUPYTER_AUTOTRAIN_PORTABLE"


def has_linux_interfaces() -> bool:
    """True on Linux with `/proc`, unless the variable hides them."""
    is_hidden = os.environ.get(PORTABLE_VARIABLE) == "1"
    return sys.platform == "linux" and not is_hidden and os.path.exists("/proc/self/stat")


if has_linux_interfaces():
    from jupyter_autotrain.core.system.linux import (
        ADOPTS_ORPHANS,
        CAN_PIN,
        INTERPRETER_FLAGS,
        MEMORY_POLL_S,
        START_TOLERANCE_S,
        adopt_orphans,
        anonymous_file,
        boot_id,
        children,
        command,
        control_group_texts,
        copy_cpu_mask,
        cpu_s,
        die_with_parent,
        environment,
        filesystems,
        kernel_root_users,
        limitations,
        look,
        machine_name,
        pids,
        pin_to_cpus,
        resident_bytes,
        send_signal,
        usable_cpus,
        used_files,
    )
else:
    from jupyter_autotrain.core.system.portable import (
        ADOPTS_ORPHANS,
        CAN_PIN,
        INTERPRETER_FLAGS,
        MEMORY_POLL_S,
        START_TOLERANCE_S,
        adopt_orphans,
        anonymous_file,
        boot_id,
        children,
        command,
        control_group_texts,
        copy_cpu_mask,
        cpu_s,
        die_with_parent,
        environment,
        filesystems,
        kernel_root_users,
        limitations,
        look,
        machine_name,
        pids,
        pin_to_cpus,
        resident_bytes,
        send_signal,
        usable_cpus,
        used_files,
    )


__all__ = [
    "ADOPTS_ORPHANS",
    "CAN_PIN",
    "INTERPRETER_FLAGS",
    "MEMORY_POLL_S",
    "PORTABLE_VARIABLE",
    "START_TOLERANCE_S",
    "ProcessInfo",
    "adopt_orphans",
    "anonymous_file",
    "boot_id",
    "children",
    "command",
    "control_group_texts",
    "copy_cpu_mask",
    "cpu_s",
    "die_with_parent",
    "environment",
    "exists",
    "filesystems",
    "has_linux_interfaces",
    "kernel_root_users",
    "limitations",
    "look",
    "machine_name",
    "peak_resident_bytes",
    "pids",
    "pin_to_cpus",
    "resident_bytes",
    "send_signal",
    "usable_cpus",
    "used_files",
]
