"""Requests about the API itself: discovery, schemas, health, permissions."""

from __future__ import annotations

from jupyter_autotrain.testing.kubernetes.objects.errors import ApiError, bad_request
from jupyter_autotrain.testing.kubernetes.objects.values import Json
from jupyter_autotrain.testing.kubernetes.server import discovery
from jupyter_autotrain.testing.kubernetes.server.access import Action
from jupyter_autotrain.testing.kubernetes.server.api_handler import ApiHandler
from jupyter_autotrain.testing.kubernetes.server.openapi import OpenApi


class HealthHandler(ApiHandler):
    """Whether the server is well."""

    def get(self) -> None:
        """It is."""
        self.finish("ok")


class VersionHandler(ApiHandler):
    """The version of the server."""

    def get(self) -> None:
        """Answer with it."""
        self.send(discovery.VERSION)


class DiscoveryHandler(ApiHandler):
    """What is served."""

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
        if "as=APIGroupDiscoveryList" in self.request.headers.get("Accept", ""):
            groups = {"": ["v1"]} if name == "api" else discovery.groups(self.resources)
            return discovery.aggregated(self.resources, groups)
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
    """The schemas of what is served."""

    def get(self) -> None:
        """Answer with a document, or with their index."""
        documents = OpenApi(self.server.store.resources)
        path = self.request.path.removeprefix("/openapi/").strip("/")
        if path == "v2":
            self.send(documents.document_2())
        elif path == "v3":
            self.send(documents.index())
        else:
            self._document(documents, path.removeprefix("v3/").removeprefix("apis/").removeprefix("api/"))

    def _document(self, documents: OpenApi, api_version: str) -> None:
        found = documents.document(api_version)
        if not found["components"]["schemas"]:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        self.send(found)


class ReviewHandler(ApiHandler):
    """What the user of a request may do."""

    def post(self, kind: str) -> None:
        """Answer with the review."""
        body = self.body()
        if not isinstance(body, dict) or not isinstance(body.get("spec"), dict):
            raise bad_request("the object provided is unrecognized")
        self.server.requests["create", kind] += 1
        expected = next(item.kind for item in discovery.REVIEWS if item.plural == kind)
        status = self._allowed(body["spec"]) if kind == "selfsubjectaccessreviews" else self._rules()
        found: Json = {"kind": expected, "apiVersion": "authorization.k8s.io/v1"}
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

    def _rules(self) -> Json:
        rules = [
            {"verbs": list(rule.verbs), "apiGroups": list(rule.groups), "resources": list(rule.resources)}
            for rule in self.user.rules
        ]
        return {"resourceRules": rules, "nonResourceRules": [], "incomplete": False}


class IdentityHandler(ApiHandler):
    """Who the user of a request is."""

    def post(self) -> None:
        """Answer with the name."""
        self.server.requests["create", "selfsubjectreviews"] += 1
        status = {"userInfo": {"username": self.user.name, "groups": ["system:authenticated"]}}
        found: Json = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
        self.send(found | {"metadata": {"creationTimestamp": None}, "status": status}, 201)
