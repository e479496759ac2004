"""Tests of what pages read: lists, an experiment, trials, curves, logs, pictures, code, backends, without a kernel."""

import json
import math
import shutil

import numpy as np
import pytest

from jupyter_autotrain.core.notes import PICTURE_LEVEL
from jupyter_autotrain.store import Ingest
from tests.server.jupyter import Filler, problem_of


@pytest.fixture(scope="module")
def listed(server):
    """Five experiments: three have ended, one runs, one waits."""
    filler = Filler(server)
    for number, name in enumerate(["cats", "dogs", "birds"]):
        filler.done(f"l{number}", name=name, notebook="animals.ipynb")
        filler.report(f"l{number}", 1, [float(number)])
    filler.experiment("l3", name="trees", notebook="plants.ipynb")
    filler.begin("l3", 1, lr=0.5)
    filler.experiment("l4", name="grass", notebook="plants.ipynb")
    filler.store.close()
    return server


def names(answer):
    return [item["name"] for item in answer["experiments"]]


def test_the_list_is_filtered_sorted_and_cut_into_pages(listed):
    plants = str(listed.root / "plants.ipynb")
    animals = str(listed.root / "animals.ipynb")
    assert names(listed.get("/experiments", notebook=plants)) == ["grass", "trees"]
    assert names(listed.get("/experiments", notebook=animals, sort="name", order="ascending")) == [
        "birds",
        "cats",
        "dogs",
    ]
    assert names(listed.get("/experiments", notebook=animals, sort="best")) == ["birds", "dogs", "cats"]
    assert names(listed.get("/experiments", text="TREE")) == ["trees"]
    page = listed.get("/experiments", notebook=animals, offset=1, limit=1)
    assert names(page) == ["dogs"]
    assert page["total"] == 3


def test_experiments_are_filtered_by_state_place_metric_and_date(listed):
    animals = str(listed.root / "animals.ipynb")
    found = listed.get("/experiments", notebook=animals, state="SUCCEEDED", place="local", metric="val_acc", since_s=1)
    assert sorted(names(found)) == ["birds", "cats", "dogs"]
    assert names(listed.get("/experiments", until_s=1, sort="took")) == []
    assert (found["places"], found["metrics"]) == (["local"], ["val_acc"])


def test_the_list_counts_what_runs_waits_and_is_done(listed):
    plants = str(listed.root / "plants.ipynb")
    assert listed.get("/experiments", notebook=plants)["groups"] == {"queued": 1, "running": 1, "done": 0}
    assert names(listed.get("/experiments", notebook=plants, group="running")) == ["trees"]


def test_experiments_without_a_value_are_last_in_either_order(listed):
    for order in ("ascending", "descending"):
        best = [item["best"] for item in listed.get("/experiments", sort="best", order=order)["experiments"]]
        known = [value is not None for value in best]
        assert known == sorted(known, reverse=True)


def test_notebooks_are_listed_with_their_experiments(listed):
    found = {row["label"]: row for row in listed.get("/notebooks")["notebooks"]}
    assert found["animals.ipynb"]["experiments"] == 3
    assert (found["plants.ipynb"]["experiments"], found["plants.ipynb"]["unfinished"]) == (2, 2)


def test_one_experiment_has_what_a_panel_shows(listed):
    found = listed.get("/experiments/l1")
    assert (found["name"], found["state"], found["metrics"]) == ("dogs", "SUCCEEDED", ["val_acc"])
    assert found["notebook_path"] == "animals.ipynb"
    assert found["sparkline"] == [0.5, 0.75, 1.0]
    assert found["manager"] == {"alive": False}


def test_tags_and_a_note_are_kept_and_found(listed):
    body = {"tags": ["baseline", "paper"], "note": "<script>alert(1)</script>"}
    assert listed.ask("PATCH", "/experiments/l0", json=body).json() == body
    assert listed.ask("PATCH", "/experiments/l0", json={"note": "short"}).json()["tags"] == ["baseline", "paper"]
    assert names(listed.get("/experiments", tag="paper")) == ["cats"]
    assert names(listed.get("/experiments", text="SHORT")) == ["cats"]


def test_what_a_trial_used_is_given_as_columns(server, filler):
    filler.done("used")
    filler.file("used", 1, "usage", b"[1.0, 99.5, 2000, null, null]\n")
    columns = {"seconds": [1.0], "cpu_percent": [99.5], "memory_bytes": [2000]}
    unknown = {"gpu_percent": None, "gpu_memory_bytes": None}
    assert server.get("/experiments/used/trials/1/usage") == {"attempts": [{"attempt": 1, **columns, **unknown}]}
    assert server.ask("GET", "/experiments/used/trials/2/usage").status_code == 404


def test_the_code_is_the_captured_script(listed):
    assert listed.get("/experiments/l1/code")["script"] == "trial.report(val_acc=0.5)\n"


def test_code_that_is_gone_is_told_with_what_captures_it_anew(server, filler):
    filler.experiment("cleaned")
    shutil.rmtree(server.home.bundle("cleaned"))
    problem = server.ask("GET", "/experiments/cleaned/code").json()
    assert problem["detail"].startswith("The code of digits")
    assert problem["action"] == "Run its cell again."


def test_the_plan_of_a_split_is_read_as_it_was_kept_at_submit(server, filler):
    for name in ("planned", "unplanned", "damaged"):
        filler.experiment(name)
    plan = {"name": "net", "cluster": {"name": "2x8xH100"}, "candidates": []}
    (server.home.bundle("planned") / "plan.json").write_text(json.dumps(plan))
    (server.home.bundle("damaged") / "plan.json").write_text("[1" + " " * (5 << 20))
    assert server.get("/experiments/planned/plan") == plan
    assert server.get("/experiments/planned")["has_plan"] is True
    assert server.get("/experiments/unplanned")["has_plan"] is False
    for name in ("unplanned", "damaged"):
        assert server.ask("GET", f"/experiments/{name}/plan").status_code == 404


def test_trials_come_in_pages_by_number_or_from_the_best(server, filler):
    filler.experiment("t1", trials=30)
    for number in range(1, 31):
        filler.begin("t1", number, lr=number / 10)
        filler.report("t1", number, [math.sin(number)])
    filler.end("t1", 30, "FAILED", "ran out of memory")
    page = server.get("/experiments/t1/trials", offset=10, limit=5)
    assert [trial["number"] for trial in page["trials"]] == [11, 12, 13, 14, 15]
    assert page["total"] == 30
    assert server.get("/experiments/t1/trials", sort="best", limit=1)["trials"][0]["number"] == 14
    failed = server.get("/experiments/t1/trials", state="FAILED")["trials"]
    assert [trial["reason"] for trial in failed] == ["ran out of memory"]


def test_a_long_series_is_thinned_and_keeps_its_extremes(server, filler):
    filler.experiment("s1")
    filler.begin("s1", 1)
    values = np.sin(np.arange(50_000) / 500)
    values[12_345] = 99.0
    values[40_001] = -99.0
    filler.report("s1", 1, values.tolist())
    found = server.get("/experiments/s1/series", metric="val_acc", max_points=200)
    curve = found["curves"][0]
    assert curve["points"] == 50_000
    assert len(curve["steps"]) == len(curve["values"]) == len(curve["times_s"]) <= 200
    assert curve["values"][curve["steps"].index(12_345)] == 99.0
    assert curve["values"][curve["steps"].index(40_001)] == -99.0
    assert (curve["steps"][0], curve["steps"][-1]) == (0, 49_999)


def test_a_page_that_knows_the_trials_gets_those_that_can_have_changed(server, filler):
    filler.experiment("t2", trials=30)
    for number in range(1, 6):
        filler.begin("t2", number)
        if number < 5:
            filler.end("t2", number)
    known = server.get("/experiments/t2/trials")
    assert known["total"] == 5
    quiet = server.get("/experiments/t2/trials", changed_after=known["last_state_change"])
    assert [trial["number"] for trial in quiet["trials"]] == [5]  # its value can have changed
    filler.end("t2", 5, "FAILED")
    filler.begin("t2", 6)
    changed = server.get("/experiments/t2/trials", changed_after=known["last_state_change"])
    assert [(trial["number"], trial["state"]) for trial in changed["trials"]] == [(5, "FAILED"), (6, "RUNNING")]
    assert changed["last_state_change"] > known["last_state_change"]


def test_curves_of_many_trials_stay_below_the_limit_together(server, filler):
    filler.experiment("s2", trials=100)
    for number in range(1, 101):
        filler.begin("s2", number)
        filler.report("s2", number, [float(step) for step in range(200)])
    all_of_them = server.get("/experiments/s2/series", metric="val_acc", max_points=500)
    assert sum(len(curve["steps"]) for curve in all_of_them["curves"]) <= 500
    assert all_of_them["left_out"] == []
    few = server.get("/experiments/s2/series", metric="val_acc", max_points=40)
    assert [curve["trial"] for curve in few["curves"]] == list(range(1, 11))
    assert few["left_out"] == list(range(11, 101))
    chosen = server.get("/experiments/s2/series", metric="val_acc", trials="7,9")
    assert [(curve["trial"], len(curve["steps"])) for curve in chosen["curves"]] == [(7, 200), (9, 200)]


def test_values_that_are_no_numbers_are_a_gap(server, filler):
    filler.experiment("s3")
    filler.begin("s3", 1)
    filler.report("s3", 1, [1.0, math.nan, math.inf, 2.0])
    curve = server.get("/experiments/s3/series", metric="val_acc")["curves"][0]
    assert (curve["values"], curve["points"]) == ([1.0, None, 2.0], 4)
    assert server.get("/experiments/s3/series", metric="unknown")["curves"] == []


def test_a_log_is_read_by_byte_offsets(server, filler):
    filler.experiment("g1")
    filler.begin("g1", 1)
    text = "".join(f"epoch {number}: ±{number}\n" for number in range(1000))
    path = filler.file("g1", 1, "stdout", text.encode())
    read = ""
    begin = 0
    while True:
        part = server.get("/experiments/g1/trials/1/log", begin_bytes=begin, most_bytes=1000)
        read += part["text"]
        begin = part["end_bytes"]
        if begin == part["size_bytes"]:
            break
    assert read == text
    with path.open("ab") as file:
        file.write(b"more\n")
    assert server.get("/experiments/g1/trials/1/log", begin_bytes=begin)["text"] == "more\n"
    end = server.get("/experiments/g1/trials/1/log", most_bytes=100)
    assert (text + "more\n").endswith(end["text"])
    assert end["text"].startswith("epoch ")
    assert end["final"] is False


def test_a_whole_log_is_searched_and_read_as_a_file_by_attempt(server, filler):
    filler.experiment("g2", name="long log")
    filler.begin("g2", 1)
    data = b"".join(b"epoch %d\n" % number for number in range(300_000)) + b"\xff the end\n"
    filler.file("g2", 1, "stdout", data)
    found = server.get("/experiments/g2/trials/1/log/matches", text="Epoch 299999")
    assert (found["total"], found["match"], found["left_out"]) == (1, 1, "299899 lines")
    assert found["text"].splitlines()[100] == "epoch 299999"
    answer = server.ask("GET", "/experiments/g2/trials/1/log/file")
    assert answer.content == data
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="long_log-trial-1-stdout.txt"'
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert server.ask("GET", "/experiments/g2/trials/1/log/file", params={"attempt": 2}).content == b""
    (server.home.trial("g2", 1, 1) / "stderr").symlink_to("/etc/passwd")
    for path in ("log", "log/file", "log/matches?text=root"):
        refused = server.ask("GET", f"/experiments/g2/trials/1/{path}", params={"stream": "stderr"})
        assert problem_of(refused)["status"] == 409


def test_pictures_are_listed_and_read(server, filler):
    filler.experiment("p1")
    filler.begin("p1", 1)
    picture = b"\x89PNG\r\n\x1a\n" + b"x" * 100
    filler.file("p1", 1, "outputs/pictures/0001-step-40.png", picture)
    note = [(0.0, PICTURE_LEVEL, "pictures/0001-step-40.png", 1)]
    filler.store.ingest([Ingest("p1", 1, 1, "metrics", 1, notes=note)])
    found = server.get("/experiments/p1/pictures")["pictures"]
    assert found == [{"trial": 1, "attempt": 1, "name": "0001-step-40.png", "step": 40}]
    answer = server.ask("GET", "/experiments/p1/trials/1/attempts/1/pictures/0001-step-40.png")
    assert (answer.content, answer.headers["Content-Type"]) == (picture, "image/png")
    problem_of(server.ask("GET", "/experiments/p1/trials/1/attempts/1/pictures/0002.png"))


def test_what_a_backend_has_to_give_is_asked_only_then(server):
    backends = {row["name"]: row for row in server.get("/backends")["backends"]}
    assert "inventory" not in backends["local"]
    found = server.get("/backends/local/inventory")
    assert found["usable"] is True
    assert found["inventory"]["nodes"][0]["cpus"] > 0
    assert "local" in problem_of(server.ask("GET", "/backends/nowhere/inventory"))["expected"]


def test_an_unknown_experiment_trial_and_path_are_problems(server, filler):
    filler.experiment("u1")
    assert server.ask("GET", "/experiments/nothing").status_code == 404
    assert problem_of(server.ask("GET", "/experiments/u1/trials/7/log"))["status"] == 404
    assert problem_of(server.ask("GET", "/nothing"))["status"] == 404
    refused = server.ask("DELETE", "/backends")
    assert problem_of(refused)["status"] == 405
    assert refused.headers["Allow"] == "GET"
