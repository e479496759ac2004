"""The cluster that KUBECONFIG names, for tests that run on any: `make test-cluster`.

Each test has a namespace of its own, and nothing else of the cluster is changed, but for kinds that tests define and
delete. AUTOTRAIN_TEST_IMAGE names an image with Python that nodes can pull, AUTOTRAIN_TEST_PYTHON its interpreter.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from kubernetes import client

from jupyter_autotrain.testing.bundles import wait_until

IMAGE = "python:3.12"
_PULLED_WITHIN_S = 900.0
_ACCOUNT_WITHIN_S = 60.0


def kubeconfig_of_environment(config: pytest.Config) -> Path:
    """Return the kubeconfig; skips where these tests were not asked for: a developer's own cluster is not for tests."""
    if "cluster" not in config.option.markexpr:
        pytest.skip("`make test-cluster` runs it on a real cluster")
    if not os.environ.get("KUBECONFIG"):
        pytest.skip("KUBECONFIG names no cluster")
    return Path(os.environ["KUBECONFIG"])


def trial_options() -> dict[str, str]:
    """Return the options of a profile by which trials run there."""
    python = os.environ.get("AUTOTRAIN_TEST_PYTHON")
    return {"image": os.environ.get("AUTOTRAIN_TEST_IMAGE", IMAGE), **({"python": python} if python else {})}


@contextmanager
def new_namespace(core: client.CoreV1Api, **labels: str) -> Iterator[str]:
    """Yield a namespace, once pods can be made in it."""
    name = f"autotrain-{uuid.uuid4().hex[:8]}"
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name, labels=labels)))
    try:
        wait_until(lambda: _has_account(core, name), "its default service account", within_s=_ACCOUNT_WITHIN_S)
        yield name
    finally:
        core.delete_namespace(name)


def _has_account(core: client.CoreV1Api, namespace: str) -> bool:
    """Tell whether a controller has made it, a moment after the namespace; before, all pods are forbidden."""
    accounts = core.list_namespaced_service_account(namespace).items
    return any(account.metadata.name == "default" for account in accounts)


def pull_image(core: client.CoreV1Api, options: dict[str, str]) -> None:
    """Have all nodes pull the image, however long that takes: no test is to wait for it."""
    with new_namespace(core) as namespace:
        for node in _nodes(core):
            container = client.V1Container(
                name="pull", image=options["image"], command=[options.get("python", "python3"), "-c", ""]
            )
            spec = client.V1PodSpec(containers=[container], restart_policy="Never", node_name=node)
            metadata = client.V1ObjectMeta(generate_name="pull-")
            core.create_namespaced_pod(namespace, client.V1Pod(metadata=metadata, spec=spec))

        def has_ended() -> bool:
            pods = core.list_namespaced_pod(namespace).items
            assert not [pod.metadata.name for pod in pods if pod.status.phase == "Failed"], "the image has no Python"
            return all(pod.status.phase == "Succeeded" for pod in pods)

        wait_until(has_ended, f"the image {options['image']} on all nodes", within_s=_PULLED_WITHIN_S)


def _nodes(core: client.CoreV1Api) -> Sequence[str | None]:
    """Return those on which trials may run; None is one of the scheduler's choice, where they may not be listed."""
    found: list[client.V1Node] = []
    with contextlib.suppress(client.ApiException):
        found = core.list_node().items
    open_ones = [node for node in found if not node.spec.unschedulable and not _is_tainted(node)]
    return [node.metadata.name for node in open_ones] or [None]


def _is_tainted(node: client.V1Node) -> bool:
    return any(taint.effect in {"NoSchedule", "NoExecute"} for taint in node.spec.taints or ())
