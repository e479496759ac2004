"""Runs on a host, on a channel of its own: one large file of a trial, and the digest of all of it at the end."""

from __future__ import annotations

import hashlib
import os
import sys

from jupyter_autotrain.core import files

_BLOCK_BYTES = 1 << 20


def main(directory: str, path: str, offset: int) -> None:
    """Print a file's size, as a line; its bytes from an offset on; and its SHA-256.

    Args:
        directory: The trial directory.
        path: The file in it.
        offset: How many of its first bytes are there already.

    Raises:
        OSError: It is no regular file, or cannot be read.
    """
    output = sys.stdout.buffer
    total = hashlib.sha256()
    with files.open_regular(directory, path) as file:
        size = os.fstat(file.fileno()).st_size
        output.write(b"%d\n" % size)
        read = 0
        while read < size:
            block = file.read(min(_BLOCK_BYTES, size - read))
            if not block:
                sys.exit(f"{path} has become shorter while it was read")
            total.update(block)
            output.write(block[max(offset - read, 0) :])
            read += len(block)
    output.write(total.hexdigest().encode())
    output.flush()
