"""The archive that all of this code travels as, where it arrives: workers need files, not an archive.

It knows nothing of the other modules until they are unpacked: it lies in the archive, where Python finds it, and is
sent ahead of it to hosts. In a pod it is the first program, started by `python -I -S -u`, which looks for no installed
packages first: until the handler below is set, a pod ignores that it is told to end.
"""

import marshal
import os
import signal
import sys
import zipimport

NAME = "agent.zip"
MODULES = "modules"  # in the archive: all files in one piece, by their paths; one by one they take ten times as long
CODE = "code"  # of a service's job: the unpacked archive, in the folder of all that the job makes
_TARGET = "/autotrain/agent/code"


def begin_pod(archive: str, target: str = _TARGET) -> None:
    """Unpack the archive in a pod, unless an earlier container of the pod has, and have Python search there.

    Args:
        archive: Its path.
        target: The folder of the code.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the first process of a container ignores it otherwise
    os.umask(0o077)
    if not os.path.isdir(target):
        draft = f"{target}.{os.getpid()}"
        unpack(archive, draft)
        os.rename(draft, target)
    sys.path[0] = target  # in the place of the archive


def unpack(archive: str, folder: str) -> None:
    """Write the files of an archive into a folder.

    Raises:
        OSError: They cannot be written.
    """
    files = marshal.loads(zipimport.zipimporter(archive).get_data(MODULES))  # noqa: S302 - as trusted as this module
    for parent in sorted(set(map(os.path.dirname, files))):
        os.makedirs(f"{folder}/{parent}", exist_ok=True)
    for path, content in files.items():
        with open(f"{folder}/{path}", "wb") as file:
            file.write(content)


def unpack_in(folder: str) -> None:
    """Replace the archive in a folder by its files; errors as `unpack`."""
    unpack(f"{folder}/{NAME}", folder)
    os.unlink(f"{folder}/{NAME}")
