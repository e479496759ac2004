"""Requests about the API itself: discovery, schemas, health, permissions."""

from __future__ import annotations

from tests.labs.kubernetes.objects.errors import ApiError, bad_request
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.server import discovery, openapi
from tests.labs.kubernetes.server.access import Action
from tests.labs.kubernetes.server.api_handler import ApiHandler


class VersionHandler(ApiHandler):
    """The version of the server."""

    def get(self) -> None:
        """Answer with it."""
        self.send(discovery.VERSION)


class DiscoveryHandler(ApiHandler):
    """Answers with what is served."""

    def prepare(self) -> None:
        """Refuse those who are not known."""
        super().prepare()
        if self.user.name == "system:anonymous":
            message = f'forbidden: User "system:anonymous" cannot get path "{self.request.path}"'
            raise ApiError(403, "Forbidden", message)
        self.resources = discovery.served(self.server.store.resources)

    def get(self) -> None:
        """Answer for a root, a group, or a group and version."""
        parts = self.request.path.strip("/").split("/")
        if len(parts) == 1:
            self.send(self._root(parts[0]))
        elif parts[0] == "api":
            self.send(discovery.resource_list(self.resources, parts[1]))
        elif len(parts) == 2:
            self._group(parts[1])
        else:
            self._version(f"{parts[1]}/{parts[2]}")

    def _root(self, name: str) -> Json:
        if name == "apis":
            return discovery.group_list(self.resources)
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self.request.host}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}

    def _group(self, name: str) -> None:
        versions = discovery.groups(self.resources).get(name)
        if versions is None:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        self.send({"kind": "APIGroup", "apiVersion": "v1"} | discovery.group(name, versions))

    def _version(self, api_version: str) -> None:
        found = discovery.resource_list(self.resources, api_version)
        if not found["resources"]:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        self.send(found)


class SchemaHandler(ApiHandler):
    """The schemas of custom kinds."""

    def get(self) -> None:
        """Answer with a document, or with their index."""
        resources = self.server.store.resources
        version = self.request.path.removeprefix("/openapi/v3").strip("/").removeprefix("apis/")
        found = openapi.document(resources, version) if version else openapi.index(resources)
        if version and not found["components"]["schemas"]:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        self.send(found)


class ReviewHandler(ApiHandler):
    """Answers whether the user of a request may do something."""

    def post(self) -> None:
        """Answer with the review."""
        body = self.body()
        if not isinstance(body, dict) or not isinstance(body.get("spec"), dict):
            raise bad_request("the object provided is unrecognized")
        self.server.requests["create", "selfsubjectaccessreviews"] += 1
        status = self._allowed(body["spec"])
        found: Json = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
        self.send(found | {"metadata": {"creationTimestamp": None}, "spec": body["spec"], "status": status}, 201)

    def _allowed(self, spec: Json) -> Json:
        asked = spec.get("resourceAttributes")
        if not asked:
            return {"allowed": True}
        part = f"/{asked['subresource']}" if asked.get("subresource") else ""
        action = Action(
            asked.get("verb", ""), asked.get("group", ""), asked.get("resource", "") + part,
            asked.get("namespace", ""), asked.get("name", ""),
        )  # fmt: skip
        allowed = self.server.access.allows(self.user, action)
        return {"allowed": allowed} if allowed else {"allowed": False, "reason": "no rule allows it"}


class IdentityHandler(ApiHandler):
    """Who the user of a request is."""

    def post(self) -> None:
        """Answer with the name."""
        self.server.requests["create", "selfsubjectreviews"] += 1
        status = {"userInfo": {"username": self.user.name, "groups": ["system:authenticated"]}}
        found: Json = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
        self.send(found | {"metadata": {"creationTimestamp": None}, "status": status}, 201)
