"""The paths of the programs that are started by path; `programs` has one file for each."""

import os


def program_path(name: str) -> str:
    """Return the path of a program on this machine."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", f"{name}.py")
