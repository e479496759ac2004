"""How a cluster is reached: by a kubeconfig's context, or from inside of it. Loaded again when it is refused."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from jupyter_autotrain.errors import BackendError

_LOADER = "jupyter_autotrain.backends.kubernetes.access.load_kubeconfig"
_NOT_FOUND = "No configuration found"  # so says the library where there is no file, or nothing in it
_LOAD_S = 60.0  # an exec plugin may ask a server


@dataclass(frozen=True, slots=True)
class Access:
    """What a connection needs.

    Attributes:
        host: The URL of the API server.
        namespace: That of the context.
        authorization: The header of that name; "" where a certificate says who asks.
        tls: None for plain HTTP.
        server_name: What the server's certificate is issued for, where that is not its host name.
        proxy: The URL of a proxy, or "".
    """

    host: str
    namespace: str
    authorization: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    proxy: str = ""


def load(kubeconfig: str = "", context: str = "") -> Access:
    """Load the access to a cluster.

    Args:
        kubeconfig: The file; "": as `KUBECONFIG` says, or the usual one, or that of the pod that this runs in.
        context: Its context; "": the current one.

    Raises:
        BackendError: There is none, or it does not work.
    """
    answer = _ask_loader(str(Path(kubeconfig).expanduser()) if kubeconfig else "", context)
    if "fault" in answer:
        raise _no_access(kubeconfig, context, str(answer["fault"]))
    host = str(answer["host"])
    try:
        tls = _tls(answer) if host.startswith("https") else None
    except (ssl.SSLError, ValueError) as error:
        raise _no_access(kubeconfig, context, f"its certificates cannot be used: {error}") from error
    return Access(
        host=host.rstrip("/"),
        namespace=str(answer["namespace"]),
        authorization=str(answer["authorization"]),
        tls=tls,
        server_name=str(answer["server_name"]),
        proxy=str(answer["proxy"]),
    )


def _no_access(kubeconfig: str, context: str, fault: str) -> BackendError:
    where = f"context {context!r} of " if context else ""
    found = f"Cannot reach a cluster with {where}{kubeconfig or 'the kubeconfig'}: {fault.rstrip('.')}."
    if _NOT_FOUND in fault:
        found = f"There is no kubeconfig {kubeconfig}." if kubeconfig else "No kubeconfig found."
    return BackendError(
        found,
        "A kubeconfig with which `kubectl get pods` works.",
        "Set up a cluster to use this: name its kubeconfig by `kubeconfig:` and `context:` of the profile, or by "
        "KUBECONFIG before the manager starts.",
    )


def _ask_loader(kubeconfig: str, context: str) -> dict[str, object]:
    argv = [sys.executable, "-m", _LOADER, kubeconfig, context]
    try:
        done = subprocess.run(argv, capture_output=True, check=False, timeout=_LOAD_S, stdin=subprocess.DEVNULL)
        return cast("dict[str, object]", json.loads(done.stdout.splitlines()[-1]))
    except subprocess.TimeoutExpired:
        return {"fault": f"no answer within {_LOAD_S:g} s"}
    except (ValueError, IndexError):
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        return {"fault": lines[-1] if lines else f"exit code {done.returncode}"}


def _tls(answer: dict[str, object]) -> ssl.SSLContext:
    """The TLS settings. A key goes through a file for a moment, since `ssl` reads it from nowhere else."""
    authority = str(answer["ca"])
    context = ssl.create_default_context(cadata=authority or None)
    if not answer["verifies"]:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if answer["certificate"]:
        fd, path = tempfile.mkstemp()
        try:
            with os.fdopen(fd, "w") as file:
                file.write(f"{answer['certificate']}\n{answer['key']}\n")
            context.load_cert_chain(path)
        finally:
            Path(path).unlink()
    return context
