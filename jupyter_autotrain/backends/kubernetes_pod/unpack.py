"""The beginning of a pod's program, and `__main__` of the archive it is sent as: workers need files, not an archive.

Knows nothing of the other modules until they are unpacked. It is started by `python -I -S -u`, which looks for no
installed packages first: until the handler below is set, a pod ignores that it is told to end.
"""

import os
import signal
import sys
import zipfile

_RUN = "/autotrain/run"


def main(archive: str) -> None:
    """Unpack the archive, unless an earlier container of the pod has, and run what lies there."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the first process of a container ignores it otherwise
    os.umask(0o077)
    target = f"{_RUN}/agent"
    if not os.path.isdir(target):
        draft = f"{target}.{os.getpid()}"
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(draft)
        os.rename(draft, target)
    sys.path[0] = target  # in the place of the archive
    from jupyter_autotrain.backends.kubernetes_pod import program  # noqa: PLC0415 - it lies there only now

    program.main()


if __name__ == "__main__":
    main(sys.argv[0])
