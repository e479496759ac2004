"""The beginning of a pod's program, in the archive it is sent as: workers need files, not an archive.

Knows nothing of the other modules until they are unpacked. It is started by `python -I -S -u`, which looks for no
installed packages first: until the handler below is set, a pod ignores that it is told to end.
"""

import marshal
import os
import signal
import sys
import zipimport

MODULES = "modules"  # in the archive: all files in one piece, by their paths; one by one they take ten times as long
_TARGET = "/autotrain/agent/code"


def main(archive: str) -> None:
    """Unpack the archive, unless an earlier container of the pod has, and run what lies there."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the first process of a container ignores it otherwise
    os.umask(0o077)
    if not os.path.isdir(_TARGET):
        draft = f"{_TARGET}.{os.getpid()}"
        unpack(archive, draft)
        os.rename(draft, _TARGET)
    sys.path[0] = _TARGET  # in the place of the archive
    from jupyter_autotrain.backends.kubernetes_pod import program  # noqa: PLC0415 - it lies there only now

    program.main()


def unpack(archive: str, folder: str) -> None:
    """Write the files of an archive into a folder."""
    files = marshal.loads(zipimport.zipimporter(archive).get_data(MODULES))  # noqa: S302 - as trusted as this module
    for parent in sorted({os.path.dirname(path) for path in files}):
        os.makedirs(f"{folder}/{parent}", exist_ok=True)
    for path, content in files.items():
        with open(f"{folder}/{path}", "wb") as file:
            file.write(content)
