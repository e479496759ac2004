"""The user's file of profiles over REST: where it is, which wins, forms' schemas, add, edit and remove."""

from __future__ import annotations

import stat

import jsonschema
import pytest

from tests.projects import trust_project
from tests.server.jupyter import problem_of, running_server

TOKEN = "hf_" + "aB3dE6gH9jK2mN5p"
SCRIPT = "</script><script>alert('x')</script>"
WRITTEN = """\
# our machines
lab:        # two boxes
    type: ssh
    hosts:
    - gpu1  # fast
    - {host: gpu2, port: 2222}
    user: 'ada'
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Yield a server whose files of profiles only these tests change."""
    with running_server(tmp_path_factory.mktemp("profiles")) as server:
        yield server


@pytest.fixture
def file(server):
    path = server.root.parent / "config" / "backends.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(WRITTEN)
    path.chmod(0o644)
    yield path
    path.unlink(missing_ok=True)


def saved(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_types_have_a_schema_that_a_form_is_made_of(server):
    types = {row["name"]: row for row in server.get("/backend-types")["types"]}
    assert {"ssh", "slurm", "kubernetes", "local"} <= set(types)
    assert types["ssh"]["needs"] == ["hosts"]
    for name in types:
        schema = server.get(f"/backend-types/{name}")["schema"]
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["properties"]["type"]["const"] == name
    assert problem_of(server.ask("GET", "/backend-types/nowhere"))["status"] == 404


def test_a_profile_is_added_edited_and_removed_and_comments_stay(server, file):
    body = {"profile": "box", "type": "ssh", "yaml": {"hosts": "[c1, {host: c2, port: 22}]"}, "texts": {"user": "no"}}
    assert saved(server.ask("POST", "/profiles", json=body)) == {"saved": True, "faults": []}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().startswith(WRITTEN)
    found = server.get("/profiles/box")
    assert (found["type"], found["level"]) == ("ssh", "user")
    assert found["yaml"]["hosts"] == "[c1, {host: c2, port: 22}]"
    assert found["texts"]["user"] == "no"
    assert "box" in {row["name"] for row in server.get("/backends")["backends"]}
    change = {"yaml": {"port": "2200"}, "unset": ["user"]}
    assert saved(server.ask("PATCH", "/profiles/lab", json=change))["saved"] is True
    assert "# fast" in file.read_text()
    assert "port: 2200" in file.read_text()
    assert "ada" not in file.read_text()
    assert saved(server.ask("DELETE", "/profiles/box"))["saved"] is True
    assert "\nbox:" not in file.read_text()
    assert "# our machines" in file.read_text()


def test_faults_are_told_at_their_fields_and_nothing_is_written(server, file):
    body = {
        "profile": "bad",
        "type": "ssh",
        "yaml": {"hosts": "[{host: a, port: many}]", "transport": "paramika", "lease_s": "[", "nodez": "1"},
    }
    answer = saved(server.ask("POST", "/profiles", json=body))
    assert answer["saved"] is False
    texts = {tuple(fault["path"]): fault["text"] for fault in answer["faults"]}
    assert any(path[:1] == ("hosts",) and "port" in path for path in texts)
    assert any("paramiko" in text for path, text in texts.items() if path[:1] == ("transport",))
    assert "cannot be read" in texts["lease_s",]
    assert ("nodez",) in texts
    assert file.read_text() == WRITTEN
    checked = server.ask("PATCH", "/profiles/lab", json={"yaml": {"port": "22"}, "save": False})
    assert saved(checked) == {"saved": False, "faults": []}
    assert file.read_text() == WRITTEN


def test_a_name_that_is_taken_or_none_is_refused(server, file):
    taken = {"profile": "lab", "type": "local"}
    assert "already" in problem_of(server.ask("POST", "/profiles", json=taken))["detail"]
    for name in ("../../etc/passwd", "a b", "x: y", "a\nb"):
        answer = saved(server.ask("POST", "/profiles", json={"profile": name, "type": "local"}))
        assert answer["saved"] is False
    assert file.read_text() == WRITTEN
    assert problem_of(server.ask("PATCH", "/profiles/local", json={}))["status"] == 404
    assert problem_of(server.ask("DELETE", "/profiles/nowhere"))["status"] == 404


def test_no_secret_is_shown_or_stored(server, file):
    body = {"texts": {"user": TOKEN}}
    answer = server.ask("PATCH", "/profiles/lab", json=body)
    assert saved(answer)["faults"]
    assert TOKEN not in answer.text
    assert file.read_text() == WRITTEN
    file.write_text(WRITTEN.replace("'ada'", f"'{TOKEN}'"))
    shown = server.ask("GET", "/profiles/lab")
    assert shown.json()["hidden"] == ["user"]
    assert "user" not in shown.json()["yaml"]
    for path in ("/profiles/lab", "/profiles", "/backends", "/backends/lab/inventory"):
        assert TOKEN not in server.ask("GET", path).text


def test_markup_in_a_setting_stays_data(server, file):
    assert saved(server.ask("PATCH", "/profiles/lab", json={"texts": {"workdir": SCRIPT}}))["saved"] is True
    answer = server.ask("GET", "/profiles/lab")
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json()["texts"]["workdir"] == SCRIPT


def test_the_projects_file_wins_and_is_not_edited(server, file):
    project = server.root / "autotrain.yaml"
    project.write_text("backends:\n  lab: {type: local}\n")
    trust_project(server.root, server.environ)
    try:
        found = server.get("/profiles")
        assert [(row["level"], row["exists"]) for row in found["files"]] == [("project", True), ("user", True)]
        (row,) = [row for row in found["profiles"] if row["name"] == "lab"]
        assert row["level"] == "project"
        assert row["hides"].endswith("backends.yaml line 2")
        (listed,) = [row for row in server.get("/backends")["backends"] if row["name"] == "lab"]
        assert (listed["level"], listed["hides"], listed["type"]) == ("project", "user", "local")
        assert "shared with others" in problem_of(server.ask("PATCH", "/profiles/lab", json={}))["detail"]
        assert "shared with others" in problem_of(server.ask("DELETE", "/profiles/lab"))["detail"]
    finally:
        project.unlink()
    assert file.read_text() == WRITTEN


def test_oversized_and_unknown_settings_are_refused(server, file):
    for body in (
        {"texts": {"user": "x" * 30_000}},
        {"texts": {f"k{number}": "" for number in range(200)}},
        {"texts": {"a b": ""}},
        {"yaml": {"x\ny": "1"}},
        {"other": 1},
        {"unset": [1]},
    ):
        assert problem_of(server.ask("PATCH", "/profiles/lab", json=body))["status"] == 400
    nested = {"yaml": {"hosts": "[" * 3000}}
    assert saved(server.ask("PATCH", "/profiles/lab", json=nested))["saved"] is False
    smuggled = {"yaml": {"port": "22\nuser: mallory"}}
    assert saved(server.ask("PATCH", "/profiles/lab", json=smuggled))["saved"] is False
    assert file.read_text() == WRITTEN


READER = """
from jupyter_server.auth import Authorizer

class ReadOnly(Authorizer):
    def is_authorized(self, handler, user, action, resource):
        return action == "read"

c.ServerApp.authorizer_class = ReadOnly
"""


def test_who_may_only_read_learns_no_file_and_no_setting(tmp_path):
    config = tmp_path / "reader.py"
    config.write_text(READER)
    with running_server(tmp_path / "run", f"--config={config}") as server:
        folder = server.root.parent / "config"
        folder.mkdir(exist_ok=True)
        (folder / "backends.yaml").write_text(WRITTEN)
        listed = server.ask("GET", "/backends")
        assert "lab" in listed.text
        assert str(folder) not in listed.text
        for method, path in (
            ("GET", "/profiles"), ("GET", "/profiles/lab"), ("POST", "/profiles"), ("PATCH", "/profiles/lab"),
            ("DELETE", "/profiles/lab"), ("POST", "/backends/lab/checks"), ("GET", f"/checks/{'0' * 32}"),
        ):  # fmt: skip
            refused = server.ask(method, path, json=None if method == "GET" else {})
            assert problem_of(refused)["status"] == 403
            assert str(folder) not in refused.text
        assert (folder / "backends.yaml").read_text() == WRITTEN
