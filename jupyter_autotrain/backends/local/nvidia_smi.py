"""What NVIDIA's driver says of this machine's GPUs. Runs on hosts too: it imports only the standard library."""

from __future__ import annotations

import subprocess
from functools import lru_cache

_ASK_S = 20.0


def ask(*question: str) -> str:
    """What `nvidia-smi` prints; nothing where there is no driver."""
    try:
        asked = subprocess.run(
            ["nvidia-smi", *question], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            check=True, text=True, timeout=_ASK_S,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout


def rows(question: str) -> list[list[str]]:
    """The fields of each line of an answer."""
    answer = ask(question, "--format=csv,noheader,nounits")
    return [_fields(line) for line in answer.splitlines() if line.strip()]


def _fields(line: str) -> list[str]:
    return [field.strip() for field in line.split(",")]


@lru_cache(maxsize=1)
def topology() -> str:
    """The matrix of what joins each GPU with each other one; it stays as it is, so it is asked once."""
    return ask("topo", "-m")


@lru_cache(maxsize=1)
def pcie() -> tuple[int, int] | None:
    """Generation and lanes of the narrowest PCIe link of a GPU; None where they are not known."""
    answers = rows("--query-gpu=pcie.link.gen.max,pcie.link.width.max")
    known = [(int(fields[0]), int(fields[1])) for fields in answers if _is_known(fields)]
    return min(known) if known else None


def _is_known(fields: list[str]) -> bool:
    return len(fields) == 2 and all(field.isdigit() for field in fields)
