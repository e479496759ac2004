"""Trials whose warm process has imported torch: numbers as without, and what one spoils reaches no other."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.core.home import Home
from tests.fault.warm_trials import await_imports, end_warm, said, values, warm, warm_backend

has_torch = importlib.util.find_spec("torch") is not None
pytestmark = [pytest.mark.fault, pytest.mark.skipif(not has_torch, reason="torch is not installed")]

# All that these trials import, so that the first one has a warm process import it, and no other has it import more.
IMPORTS = "import builtins, glob, json, os, random, signal, sys, threading\nimport numpy as np\nimport torch\n"
NUMBERS = f"""{IMPORTS}
drawn = [random.random(), float(np.random.rand()), float(torch.rand(1))]
np.ones((300, 300)) @ np.ones((300, 300))
print(json.dumps([drawn, torch.get_num_threads(), len(os.listdir("/proc/self/task"))]))
"""
LOOK_AT_ALL = f"""{IMPORTS}
state = [torch.ones(2).sum().item(), torch.get_default_dtype().__str__(), torch.get_num_threads()]
process = [os.getcwd()[-9:], oct(os.umask(0o77)), os.environ.get("POISON"), threading.active_count(), sys.path[1:]]
handlers = [str(signal.getsignal(number)) for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGINT)]
files = [sorted(glob.glob("*")), len(os.listdir("/proc/self/fd")), sorted(os.environ), hasattr(torch, "leaked")]
print(json.dumps([state, process, handlers, files]))
"""
POISON = f"""{IMPORTS}
torch.ones = None
torch.leaked = [bytearray(1 << 24), [os.open("/dev/null", os.O_RDONLY) for _ in range(100)]]
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
torch.backends.poison = 1
builtins.print = None
sys.modules["json"].loads = None
sys.path.insert(1, "/poison")
os.environ["POISON"] = "yes"
for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
open("poison", "w").close()
os.chdir("/")
os.umask(0)
threading.Thread(target=threading.Event().wait, daemon=True).start()
for child in range(3):
    if os.fork() == 0:
        os.setsid()
        threading.Event().wait()
"""


@dataclass(frozen=True)
class WithTorch:
    """A home whose warm process has imported torch, and what the first trial printed, which did it itself."""

    home: Home
    backend: LocalBackend
    first: Sequence[object]


@pytest.fixture(scope="module")
def with_torch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithTorch]:
    home = Home(tmp_path_factory.mktemp("torch") / "home")
    backend = warm_backend(home, reuse_idle=600.0)
    first = values(said(backend, home, NUMBERS, 1))
    assert {"numpy", "torch"} <= {*await_imports(home, "numpy", "torch").imports}
    yield WithTorch(home, backend, first)  # type: ignore[arg-type]
    end_warm(home)


def test_numbers_are_as_in_a_process_that_imports_by_itself(with_torch: WithTorch) -> None:
    second, third = (values(said(with_torch.backend, with_torch.home, NUMBERS, number)) for number in (2, 3))
    assert second[1:] == third[1:] == with_torch.first[1:]  # type: ignore[index]
    assert second[0][0] != third[0][0]  # type: ignore[index]
    assert second[0][1] != third[0][1]  # type: ignore[index]
    assert second[0][2] != third[0][2]  # type: ignore[index]


def test_a_trial_that_poisons_its_process_reaches_no_other(with_torch: WithTorch) -> None:
    backend = with_torch.backend
    home = with_torch.home
    (process,) = [entry.process for entry in warm(home)]
    before = values(said(backend, home, LOOK_AT_ALL, 4))
    said(backend, home, POISON, 5)
    assert values(said(backend, home, LOOK_AT_ALL, 6)) == before
    assert [entry.process for entry in warm(home)] == [process]
