"""Every operation of the API as a table by hand, and an example of each parameter in its path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_IN_PATH = re.compile(r"\{(\w+)\}")
OPERATIONS = (
    ("GET", "/experiments"),
    ("GET", "/notebooks"),
    ("GET", "/experiments/{experiment}"),
    ("PATCH", "/experiments/{experiment}"),
    ("DELETE", "/experiments/{experiment}"),
    ("GET", "/experiments/{experiment}/code"),
    ("GET", "/experiments/{experiment}/plan"),
    ("GET", "/experiments/{experiment}/why"),
    ("GET", "/experiments/{experiment}/trials"),
    ("GET", "/experiments/{experiment}/series"),
    ("GET", "/experiments/{experiment}/pictures"),
    ("GET", "/experiments/{experiment}/trials/{trial}/log"),
    ("GET", "/experiments/{experiment}/trials/{trial}/usage"),
    ("GET", "/experiments/{experiment}/trials/{trial}/log/matches"),
    ("GET", "/experiments/{experiment}/trials/{trial}/log/file"),
    ("GET", "/experiments/{experiment}/trials/{trial}/attempts/{attempt}/pictures/{name}"),
    ("POST", "/experiments/{experiment}/actions"),
    ("GET", "/requests/{request}"),
    ("GET", "/manager"),
    ("POST", "/manager"),
    ("GET", "/backends"),
    ("GET", "/backends/{backend}/inventory"),
    ("POST", "/backends/{backend}/checks"),
    ("GET", "/checks/{check}"),
    ("DELETE", "/checks/{check}"),
    ("GET", "/backend-types"),
    ("GET", "/backend-types/{type}"),
    ("GET", "/profiles"),
    ("POST", "/profiles"),
    ("GET", "/profiles/{profile}"),
    ("PATCH", "/profiles/{profile}"),
    ("DELETE", "/profiles/{profile}"),
    ("GET", "/project"),
    ("POST", "/project"),
    ("GET", "/header/schema"),
    ("POST", "/header/faults"),
    ("POST", "/header/completions"),
    ("GET", "/openapi.json"),
)
EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "experiment": "e", "trial": "1", "attempt": "1", "name": "0001.png", "request": "1", "backend": "local",
        "check": "0" * 32, "type": "ssh", "profile": "lab",
    }
)  # fmt: skip


def address(path: str, **values: str) -> str:
    """Return the path with these values, and with the examples where none is given."""
    return path.format_map({**EXAMPLES, **values})


def path_parameters(path: str) -> list[str]:
    """Return the names of the parameters in a path."""
    return _IN_PATH.findall(path)


def query_parameters(document: Any, method: str, path: str) -> list[str]:
    """Return the names of the parameters in the query of an operation, as its description says."""
    described = document["paths"][path][method.lower()]["parameters"]
    return [parameter["name"] for parameter in described if parameter["in"] == "query"]


def body_members(document: Any, method: str, path: str) -> list[str]:
    """Return the names of the members of an operation's body, as its description says."""
    body = document["paths"][path][method.lower()].get("requestBody")
    return [*body["content"]["application/json"]["schema"]["properties"]] if body else []
