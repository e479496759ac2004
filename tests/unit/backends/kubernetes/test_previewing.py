"""Manifests as text: what kubectl, a reader of YAML 1.1, makes of it is what was meant."""

from __future__ import annotations

import base64

import pytest
import yaml

from jupyter_autotrain.backends.kubernetes.previewing import to_yaml

TEXTS = [
    "on", "Yes", "n", "null", "~", "", "12", "0x1F", "1e3", "1:30", "2026-01-01", "a: b", "- a", "#x", "*a", "&a",
    "{a}", "a b ", "true", "/data", "nvidia.com/gpu", "python3", "-u", "two\nlines", "two\nlines\n", "tab\tand\nline",
    "é", "\u2028", "x" * 5000, "%YAML", "key:value", "a:\n b", "012", "+1", ".inf", "=",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_is_read_as_it_is(text: str) -> None:
    assert yaml.safe_load(to_yaml([{"value": text, text: 1}])) == {"value": text, text: 1}


def test_objects_are_documents_that_begin_with_what_they_are() -> None:
    job = {"spec": {"a": [1, True, None, 2.5]}, "metadata": {"labels": {}, "name": "t"}, "kind": "Job"}
    written = to_yaml([{**job, "apiVersion": "batch/v1"}, {"kind": "Service"}])
    assert written.startswith("---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: t\n")
    assert list(yaml.safe_load_all(written)) == [{**job, "apiVersion": "batch/v1"}, {"kind": "Service"}]


def test_binary_data_is_whole_for_kubectl() -> None:
    data = base64.b64encode(bytes(3000)).decode()
    found = {"kind": "ConfigMap", "binaryData": {"agent.zip": data}}
    assert yaml.safe_load(to_yaml([found])) == found
