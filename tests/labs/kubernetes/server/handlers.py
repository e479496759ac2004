"""Requests for objects: create, read, change, delete, watch."""

from __future__ import annotations

import contextlib
import json

from tests.labs.kubernetes.objects import paths
from tests.labs.kubernetes.objects.errors import ApiError, bad_request
from tests.labs.kubernetes.objects.paths import Target
from tests.labs.kubernetes.objects.resources import JOBS, PODS
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.server.access import Action
from tests.labs.kubernetes.server.api_handler import PATCH_TYPES, ApiHandler
from tests.labs.kubernetes.server.paging import page
from tests.labs.kubernetes.server.watch import Watch, WatchRequest


class ObjectsHandler(ApiHandler):
    """A collection, an object or its status."""

    def prepare(self) -> None:
        """Find what the path names, and whether it is allowed."""
        super().prepare()
        found = paths.parse(self.server.store.resources, self.request.path)
        self.action(found)
        if found is None:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        self.target = found

    def action(self, target: Target | None) -> None:
        """Check the permission, and count the request."""
        if target is None:
            return
        resource = target.resource
        self.server.requests[self.verb(), target.told] += 1
        action = Action(self.verb(), resource.group, target.told, target.namespace, target.name)
        self.server.access.check(self.user, action)

    def verb(self) -> str:
        """As permissions name what is done."""
        found = paths.parse(self.server.store.resources, self.request.path)
        named = bool(found and found.name)
        if self.request.method == "DELETE":
            return "delete" if named else "deletecollection"
        if self.request.method != "GET" or named:
            return super().verb()
        return "watch" if self.flag("watch") else "list"

    @property
    def dry_run(self) -> bool:
        """Return whether nothing is to be stored."""
        value = self.option("dryRun")
        if value not in ("", "All"):
            raise bad_request(f'Invalid value: "{value}": supported values: "All"')
        return value == "All"

    def refuse_method(self) -> None:
        """405.

        Raises:
            ApiError: Always.
        """
        raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")

    async def get(self) -> None:
        """Read, list or watch."""
        target = self.target
        if target.name:
            self.send(self.server.store.get(target.resource, target.namespace, target.name))
        elif self.flag("watch"):
            await self.watch()
        else:
            self.list_objects()

    def list_objects(self) -> None:
        """Answer with a list."""
        resource = self.target.resource
        items, version = self.server.store.shared_list(
            resource, self.target.namespace, self.option("labelSelector"), self.option("fieldSelector")
        )
        oldest = self.server.store.oldest_version
        shown, metadata = page(items, version, oldest, self.number("limit") or 0, self.option("continue"))
        found = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
        self.send(found | {"metadata": metadata, "items": list(shown)})

    async def watch(self) -> None:
        """Answer with events, one per line."""
        request = WatchRequest(
            self.target, self.option("labelSelector"), self.option("fieldSelector"), self.option("resourceVersion"),
            self.flag("allowWatchBookmarks"), self.flag("sendInitialEvents"), float(self.number("timeoutSeconds") or 0),
        )  # fmt: skip
        assert self.server.wakeups is not None
        watch = Watch(self.server.store, request, self.server.bookmark_interval_s)
        self.set_header("Content-Type", "application/json")
        await self.stream(watch.lines(self.server.wakeups))

    def post(self) -> None:
        """Make an object."""
        target = self.target
        if target.name:
            self.refuse_method()
        made = self.server.store.create(target.resource, target.namespace, self.object_body(), dry_run=self.dry_run)
        self.send(made, 201)

    def put(self) -> None:
        """Replace an object."""
        target = self.target
        if not target.name:
            self.refuse_method()
        body = self.object_body()
        name = (body.get("metadata") or {}).get("name")
        if name != target.name:
            raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
        store = self.server.store
        changed = store.replace(
            target.resource, target.namespace, target.name, body, target.subresource, dry_run=self.dry_run
        )
        self.send(changed)

    def patch(self) -> None:
        """Change some fields of an object."""
        target = self.target
        if not target.name:
            self.refuse_method()
        kind = self.request.headers.get("Content-Type", "").split(";")[0].strip()
        custom = self.server.store.resources.schema(target.resource) is not None
        if kind not in PATCH_TYPES or (custom and "strategic" in kind):
            accepted = ", ".join(name for name in PATCH_TYPES if not (custom and "strategic" in name))
            message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
            raise ApiError(415, "UnsupportedMediaType", message)
        changed = self.server.store.patch(
            target.resource, target.namespace, target.name, self.body(), PATCH_TYPES[kind], target.subresource,
            dry_run=self.dry_run, decode=self.read_patched,
        )  # fmt: skip
        self.send(changed)

    def read_patched(self, found: Json) -> Json:
        """Return an object as a patch makes it, without unknown fields."""
        decoder = self.server.decoder
        read, warnings = decoder.patched(self.target.resource, found, self.body(), self.option("fieldValidation"))
        self.warn(warnings)
        return dict(read)

    def object_body(self) -> Json:
        """Return the manifest that the request sends.

        Raises:
            ApiError: 400: It is none of this resource.
        """
        body = self.body()
        if not isinstance(body, dict):
            raise bad_request("the object provided is unrecognized (must be of type object)")
        self.check_identity(body)
        read, warnings = self.server.decoder.manifest(self.target.resource, body, self.option("fieldValidation"))
        self.warn(warnings)
        return dict(read)

    def check_identity(self, body: Json) -> None:
        """Refuse a manifest of another kind or namespace than the path's.

        Raises:
            ApiError: 400.
        """
        resource = self.target.resource
        namespace = (body.get("metadata") or {}).get("namespace")
        custom = self.server.store.resources.schema(resource) is not None
        if custom and not (body.get("kind") and body.get("apiVersion")):
            raise bad_request(f"Object 'Kind' is missing in '{json.dumps(body)}'")
        version = body.get("apiVersion", resource.api_version)
        if version != resource.api_version:
            expected = f"does not match the expected API version ({resource.api_version})"
            raise bad_request(f"the API version in the data ({version}) {expected}")
        kind = body.get("kind", resource.kind)
        if kind != resource.kind:
            told = f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
            raise bad_request(f'{told}: no kind "{kind}" is registered for version "{version}"')
        if resource.namespaced and namespace not in (None, "", self.target.namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")

    def delete(self) -> None:
        """Delete an object, or those that selectors name."""
        body = self.body() if self.request.body else {}
        options = body if isinstance(body, dict) else {}
        target = self.target
        if target.name:
            found = self.delete_one(target.name, options)
            gone = found["metadata"].get("deletionTimestamp") is None and target.resource.key != PODS.key
            self.send(_deleted(target, found) if gone else found)
            return
        items, version = self.server.store.list(
            target.resource, target.namespace, self.option("labelSelector"), self.option("fieldSelector")
        )
        for item in items:
            with contextlib.suppress(ApiError):  # another request deletes it too
                self.delete_one(item["metadata"]["name"], options, item["metadata"].get("namespace", ""))
        kind = {"kind": f"{target.resource.kind}List", "apiVersion": target.resource.api_version}
        self.send(kind | {"metadata": {"resourceVersion": version}, "items": items})

    def delete_one(self, name: str, options: Json, namespace: str | None = None) -> Json:
        """Delete an object as options say."""
        resource = self.target.resource
        grace_s = options.get("gracePeriodSeconds", self.number("gracePeriodSeconds"))
        default = "Orphan" if resource.key == JOBS.key else "Background"
        propagation = options.get("propagationPolicy") or self.option("propagationPolicy") or default
        return self.server.store.delete(
            resource, self.target.namespace if namespace is None else namespace, name, grace_s=grace_s,
            propagation=propagation, uid=(options.get("preconditions") or {}).get("uid", ""), dry_run=self.dry_run,
        )  # fmt: skip


def _deleted(target: Target, found: Json) -> Json:
    details = {"name": target.name, "kind": target.resource.plural, "uid": found["metadata"]["uid"]}
    if target.resource.group:
        details["group"] = target.resource.group
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
