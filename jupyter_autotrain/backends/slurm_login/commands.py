"""Running the commands of Slurm, and telling a controller that does not answer from one that refuses.

Runs on the login node, so it needs only the standard library of Python 3.9.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

_ASK_S = 60.0
_MOST_OUTPUT = 500
_USAGE = "Try "  # the line after the one that names an unknown option
# Nothing of the manager's or the agent's own variables goes into a job: `sbatch` passes on what it has.
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TZ", "SLURM_CONF")
# What the commands print when the controller, or the way to it, is down; the request may then have been carried out.
_TRANSIENT = (
    "unable to contact slurm controller", "socket timed out", "connection refused", "communication connection failure",
    "connection timed out", "connect failure", "zero bytes were transmitted", "transport endpoint", "in standby",
    "temporarily unable to accept", "resource temporarily unavailable", "authentication credential",
    "munge", "unexpected message", "broken pipe", "connection reset", "unable to establish connection",
    "backup controller", "slurm_receive_msg", "try again later",
)  # fmt: skip


class SlurmDownError(Exception):
    """The controller does not answer, which proves nothing about any job; the text says how that showed."""


class SlurmRefusedError(Exception):
    """Slurm refuses a request; the text is its own."""


def run(argv: Sequence[str], environ: Mapping[str, str] | None = None) -> str:
    """What a command of Slurm prints.

    Args:
        argv: The command.
        environ: The variables to choose those from that it gets; this process's own when not given.

    Raises:
        SlurmDownError: The controller does not answer.
        SlurmRefusedError: It refuses, or there is no such command.
    """
    given = os.environ if environ is None else environ
    env = {name: given[name] for name in _KEPT if name in given}
    try:
        done = subprocess.run(
            list(argv), stdin=subprocess.DEVNULL, capture_output=True, env=env, text=True,
            errors="replace", timeout=_ASK_S, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise SlurmRefusedError(f"there is no `{argv[0]}` on this machine") from None
    except subprocess.TimeoutExpired:
        raise SlurmDownError(f"`{argv[0]}` had no answer within {_ASK_S:g} s") from None
    if done.returncode == 0:
        return done.stdout
    text = _last_words(done.stderr) or f"exit code {done.returncode}"
    if any(sign in done.stderr.lower() for sign in _TRANSIENT):
        raise SlurmDownError(text)
    raise SlurmRefusedError(text)


def _last_words(stderr: str) -> str:
    """The last line of a command's errors, without the command's own name."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip() and not line.startswith(_USAGE)]
    last = lines[-1] if lines else ""
    head, mark, rest = last.partition("error: ")
    return (rest if mark and len(head) < 30 else last)[:_MOST_OUTPUT].rstrip(".")
