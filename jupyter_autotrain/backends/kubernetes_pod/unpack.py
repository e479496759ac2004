"""The beginning of a pod's program, and `__main__` of the archive it is sent as: workers need files, not an archive.

Knows nothing of the other modules, since they cannot be imported yet.
"""

import os
import signal
import sys
import zipfile

_RUN = "/autotrain/run"
_START = "agent/jupyter_autotrain/backends/kubernetes_pod/start_pod.py"


def main(archive: str) -> None:
    """Unpack the archive, unless an earlier container of the pod has, and go on there."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the first process of a container ignores it otherwise
    os.umask(0o077)
    target = f"{_RUN}/agent"
    if not os.path.isdir(target):
        draft = f"{target}.{os.getpid()}"
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(draft)
        os.rename(draft, target)
    os.execv(sys.executable, [sys.executable, "-u", "-I", "-S", f"{_RUN}/{_START}"])  # noqa: S606 - nothing to escape


if __name__ == "__main__":
    main(sys.argv[0])
