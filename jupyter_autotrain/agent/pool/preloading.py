"""Imports made once for all trials of a pool, in the process that is forked for each of them.

OpenBLAS starts its threads as it is loaded. In a process that is forked it may not; in a trial it has them again.

The number of threads is that of OpenBLAS: by its variables, at most as many as there are CPUs to use
(`blas_get_cpu_number` in its `driver/others/memory.c`). A thread without work asks for some all the time before it
sleeps, 2^26 cycles of the CPU's clock (`blas_server.c`): tens of milliseconds, for which a short trial would take a CPU
from others. Here it is less than one.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib.util
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec

from jupyter_autotrain.agent import system
from jupyter_autotrain.agent.pool.import_process import ImportEffects, installed_folders
from jupyter_autotrain.agent.ranks import library_hooks

_OWN = "OPENBLAS_NUM_THREADS"
_SLEEPS_AFTER = "OPENBLAS_THREAD_TIMEOUT"  # read as it is loaded: the exponent of 2
_VARIABLES = (_OWN, "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
_SETTERS = tuple(  # by how it was built; numpy and scipy each bring one of their own
    f"{prefix}openblas_set_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", "_64", "")
)


@contextlib.contextmanager
def none_started() -> Iterator[None]:
    """Have OpenBLAS start no threads where it is loaded meanwhile."""
    before = {name: os.environ.get(name) for name in (_OWN, _SLEEPS_AFTER)}
    os.environ[_OWN] = "1"
    os.environ.setdefault(_SLEEPS_AFTER, "20")
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def loaded() -> list[str]:
    """Return the files of OpenBLAS that this process has loaded."""
    found = (line.split(maxsplit=5)[-1] for line in system.used_files(os.getpid()) if "openblas" in line)
    return sorted({path for path in found if path.startswith("/")})


def start(paths: list[str]) -> None:
    """Let each of these have as many threads as where it is loaded in a trial."""
    asked = [os.environ.get(name, "") for name in _VARIABLES]
    wanted = next((int(text) for text in asked if text.isdigit() and int(text) > 0), None)
    cpus = len(system.usable_cpus())
    number = cpus if wanted is None else min(wanted, cpus)
    if not paths or number == 1:
        return
    import ctypes  # noqa: PLC0415 - only trials with OpenBLAS pay

    for path in paths:
        library = ctypes.CDLL(path)
        setters = [getattr(library, name) for name in _SETTERS if hasattr(library, name)]
        for set_threads in setters[:1]:
            set_threads(number)


_MOST_PRINTED_BYTES = 1 << 16
_OUTPUTS = (1, 2)


class UnsuitableError(Exception):
    """The error of an import that cannot be made for all; the text says why not."""


class Preloaded:
    """The effects that imports have had on the process, and each trial is to see.

    Attributes:
        names: What was imported.
        printed: What the imports have printed, by descriptor.
        variables: The environment variables that they have set; None: removed.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.printed: dict[int, bytes] = {}
        self.variables: dict[str, str | None] = {}

    def variables_with(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of a trial, `env`, as the imports would have left them."""
        both: dict[str, str | None] = {**env, **self.variables}
        return {name: value for name, value in both.items() if value is not None}


def sort_out(names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the imports that may be made for all, and why others may not. Modules that are not there are neither."""
    good = []
    bad = {}
    for name in names:
        top = name.partition(":")[0].partition(".")[0]
        if top not in bad and (places := _places(top)):
            if all(place.startswith(installed_folders()) for place in places):
                good.append(name)
            else:
                bad[top] = "it is code of your own"
    return good, bad


def _places(top: str) -> list[str]:
    """Return where a module lies; nowhere in a file: in the standard library. None where it is not installed."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return []
    if spec is None:
        return []
    if spec.origin in {"built-in", "frozen"}:
        return list(installed_folders()[:1])
    return [os.path.abspath(place) for place in [spec.origin, *(spec.submodule_search_locations or ())] if place]


def load(names: Sequence[str], begin: Callable[[str], object], limit_bytes: int) -> Preloaded:
    """Import modules, in order.

    Args:
        names: As `needed_imports` gives them.
        begin: Called with each before it is imported.
        limit_bytes: How much memory this process may hold then.

    Raises:
        UnsuitableError: That one cannot be imported for all.
    """
    made = Preloaded()
    before = dict(os.environ)
    finder = _PyplotFinder()
    sys.meta_path.insert(0, finder)
    files = {fd: _redirect(fd) for fd in _OUTPUTS}
    with none_started():
        for name in names:
            begin(name)
            _load(name, limit_bytes)
            made.names.append(name)
    for fd, (kept, file) in files.items():
        made.printed[fd] = _restore(fd, kept, file)
    sys.meta_path.remove(finder)
    made.variables = {name: os.environ.get(name) for name in {*before, *os.environ}}
    for name, value in before.items():
        if made.variables.get(name) == value:
            del made.variables[name]
    _keep_finalizers()
    gc.collect()
    gc.freeze()  # else each trial's first collection would copy all of it
    system.use_huge_pages()
    return made


def _keep_finalizers() -> None:
    """Have what is shared end with this process, not with each trial, which does not even look at it then."""
    finalize = weakref.finalize
    for finalizer in list(finalize._registry):  # type: ignore[attr-defined] # noqa: SLF001 - there is no other way
        finalizer.atexit = False
    atexit.unregister(finalize._exitfunc)  # type: ignore[attr-defined] # noqa: SLF001 - as above
    finalize._registered_with_atexit = False  # type: ignore[attr-defined] # noqa: SLF001 - a trial's own has it again


def _load(name: str, limit_bytes: int) -> None:
    effects = ImportEffects()
    try:
        _import(name)
    except Exception as error:  # whatever it is, the trials will tell of it
        raise UnsuitableError(f"its import fails: {type(error).__name__}: {error}"[:200]) from error
    if fault := effects.fault():
        raise UnsuitableError(fault)
    if system.resident_bytes(os.getpid()) > limit_bytes:
        raise UnsuitableError("it takes more memory than warm processes may have")


def _import(name: str) -> None:
    module, _, member = name.partition(":")
    loaded = importlib.import_module(module)
    if not member or hasattr(loaded, member) or not hasattr(loaded, "__path__"):
        return
    if importlib.util.find_spec(f"{module}.{member}") is not None:
        importlib.import_module(f"{module}.{member}")


def _redirect(fd: int) -> tuple[int, int]:
    """Send what is printed into memory; return what `_restore` needs."""
    file = system.anonymous_file()
    kept = os.dup(fd)
    os.dup2(file, fd)
    return kept, file


def _restore(fd: int, kept: int, file: int) -> bytes:
    """Print as before, and return what was printed meanwhile."""
    (sys.stdout if fd == 1 else sys.stderr).flush()
    os.dup2(kept, fd)
    printed = os.pread(file, _MOST_PRINTED_BYTES, 0)
    os.close(kept)
    os.close(file)
    return printed


class _PyplotFinder:
    """A finder that has matplotlib draw as it does in a trial; it loads nothing itself."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, _target: object = None) -> ModuleSpec | None:
        """Answer Python, which asks for each import."""
        return library_hooks.patched_spec(name, path, print) if name == "matplotlib.pyplot" else None
