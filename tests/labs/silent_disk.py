"""A file system that never answers, as one whose server is gone: a mount of FUSE that nobody serves.

    python silent_disk.py FOLDER

It prints `ready`. Whoever looks into the folder then waits, until standard input ends: from then on there are errors.
"""

from __future__ import annotations

import ctypes
import os
import sys


def main(folder: str) -> None:
    """Mount it, and wait for the end of standard input."""
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"silent", folder.encode(), b"fuse", 0, options.encode()) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
