"""The part of this package that travels to a host: agent, supervisor and what they import."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jupyter_autotrain.backends.ssh.sending import FolderManifest, SentFile, scan_folder

_NAME = "jupyter_autotrain"
_MODULES = (
    "__init__.py", "errors.py", "terminal.py",
    "backends/local/cancelling.py", "backends/local/starting.py", "backends/local/status.py",
    "backends/local/status_resolution.py", "backends/local/nvidia_smi.py",
    "backends/ssh/agent.py", "backends/ssh/agent_code.py", "backends/ssh/agent_data.py", "backends/ssh/agent_files.py",
    "backends/ssh/agent_machine.py", "backends/ssh/agent_ranks.py", "backends/ssh/agent_watching.py",
)  # fmt: skip
_PACKAGES = ("core", "core/system", "worker", "worker/environments", "backends/slurm_login")
_EMPTY = (
    "backends/__init__.py",
    "backends/local/__init__.py",
    "backends/ssh/__init__.py",
)  # ours import what only the manager's side has
_NO_CONTENT = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # SHA-256 of nothing


@cache
def agent_folder() -> FolderManifest:
    """The files, as they lie in a folder on the host's search path."""
    package = Path(__file__).parents[2]
    paths = [package / name for name in _MODULES]
    for name in _PACKAGES:
        paths += sorted((package / name).glob("*.py"))
    files = scan_folder(package.parent, paths).files
    empty = tuple(SentFile(f"{_NAME}/{name}", 0, _NO_CONTENT, Path("/dev/null"), False) for name in _EMPTY)
    return FolderManifest(files + empty, ())
