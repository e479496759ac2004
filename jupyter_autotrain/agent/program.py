"""The words that start the program of `programs/`: all that the agent starts is a part of this one."""

import os

PROGRAM = "jupyter_autotrain/agent/programs/start.py"
"""Its place in the code that travels."""


def program(part: str) -> tuple[str, str]:
    """Return the words that start a part on this machine, after the interpreter; the part's arguments follow."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "start.py"), part
