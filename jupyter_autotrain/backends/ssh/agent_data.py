"""What the agent does with data, on the host; see `worker.data_cache`."""

from __future__ import annotations

from pathlib import Path

from jupyter_autotrain.worker.data_cache import DEFAULT_LIMIT_BYTES, DataCache


def use(root: Path, directory: Path, digest: str, size_bytes: int, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bool:
    """Keep an entry for a trial; where it is not there, make room for it and give False.

    Args:
        root: The folder of the cache.
        directory: The trial directory.
        digest: The entry.
        size_bytes: Its size.
        limit_bytes: How much the cache may hold.

    Raises:
        DataError: It does not fit, or was written to.
    """
    cache = DataCache(str(root), limit_bytes)
    if cache.use(digest, str(directory)):
        return True
    cache.make_room(size_bytes)
    return False


def room_bytes(root: str, limit_bytes: int) -> int:
    """Return how much data the cache could hold. Arguments as `use`."""
    return DataCache(root, limit_bytes).room_bytes()


def missing(paths: list[str]) -> list[str]:
    """Those of the paths, which may begin with `~`, that are not there."""
    return [path for path in paths if not Path(path).expanduser().exists()]
