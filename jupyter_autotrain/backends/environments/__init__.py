"""What a place has of the packages that a cell needs, and what a virtual environment like the notebook's is made of.

What runs at the place (finding and making interpreters) is `worker.environments`.
"""

from jupyter_autotrain.backends.environments.comparison import OLDEST_PYTHON, differences, refuse
from jupyter_autotrain.backends.environments.place_check import InterpreterCheck
from jupyter_autotrain.backends.environments.version_lock import VersionLock, lock_versions

__all__ = ["OLDEST_PYTHON", "InterpreterCheck", "VersionLock", "differences", "lock_versions", "refuse"]
