"""The operating system: the only package that uses functions which not every Unix has.

`linux` uses `/proc`, prctl(2), pidfd_open(2), memfd_create(2), CPU masks and control groups. `portable` does the same
with psutil and POSIX alone, for macOS; its `limitations` say what is weaker. Which of them acts is settled when a
process imports this package; the variable `JUPYTER_AUTOTRAIN_PORTABLE=1` hides Linux's interfaces, for tests.
Every supervisor imports this, so it uses only the cheapest parts of the standard library.
"""

from __future__ import annotations

import os
import sys

from jupyter_autotrain.agent.system.common import ProcessInfo as ProcessInfo
from jupyter_autotrain.agent.system.common import exists as exists
from jupyter_autotrain.agent.system.common import peak_resident_bytes as peak_resident_bytes

PORTABLE_VARIABLE = "JUPYTER_AUTOTRAIN_PORTABLE"


def has_linux_interfaces() -> bool:
    """Tell whether this is Linux with `/proc`, and the variable does not hide it."""
    is_hidden = os.environ.get(PORTABLE_VARIABLE) == "1"
    return sys.platform == "linux" and not is_hidden and os.path.exists("/proc/self/stat")


if has_linux_interfaces():
    from jupyter_autotrain.agent.system import linux as way
else:
    from jupyter_autotrain.agent.system import portable as way  # type: ignore[no-redef]  # with the same functions

ADOPTS_ORPHANS = way.ADOPTS_ORPHANS
CAN_PIN = way.CAN_PIN
INTERPRETER_FLAGS = way.INTERPRETER_FLAGS
MEMORY_POLL_S = way.MEMORY_POLL_S
START_TOLERANCE_S = way.START_TOLERANCE_S
adopt_orphans = way.adopt_orphans
anonymous_file = way.anonymous_file
boot_id = way.boot_id
children = way.children
command = way.command
control_group_texts = way.control_group_texts
copy_cpu_mask = way.copy_cpu_mask
cpu_s = way.cpu_s
die_with_parent = way.die_with_parent
environment = way.environment
file_mask = way.file_mask
filesystems = way.filesystems
kernel_root_users = way.kernel_root_users
limitations = way.limitations
look = way.look
machine_name = way.machine_name
pids = way.pids
pin_to_cpus = way.pin_to_cpus
resident_bytes = way.resident_bytes
send_signal = way.send_signal
show_as = way.show_as
usable_cpus = way.usable_cpus
use_huge_pages = way.use_huge_pages
used_files = way.used_files
