"""The OpenAPI description: valid, and true of what the server does with any request that can be made from it."""

import json
from contextlib import nullcontext, suppress

import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.config import SchemathesisConfig

from jupyter_autotrain import __version__
from tests.server.jupyter import Filler


def test_the_description_names_every_operation_and_its_parameters(server):
    found = server.get("/openapi.json")
    assert (found["openapi"], found["info"]["version"]) == ("3.1.0", __version__)
    assert server.url.endswith(found["servers"][0]["url"].removesuffix("jupyter-autotrain/api"))
    series = found["paths"]["/experiments/{experiment}/series"]["get"]
    parameters = {parameter["name"]: parameter for parameter in series["parameters"]}
    assert parameters["experiment"]["in"] == "path"
    assert parameters["metric"]["required"] is True
    assert parameters["max_points"]["schema"]["maximum"] == 20_000
    actions = found["paths"]["/experiments/{experiment}/actions"]["post"]
    body = actions["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["action"]
    assert "experiment" not in body["properties"]
    for methods in found["paths"].values():
        for operation in methods.values():
            for parameter in operation["parameters"]:
                jsonschema.Draft202012Validator.check_schema(parameter["schema"])


@pytest.fixture(scope="module")
def described(server):
    filler = Filler(server)
    filler.done("o1")
    plan = {"name": "net", "cluster": {}, "mesh": {}, "cost": {}, "candidates": []}
    (server.home.bundle("o1") / "plan.json").write_text(json.dumps(plan))
    filler.store.close()
    document = server.get("/openapi.json")
    for methods in document["paths"].values():
        for operation in methods.values():
            _name_what_is_there(operation)
    # What it does not count as refused by itself is a body that is too large.
    refused = {"expected-statuses": [400, 403, 404, 405, 409, 413]}
    config = SchemathesisConfig.from_dict({"checks": {"negative_data_rejection": refused}})
    return schemathesis.openapi.from_dict(document, config=config)


def _name_what_is_there(operation):
    """Ids at random are never there: half of the requests shall be about an experiment that is."""
    for parameter in operation["parameters"]:
        if parameter["name"] == "experiment":
            parameter["schema"] = {"anyOf": [{"const": "o1"}, parameter["schema"]]}


@pytest.mark.parametrize("examples", [3, pytest.param(20, marks=pytest.mark.long)])
def test_no_request_fails_or_is_answered_otherwise_than_described(server, described, examples):
    """Requests at random, right and wrong ones: of those that change nothing for the tests beside it."""
    chosen = described.exclude(path_regex="inventory|actions|manager|checks$").exclude(method="DELETE")
    operations = [found.ok() for found in chosen.get_all_operations()]
    assert len(operations) == 30
    headers = {"Authorization": f"token {server.token}"}
    for operation in operations:
        for mode in GenerationMode:

            @settings(
                max_examples=examples, deadline=None, database=None, phases=[Phase.generate], derandomize=True,
                suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            @given(case=operation.as_strategy(generation_mode=mode))
            def check(case):
                case.call_and_validate(base_url=server.api, headers=headers, timeout=120)

            with suppress(Unsatisfiable) if mode.is_negative else nullcontext():
                check()  # without parameters there is no wrong request
