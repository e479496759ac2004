"""Which paths are answered by what."""

from __future__ import annotations

from tornado import web

from jupyter_autotrain.testing.kubernetes.server.api_handler import Server
from jupyter_autotrain.testing.kubernetes.server.exec_handler import ExecHandler
from jupyter_autotrain.testing.kubernetes.server.handlers import ObjectsHandler
from jupyter_autotrain.testing.kubernetes.server.log_handler import LogHandler
from jupyter_autotrain.testing.kubernetes.server.meta_handlers import (
    DiscoveryHandler,
    HealthHandler,
    IdentityHandler,
    ReviewHandler,
    SchemaHandler,
    VersionHandler,
)
from jupyter_autotrain.testing.kubernetes.server.pod_handlers import BindingHandler, EvictionHandler

_POD = r"/api/v1/namespaces/[^/]+/pods/[^/]+"


def application(server: Server) -> web.Application:
    """All that the API server answers."""
    arguments = {"server": server}
    routes = [
        (r"/(?:healthz|livez|readyz)(?:/.*)?", HealthHandler, arguments),
        (r"/version/?", VersionHandler, arguments),
        (r"/openapi/.*", SchemaHandler, arguments),
        (r"/(?:api(?:/v1)?|apis(?:/[^/]+){0,2})/?", DiscoveryHandler, arguments),
        (r"/apis/authorization.k8s.io/v1/(selfsubject(?:access|rules)reviews)", ReviewHandler, arguments),
        (r"/apis/authentication.k8s.io/v1/selfsubjectreviews", IdentityHandler, arguments),
        (f"{_POD}/log", LogHandler, arguments),
        (f"{_POD}/exec", ExecHandler, arguments),
        (f"{_POD}/binding", BindingHandler, arguments),
        (f"{_POD}/eviction", EvictionHandler, arguments),
        (r"/.*", ObjectsHandler, arguments),
    ]
    return web.Application(routes, log_function=_no_log)


def _no_log(_: web.RequestHandler) -> None:
    pass
