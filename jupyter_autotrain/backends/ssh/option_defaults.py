"""What holds where a profile says nothing. Plain numbers and texts: the manager reads them without pydantic."""

from __future__ import annotations

PYTHON = "python3"
WORKDIR = "~/.autotrain"
CACHE_LIMIT_BYTES = 5_000_000_000
