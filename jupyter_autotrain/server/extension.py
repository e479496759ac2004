"""The extension that adds the API to a Jupyter server: operations below `jupyter-autotrain/api/`, socket of changes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join

from jupyter_autotrain import __version__
from jupyter_autotrain.client import default_home
from jupyter_autotrain.server import (
    actions,
    backend_checks,
    backend_profiles,
    backends,
    experiments,
    header,
    logs,
    trials,
)
from jupyter_autotrain.server.change_feed import ChangeFeed
from jupyter_autotrain.server.changes_socket import ChangesSocket
from jupyter_autotrain.server.context import ReadStores, ServerContext
from jupyter_autotrain.server.endpoint import Answer, Asked, Endpoint, document, path_pattern
from jupyter_autotrain.server.handler import EndpointHandler

PREFIX: Final = "jupyter-autotrain/api"
_OPERATIONS: Final[tuple[Endpoint[Any], ...]] = (
    *experiments.ENDPOINTS,
    *trials.ENDPOINTS,
    *logs.ENDPOINTS,
    *actions.ENDPOINTS,
    *backends.ENDPOINTS,
    *header.ENDPOINTS,
    *backend_checks.ENDPOINTS,
    *backend_profiles.ENDPOINTS,
)


def describe(server: ServerContext, _: Asked) -> Answer:
    """Answer with the OpenAPI description of all operations."""
    return Answer(document(ENDPOINTS, __version__, server.base_url))


ENDPOINTS: Final = (
    *_OPERATIONS,
    Endpoint("GET", "/openapi.json", "autotrain.experiments", "This description", Asked, describe),
)


def load(app: ServerApp) -> None:
    """Add the API to a server. Nothing is opened before the first request."""
    home = default_home()
    base_url = url_path_join(app.base_url, PREFIX)
    root = Path(app.root_dir).absolute()
    server = ServerContext(home, root, os.environ, base_url, ReadStores(home))
    by_path: dict[str, dict[str, Endpoint[Any]]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    handlers: list[Any] = [(f"{base_url}/changes", ChangesSocket, {"server": server, "feed": ChangeFeed(home)})]
    for path, endpoints in by_path.items():
        found = {"server": server, "endpoints": endpoints}
        handlers.append((f"{base_url}{path_pattern(path)}", EndpointHandler, found))
    handlers.append((f"{base_url}/.*", EndpointHandler, {"server": server, "endpoints": {}}))
    app.web_app.add_handlers(".*$", handlers)  # type: ignore[no-untyped-call] # tornado gives it no types
