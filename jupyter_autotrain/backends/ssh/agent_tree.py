"""The part of this package that travels to a host: agent, supervisor and what they import."""

from __future__ import annotations

from pathlib import Path

from jupyter_autotrain.backends import travelling_code
from jupyter_autotrain.backends.ssh.archive_stream import SentFile
from jupyter_autotrain.backends.ssh.sending import FolderManifest, scan_folder

_MODULES = (
    "backends/ssh/agent.py", "backends/ssh/agent_code.py", "backends/ssh/agent_data.py",
    "backends/ssh/agent_experiments.py", "backends/ssh/agent_files.py", "backends/ssh/agent_machine.py",
    "backends/ssh/agent_ranks.py", "backends/ssh/agent_streaming.py", "backends/ssh/agent_watching.py",
)  # fmt: skip
_PACKAGES = ("backends/slurm_login",)
_EMPTY = "backends/ssh/__init__.py"  # ours imports what only the manager's side has
_NO_CONTENT = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # SHA-256 of nothing


def agent_folder() -> FolderManifest:
    """The files, as they lie in a folder on the host's search path; an upgrade may have changed them."""
    paths = travelling_code.travelling_paths(_MODULES, _PACKAGES)
    files = scan_folder(travelling_code.package_folder().parent, paths).files
    names = travelling_code.empty_modules(_EMPTY)
    empty = tuple(SentFile(name, 0, _NO_CONTENT, Path("/dev/null"), False) for name in names)
    return FolderManifest(files + empty, ())
