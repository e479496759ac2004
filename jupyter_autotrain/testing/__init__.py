"""What authors of backends test theirs with: subclass `BackendContract`, give `make`, run pytest.

```python
class TestMyPlace(BackendContract):
    def make(self, context: BackendContext) -> Backend:
        return MyPlace(Profile("mine", "mine"), context)
```
"""

from jupyter_autotrain.testing.backend import BackendContract
from jupyter_autotrain.testing.bundles import trial_file, trial_of, wait_for_end, wait_until, write_bundle
from jupyter_autotrain.testing.clock import FakeClock
from jupyter_autotrain.testing.nvml import FakeGpu, FakeNvml

__all__ = [
    "BackendContract",
    "FakeClock",
    "FakeGpu",
    "FakeNvml",
    "trial_file",
    "trial_of",
    "wait_for_end",
    "wait_until",
    "write_bundle",
]
