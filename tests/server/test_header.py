"""The header of a cell, checked and completed by the server: no kernel is there."""

import jsonschema
import pytest

from tests.projects import trust_project
from tests.server.jupyter import problem_of

CELL = """%%autotrain digits -j 2
objective: maximize val_acc
trails: 3
backend: lab
---
report(val_acc=1)
"""


def faults_of(server, text, notebook=""):
    answer = server.ask("POST", "/header/faults", json={"text": text, "notebook": notebook})
    assert answer.status_code == 200, answer.text
    return answer.json()["faults"]


def completions_of(server, text, notebook="", **more):
    body = {"text": text, "notebook": notebook, "cursor": len(text), **more}
    answer = server.ask("POST", "/header/completions", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def project(server):
    """Return a folder with a notebook and a profile of its own."""
    folder = server.root / "project"
    folder.mkdir(exist_ok=True)
    (folder / "autotrain.yaml").write_text("backends:\n  lab: {type: ssh, hosts: [gpu1]}\n")
    trust_project(folder, server.environ)
    return "project/train.ipynb"


def test_all_faults_of_a_header_are_told_with_their_lines(server):
    faults = faults_of(server, CELL)
    assert [fault["line"] for fault in faults] == [3, 4]
    assert faults[0]["found"] == "unknown key 'trails'"
    assert faults[0]["expected"] == "did you mean 'trials'?"
    assert "'lab'" in faults[1]["found"]


def test_a_profile_of_the_notebooks_folder_is_no_fault(server, project):
    assert [fault["line"] for fault in faults_of(server, CELL, project)] == [3]


def test_a_fault_of_a_settings_file_is_told_at_the_magic_line(server):
    folder = server.root / "broken"
    folder.mkdir()
    (folder / "autotrain.yaml").write_text("seed: 1\ntrails: 3\n")
    [fault] = faults_of(server, "%%autotrain\n1 + 1\n", "broken/a.ipynb")
    assert (fault["line"], fault["file"]) == (1, "autotrain.yaml")
    assert fault["found"].startswith("autotrain.yaml line 2: unknown key 'trails'")


@pytest.mark.parametrize("text", ["", "1 + 1", "%%time\ntrails: 3\n---\n", "%%autotrain\nprint(1)\n"])
def test_a_cell_without_a_faulty_header_has_no_faults(server, text):
    assert faults_of(server, text) == []


def test_keys_values_flags_and_profiles_are_completed(server, project):
    found = completions_of(server, "%%autotrain\nobjective: maximize a\ntri")
    assert [match["text"] for match in found["matches"]] == ["trials: "]
    assert found["start"] == len("%%autotrain\nobjective: maximize a\n")
    assert "random" in [match["text"] for match in completions_of(server, "%%autotrain\ntuner: ")["matches"]]
    assert "--backend" in [match["text"] for match in completions_of(server, "%%autotrain --b")["matches"]]
    backends = completions_of(server, "%%autotrain\nbackend: l", project)["matches"]
    assert {(match["text"], match["origin"]) for match in backends} >= {
        ("lab", "autotrain.yaml line 2"),
        ("local", "type"),
    }


def test_an_empty_line_is_completed_and_each_key_says_what_it_means(server):
    found = {match["text"]: match for match in completions_of(server, "%%autotrain\n")["matches"]}
    assert found["resources: "]["title"] == "What one trial needs"
    assert found["objective: "]["title"] == "The reported metric that ranks trials"
    assert "mean(METRIC, last=5)" in found["objective: "]["description"]


def test_a_cursor_behind_the_end_completes_at_the_end(server):
    assert [match["text"] for match in completions_of(server, "%%autotrain\ntri", cursor=999)["matches"]]


def test_the_schema_is_a_json_schema_with_the_types_of_backends(server):
    schema = server.get("/header/schema")["schema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert {"objective", "search", "trials", "backend"} <= schema["properties"].keys()


@pytest.mark.parametrize("notebook", ["../a.ipynb", "/etc/a.ipynb", "a/../../b.ipynb", "a\0.ipynb"])
def test_the_path_of_a_notebook_leads_nowhere_else(server, notebook):
    for path, more in (("faults", {}), ("completions", {"cursor": 0})):
        answer = server.ask("POST", f"/header/{path}", json={"text": CELL, "notebook": notebook, **more})
        assert problem_of(answer)["status"] == 400


def test_a_link_out_of_the_folder_is_not_followed(server, tmp_path):
    (tmp_path / "autotrain.yaml").write_text("trails: secret-word\n")
    (server.root / "linked").symlink_to(tmp_path)
    assert faults_of(server, "%%autotrain\n1 + 1\n", "linked/a.ipynb") == []


def test_a_long_cell_and_a_long_name_of_a_notebook_are_refused_or_harmless(server):
    long = server.ask("POST", "/header/faults", json={"text": "x" * 4_001})
    assert problem_of(long)["status"] == 400
    assert faults_of(server, "%%autotrain\n1 + 1\n", "a" * 900 + "/b.ipynb") == []
