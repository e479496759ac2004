"""Watches, as the official client follows them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from kubernetes import client, watch

from tests.kubernetes.api.conftest import Double, client_of
from tests.kubernetes.api.requests import config_map


def change(core: client.CoreV1Api, namespace: str, name: str, data: dict, labels: dict | None = None) -> None:
    body = {"data": data, "metadata": {"labels": labels or {}}}
    core.patch_namespaced_config_map(name, namespace, body)


def make(core: client.CoreV1Api, namespace: str, name: str, labels: dict | None = None) -> client.V1ConfigMap:
    body = config_map(name) | {"metadata": {"name": name, "labels": labels or {"app": "x"}}}
    return core.create_namespaced_config_map(namespace, body)


def events(core: client.CoreV1Api, namespace: str, **options: object) -> Iterator[tuple[str, str, dict | None]]:
    for event in watch.Watch().stream(core.list_namespaced_config_map, namespace, timeout_seconds=60, **options):
        yield event["type"], event["object"].metadata.name, event["object"].data


def first(found: Iterator, count: int) -> list:
    return [next(found) for _ in range(count)]


def test_a_watch_from_a_version_tells_each_later_change_once(core: client.CoreV1Api, namespace: str) -> None:
    version = make(core, namespace, "a").metadata.resource_version
    change(core, namespace, "a", {"x": "1"})
    make(core, namespace, "b")
    core.delete_namespaced_config_map("a", namespace)
    told = first(events(core, namespace, resource_version=version, label_selector="app=x"), 3)
    assert told == [("MODIFIED", "a", {"x": "1"}), ("ADDED", "b", None), ("DELETED", "a", {"x": "1"})]


def test_a_watch_hears_of_what_happens_while_it_waits(core: client.CoreV1Api, namespace: str) -> None:
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    timer = threading.Timer(0.2, make, (core, namespace, "a"))
    timer.start()
    assert first(events(core, namespace, resource_version=version, label_selector="app=x"), 1) == [("ADDED", "a", None)]
    timer.join()


def test_a_watch_without_a_version_begins_with_what_is_there(core: client.CoreV1Api, namespace: str) -> None:
    make(core, namespace, "a")
    assert first(events(core, namespace, label_selector="app=x"), 1) == [("ADDED", "a", None)]


def test_what_leaves_the_selection_is_told_as_deleted(core: client.CoreV1Api, namespace: str) -> None:
    version = make(core, namespace, "a").metadata.resource_version
    change(core, namespace, "a", {}, {"app": "y"})
    change(core, namespace, "a", {}, {"app": "x"})
    told = first(events(core, namespace, resource_version=version, label_selector="app=x"), 2)
    assert [item[0] for item in told] == ["DELETED", "ADDED"]


def test_a_watch_ends_at_its_timeout(core: client.CoreV1Api, namespace: str) -> None:
    version = make(core, namespace, "a").metadata.resource_version
    found = watch.Watch().stream(
        core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=1
    )
    assert [event for event in found if event["object"].metadata.name == "a"] == []


def test_changes_that_are_forgotten_are_410(double: Double) -> None:
    with client_of(double.api.kubeconfig()) as api_client:
        core = client.CoreV1Api(api_client)
        version = make(core, "default", "a").metadata.resource_version
        change(core, "default", "a", {"x": "1"})
        double.api.compact()
        with pytest.raises(client.ApiException) as caught:
            first(events(core, "default", resource_version=version), 1)
        assert caught.value.status == 410
        listed = core.list_namespaced_config_map("default")
        make(core, "default", "b")
        told = first(events(core, "default", resource_version=listed.metadata.resource_version), 1)
        assert told == [("ADDED", "b", None)]


def test_a_watch_that_runs_while_changes_are_forgotten_is_told_410(double: Double) -> None:
    with client_of(double.api.kubeconfig()) as api_client:
        core = client.CoreV1Api(api_client)
        version = make(core, "default", "a").metadata.resource_version

        def forget() -> None:
            double.api.compact()
            make(core, "default", "b")

        timer = threading.Timer(0.2, forget)
        timer.start()
        with pytest.raises(client.ApiException) as caught:
            first(events(core, "default", resource_version=version), 1)
        timer.join()
        assert caught.value.status == 410


def test_bookmarks_say_how_far_a_quiet_watch_is(double: Double) -> None:
    with client_of(double.api.kubeconfig()) as api_client:
        core = client.CoreV1Api(api_client)
        version = make(core, "default", "a").metadata.resource_version
        latest = core.create_namespaced_secret("default", {"metadata": {"name": "s"}}).metadata.resource_version
        stream = watch.Watch().stream(
            core.list_namespaced_config_map, "default", resource_version=version, allow_watch_bookmarks=True,
            timeout_seconds=60,
        )  # fmt: skip
        event = next(iter(stream))
        assert event["type"] == "BOOKMARK"
        assert event["raw_object"]["metadata"]["resourceVersion"] == latest
