"""Which paths are answered by what."""

from __future__ import annotations

from tornado import web

from tests.labs.kubernetes.server.api_handler import Server
from tests.labs.kubernetes.server.exec_handler import ExecHandler
from tests.labs.kubernetes.server.handlers import ObjectsHandler
from tests.labs.kubernetes.server.log_handler import LogHandler
from tests.labs.kubernetes.server.meta_handlers import (
    DiscoveryHandler,
    IdentityHandler,
    ReviewHandler,
    SchemaHandler,
    VersionHandler,
)
from tests.labs.kubernetes.server.pod_handlers import EvictionHandler

_POD = r"/api/v1/namespaces/[^/]+/pods/[^/]+"


def application(server: Server) -> web.Application:
    """All that the API server answers."""
    arguments = {"server": server}
    routes = [
        (r"/version/?", VersionHandler, arguments),
        (r"/openapi/v3(?:/.*)?", SchemaHandler, arguments),
        (r"/(?:api(?:/v1)?|apis(?:/[^/]+){0,2})/?", DiscoveryHandler, arguments),
        (r"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", ReviewHandler, arguments),
        (r"/apis/authentication.k8s.io/v1/selfsubjectreviews", IdentityHandler, arguments),
        (f"{_POD}/log", LogHandler, arguments),
        (f"{_POD}/exec", ExecHandler, arguments),
        (f"{_POD}/eviction", EvictionHandler, arguments),
        (r"/.*", ObjectsHandler, arguments),
    ]
    return web.Application(routes, log_function=_no_log)


def _no_log(_: web.RequestHandler) -> None:
    pass
