"""Reads a kubeconfig with the `kubernetes` library and prints what a connection needs, as JSON.

A program of its own: `python -P load_kubeconfig.py KUBECONFIG CONTEXT`. The library's import takes 34 MB, which
the manager shall not keep, and what an exec plugin prints stays out of its log.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class _Complaints(logging.Handler):
    """The complaints that the library only logs: it goes on without credentials when an exec plugin fails."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


def _text(path: object) -> str:
    return Path(path).read_text(encoding="utf-8") if isinstance(path, str) and path else ""


def load(kubeconfig: str, context: str) -> dict[str, object]:
    """Return what a connection needs.

    Raises:
        kubernetes.config.ConfigException: There is no such file or context, it is incomplete, or its plugin fails.
        OSError: A file that it names cannot be read.
    """
    complaints = _Complaints()
    logging.getLogger().addHandler(complaints)
    try:
        found = _load(kubeconfig, context)
    finally:
        logging.getLogger().removeHandler(complaints)
    if complaints.told and not (found["authorization"] or found["certificate"]):
        from kubernetes import config  # noqa: PLC0415 - a fault of its import is told, too

        raise config.ConfigException(" ".join(complaints.told[0].split()))
    return found


def _load(kubeconfig: str, context: str) -> dict[str, object]:
    from kubernetes import client, config  # noqa: PLC0415 - a fault of its import is told, too

    found = client.Configuration()
    namespace = ""
    try:
        config.load_kube_config(kubeconfig or None, context or None, client_configuration=found)  # type: ignore[no-untyped-call] # it has no types
        _, active = config.list_kube_config_contexts(kubeconfig or None)  # type: ignore[no-untyped-call] # it has no types
        namespace = _namespace(kubeconfig, context, active)
    except config.ConfigException:
        service = Path("/var/run/secrets/kubernetes.io/serviceaccount")
        if kubeconfig or context or not service.is_dir():
            raise
        config.load_incluster_config(client_configuration=found)  # type: ignore[no-untyped-call] # it has no types
        namespace = _text(str(service / "namespace"))
    return _access(found, namespace)


def _access(found: Any, namespace: str) -> dict[str, object]:  # noqa: ANN401 - the library has no types
    return {
        "host": found.host,
        "namespace": namespace or "default",
        "authorization": _authorization(found),
        "ca": _text(found.ssl_ca_cert),
        "certificate": _text(found.cert_file),
        "key": _text(found.key_file),
        "verifies": bool(found.verify_ssl),
        "server_name": getattr(found, "tls_server_name", None) or "",
        "proxy": found.proxy or "",
    }


def _authorization(found: Any) -> str:  # noqa: ANN401 - the library has no types
    """Return the value of that header; which of its names the library uses depends on its version."""
    for setting in found.auth_settings().values():
        if setting.get("in") == "header" and setting.get("value"):
            return str(setting["value"]).strip()  # files with tokens end with a newline
    return found.get_basic_auth_token() or "" if found.username else ""


def _namespace(kubeconfig: str, context: str, active: Mapping[str, Any]) -> str:
    from kubernetes import config  # noqa: PLC0415 - as above

    contexts, _ = config.list_kube_config_contexts(kubeconfig or None)  # type: ignore[no-untyped-call] # it has no types
    chosen = next((one for one in contexts if one["name"] == context), active)
    return str((chosen.get("context") or {}).get("namespace") or "")


def _fault(error: Exception, context: str) -> str:
    told = str(error).strip() or repr(error)
    if "/contexts list" in told:
        return f"it has no context {context!r}" if context else "it names no current context"
    mark = getattr(error, "problem_mark", None)  # of a parser of YAML, which may quote the file
    if mark is not None:
        return f"it is not YAML, as line {mark.line + 1} shows"
    return told.splitlines()[0]


def main() -> None:
    """Print the access, or why there is none."""
    try:
        answer = load(sys.argv[1], sys.argv[2])
    except Exception as error:  # noqa: BLE001 - whatever the library or a plugin raises is the answer
        answer = {"fault": _fault(error, sys.argv[2])}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
