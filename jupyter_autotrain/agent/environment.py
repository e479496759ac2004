"""The submitter's variables that reach a trial. Pure.

A trial sees a clean base, the submitter's variables that are listed here or under `pass_env:`, those of `env:`, and
the named secrets. It never sees those of the process that started the manager.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from jupyter_autotrain.agent.credentials import holds_credential, names_credential
from jupyter_autotrain.agent.system import PORTABLE_VARIABLE
from jupyter_autotrain.agent.wire import MANAGER_VARIABLE, TRIAL_VARIABLE

PASSED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TEMP", "TMP", "TERM",
    "XDG_*", "VIRTUAL_ENV", "CONDA_*", "MAMBA_*", "PYTHON*", "LD_LIBRARY_PATH", "LD_PRELOAD", "MALLOC_*",
    "CUDA_*", "NVIDIA_*", "NCCL_*", "CUDNN_*", "CUBLAS_*", "HIP_*", "ROCR_*", "ROCM_*", "HSA_*", "GLOO_*",
    "OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "BLIS_*", "VECLIB_*", "NUMEXPR_*", "NUMBA_*",
    "PYTORCH_*", "TORCH*", "TRITON_*", "XLA_*", "JAX_*", "TF_*", "KERAS_*", "TOKENIZERS_PARALLELISM",
    "HF_HOME", "HF_*_CACHE", "HF_*OFFLINE", "HF_ENDPOINT", "TRANSFORMERS_CACHE", "TRANSFORMERS_OFFLINE", "NLTK_DATA",
    "MPLBACKEND", "MPLCONFIGDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy",
    "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
    "JUPYTER_AUTOTRAIN_HOME", PORTABLE_VARIABLE, "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR",
)  # fmt: skip
# What means something on one machine only: a trial on another machine gets that machine's own.
_OF_A_MACHINE = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TEMP", "TMP", "TERM", "DISPLAY", "XDG_*", "SSH_*",
    "VIRTUAL_ENV", "CONDA_*", "MAMBA_*", "PYTHON*", "LD_*", "MPLCONFIGDIR", "NLTK_DATA", "JUPYTER_*", "NVIDIA_*",
    "CUDA_PATH", "CUDA_MPS_*", "*_VISIBLE_DEVICES", "*_HOME", "*_CACHE", "*_CACHE_DIR", "*_CACHE_PATH",
    "SSL_CERT_*", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "*_proxy", "*_PROXY",
)  # fmt: skip
_OF_ANY_MACHINE = frozenset({"PYTHONHASHSEED"})
_OF_A_MANAGER = (
    *PASSED,
    "JUPYTER_*",
    "COVERAGE_*",
    "COV_*",
    "SLURM_CONF",
    "KUBECONFIG",
    "KUBERNETES_SERVICE_*",
    "AZURE_*",
)
# A manager's threads take turns, so heaps of their own would only keep what they free; large buffers go back at once.
_HEAP_OF_A_MANAGER = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "131072"}


def passed(environ: Mapping[str, str], more: Collection[str] = ()) -> dict[str, str]:
    """Return the variables that a trial gets from its submitter; none of them looks like a credential.

    Args:
        environ: The submitter's environment.
        more: Names to pass on beside `PASSED`; `*` stands for any text.
    """
    return {name: environ[name] for name in _listed(environ, (*PASSED, *more)) if not _is_secret(name, environ[name])}


def held_back(environ: Mapping[str, str], more: Collection[str] = ()) -> list[str]:
    """Return the listed variables that are not passed on, because they look like credentials."""
    return [name for name in _listed(environ, (*PASSED, *more)) if _is_secret(name, environ[name])]


def travelling(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the submitter's variables that mean the same on another machine."""
    return {name: value for name, value in variables.items() if not _is_of_a_machine(name)}


def of_this_machine(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of this machine that a trial from another one gets: those that did not travel with it."""
    return {name: value for name, value in passed(environ).items() if _is_of_a_machine(name)}


def _is_of_a_machine(name: str) -> bool:
    return name not in _OF_ANY_MACHINE and any(_matches(name, pattern) for pattern in _OF_A_MACHINE)


def of_manager(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that a manager is started with: nothing that belongs to one submitter alone."""
    names = [name for name in _listed(environ, _OF_A_MANAGER) if name != TRIAL_VARIABLE]
    kept = {name: environ[name] for name in names if not _is_secret(name, environ[name])}
    return {"PATH": os.defpath, **_HEAP_OF_A_MANAGER, **kept, MANAGER_VARIABLE: environ.get(TRIAL_VARIABLE, "")}


def _listed(environ: Mapping[str, str], patterns: Collection[str]) -> list[str]:
    exact = frozenset(patterns)
    begins = tuple(pattern[:-1] for pattern in patterns if pattern.find("*") == len(pattern) - 1)
    loose = [pattern for pattern in patterns if "*" in pattern[:-1]]

    def is_listed(name: str) -> bool:
        return name in exact or name.startswith(begins) or any(_matches(name, pattern) for pattern in loose)

    return sorted(filter(is_listed, environ))


def _matches(name: str, pattern: str) -> bool:
    """Tell whether a name matches a pattern, in which `*` stands for any text.

    This does not use `fnmatch`, whose regular expressions would take each new process 10 ms.
    """
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    *middle, last = rest
    at = len(first)
    if not name.startswith(first):
        return False
    for text in middle:
        found = name.find(text, at)
        if found < 0:
            return False
        at = found + len(text)
    return len(name) - at >= len(last) and name.endswith(last)


def _is_secret(name: str, value: str) -> bool:
    return names_credential(name) or holds_credential(value)
