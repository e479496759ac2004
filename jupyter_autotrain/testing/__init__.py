"""The suites that authors of backends and tuners test theirs with: subclass one, say how yours is made, run pytest.

```python
class TestMyPlace(BackendContract):  # where it runs a trial on several nodes: and NodesContract
    def make(self, context: BackendContext) -> Backend:
        return MyPlace(Profile("mine", "mine"), context)

class TestMyTuner(TunerContract):
    def create(self, spec: ExperimentSpec) -> Tuner:
        return MyTuner(spec)
```

A tuner is found by an entry point: `[project.entry-points."jupyter_autotrain.tuners"]` with `mine = "package:MyTuner"`.
"""

from jupyter_autotrain.testing.bundles import trial_file, trial_of, wait_for_end, wait_until, write_bundle
from jupyter_autotrain.testing.ending import EndingContract
from jupyter_autotrain.testing.files import DataContract, FilesContract
from jupyter_autotrain.testing.nodes import NodesContract
from jupyter_autotrain.testing.running import RunningContract
from jupyter_autotrain.testing.tuners import TunerContract

__all__ = [
    "BackendContract",
    "NodesContract",
    "TunerContract",
    "trial_file",
    "trial_of",
    "wait_for_end",
    "wait_until",
    "write_bundle",
]


class BackendContract(RunningContract, FilesContract, DataContract, EndingContract):
    """Tests that every backend passes; subclasses define `make`. Tests of missing capabilities are skipped."""
