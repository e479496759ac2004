"""Names of objects: valid for their kind, the same for the same job, different for every other."""

from __future__ import annotations

import hashlib
import re

_DIGEST = 10


def dns_label(job_id: str, home: str, longest: int) -> str:
    """A name of small letters, digits and dashes that begins with a letter (RFC 1035).

    Args:
        job_id: The job; as much of it as fits is kept for readers.
        home: The identity of the home, so that the jobs of two homes in one namespace differ.
        longest: How many characters it may have.
    """
    digest = hashlib.sha256(f"{home}\n{job_id}".encode()).hexdigest()[:_DIGEST]
    told = re.sub(r"[^a-z0-9]+", "-", job_id.lower()).strip("-")
    if not told[:1].isalpha():
        told = f"at-{told}"
    kept = told[: longest - _DIGEST - 1].rstrip("-")
    return f"{kept}-{digest}"


def plain_label(job_id: str, home: str, longest: int) -> str:
    """A name of small letters and digits alone, for kinds that allow no dashes; see `dns_label`."""
    digest = hashlib.sha256(f"{home}\n{job_id}".encode()).hexdigest()[:_DIGEST]
    told = re.sub(r"[^a-z0-9]+", "x", job_id.lower()).strip("x")
    return f"at{told[: longest - _DIGEST - 3]}x{digest}"
