"""Schema of a Framework, as much of it as is sent and read."""

from __future__ import annotations

from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json

FRAMEWORKS = Resource("frameworkcontroller.microsoft.com", "v1", "frameworks", "Framework", subresources=())
_NAME = "^[a-z0-9]{1,63}$"
_RETRY = {
    "type": "object",
    "properties": {"fancyRetryPolicy": {"type": "boolean"}, "maxRetryCount": {"type": "integer", "minimum": -2}},
}
_COUNT = {"type": "integer", "minimum": -1}
_POLICY = {"type": "object", "properties": {"minFailedTaskCount": _COUNT, "minSucceededTaskCount": _COUNT}}
_TASK = {
    "type": "object",
    "properties": {
        "retryPolicy": _RETRY,
        "podGracefulDeletionTimeoutSec": {"type": "integer", "nullable": True},
        "pod": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
_ROLE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": _NAME},
        "taskNumber": {"type": "integer", "minimum": 0, "maximum": 10000},
        "frameworkAttemptCompletionPolicy": _POLICY,
        "task": _TASK,
    },
}
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "pattern": _NAME}}},
        "spec": {
            "type": "object",
            "properties": {
                "description": {"type": "string", "nullable": True},
                "executionType": {"type": "string", "enum": ["Create", "Start", "Stop"]},
                "retryPolicy": _RETRY,
                "taskRoles": {"type": "array", "items": _ROLE},
            },
        },
        "status": {"type": "object", "nullable": True, "x-kubernetes-preserve-unknown-fields": True},
    },
}
