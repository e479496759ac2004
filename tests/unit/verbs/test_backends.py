"""`%autotrain backends`: the list, and adding, editing and removing profiles of the user's file."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from jupyter_autotrain.backends.slurm.backend import SlurmBackend
from jupyter_autotrain.backends.ssh import agent_connection
from jupyter_autotrain.backends.ssh.backend import SshBackend
from jupyter_autotrain.core.backend import Probe
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.errors import AutotrainError, HeaderError
from jupyter_autotrain.header import profile_editing
from jupyter_autotrain.verbs import complete_verb
from tests.projects import trust_project

WRITTEN = """\
# our machines

lab:        # the two boxes in the lab
    type: ssh
    hosts:
    - gpu1      # fast
    - gpu2
    user: 'ada'

# borrowed
other: {type: ssh, hosts: [c1]}
"""


@pytest.fixture
def file(terminal) -> Path:
    path = terminal.cwd / ".jupyter" / "backends.yaml"
    path.parent.mkdir()
    path.write_text(WRITTEN)
    return path


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SshBackend, "probe", lambda _: Probe(True, "Hosts that answer: all."))
    monkeypatch.setattr(SshBackend, "discover", lambda _: Inventory(()))


@pytest.mark.usefixtures("answering")
def test_all_backends_are_listed_with_type_hosts_state_and_origin(terminal, file: Path) -> None:
    rows = {row["name"]: row for row in terminal.json("backends")}
    assert {"debug", "lab", "local", "other"} <= set(rows)
    assert "ssh" not in rows
    assert rows["lab"]["type"] == "ssh"
    assert rows["lab"]["hosts"] == ["gpu1", "gpu2"]
    assert rows["lab"]["usable"]
    assert rows["lab"]["origin"] == "~/.jupyter/backends.yaml line 3"
    assert rows["local"]["origin"] == ""
    assert "usable" in terminal.run("backends")


def test_the_list_names_the_login_node_of_a_cluster(terminal, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SlurmBackend, "probe", lambda _: Probe(True, "A cluster."))
    file.write_text("cluster: {type: slurm, via: login1}\n")
    rows = {row["name"]: row["hosts"] for row in terminal.json("backends")}
    assert (rows["cluster"], rows["local"]) == (["login1"], [])


@pytest.mark.usefixtures("answering")
def test_the_list_says_how_many_trials_run_where(terminal, add, file: Path) -> None:
    add("digits", (["PREPARING", "RUNNING"], None), (["PREPARING"], None), backend="lab", closed=False)
    rows = {row["name"]: row["running"] for row in terminal.json("backends")}
    assert (rows["lab"], rows["local"]) == (2, 0)


def test_a_faulty_profile_is_in_the_list_with_what_is_wrong(terminal, file: Path) -> None:
    file.write_text("lab: {type: ssh, hostz: [a]}\n")
    (row,) = [row for row in terminal.json("backends") if row["name"] == "lab"]
    assert not row["usable"]
    assert "unknown key 'hostz' in lab; did you mean 'hosts'?" in row["reason"]


def test_a_missing_package_is_told_with_its_pip_line(terminal, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_connection, "find_spec", lambda _: None)
    (row,) = [row for row in terminal.json("backends") if row["name"] == "other"]
    assert row["reason"].endswith("Install it with: pip install 'jupyter-autotrain[ssh]'")
    assert "Install it with: pip install 'jupyter-autotrain[ssh]'" in terminal.run("backends", "check", "other")
    with pytest.raises(AutotrainError, match="Install it with"):
        terminal.run("backends", "trust", "other", "c1")


def test_a_profile_is_added_at_the_end_and_the_rest_stays_as_written(terminal, file: Path) -> None:
    said = terminal.run("backends", "add", "box", "--type", "ssh", "gpu7", "ada@gpu8:2222", "--set", "port=22")
    assert "backends check box" in said
    assert file.read_text() == f"{WRITTEN}box:\n  type: ssh\n  hosts: [gpu7, ada@gpu8:2222]\n  port: 22\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not list(file.parent.glob("*.draft"))


def test_options_are_words_with_an_equals_sign(terminal, file: Path) -> None:
    terminal.run("backends", "add", "box", "--type", "ssh", "gpu7", "port=22", "user=ada")
    assert file.read_text() == f"{WRITTEN}box:\n  type: ssh\n  hosts: [gpu7]\n  port: 22\n  user: ada\n"


def test_the_host_of_a_slurm_profile_is_its_login_node(terminal, file: Path) -> None:
    terminal.run("backends", "add", "cluster", "--type", "slurm", "ada@login1:2222", "partition=gpu")
    assert file.read_text().endswith("cluster:\n  type: slurm\n  via: ada@login1:2222\n  partition: gpu\n")
    terminal.run("backends", "edit", "cluster", "login2")
    assert file.read_text().endswith("cluster:\n  type: slurm\n  via: login2\n  partition: gpu\n")


def test_the_first_profile_makes_the_file(terminal) -> None:
    terminal.run("backends", "add", "lab", "--type", "ssh", "gpu1")
    file = terminal.cwd / ".jupyter" / "backends.yaml"
    assert file.read_text() == "# Backends by name. See: %autotrain help backend\nlab:\n  type: ssh\n  hosts: [gpu1]\n"
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_file_that_is_a_link_stays_one(terminal, file: Path) -> None:
    kept = terminal.cwd / "dotfiles.yaml"
    file.rename(kept)
    file.symlink_to(kept)
    terminal.run("backends", "remove", "lab")
    assert file.is_symlink()
    assert "lab" not in kept.read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("lab", "--type", "ssh", "a"), "There is a profile 'lab' already"),
        (("new",), "The profile 'new' has no type"),
        (("new", "--type", "shh", "a"), "did you mean 'ssh'"),
        (("new", "--type", "ssh"), "new.hosts: is missing"),
        (("new", "--type", "ssh", "a", "--set", "prot=1"), "did you mean 'port'"),
        (("new", "--type", "ssh", "a", "prot=1"), "did you mean 'port'"),
        (("new", "--type", "ssh", "a", "--set", "port"), "'port' cannot be read"),
        (("new", "--type", "ssh", "a", "--set", "password=hunter22"), "looks like a secret"),
        (("a b", "--type", "ssh", "a"), "the profile 'a b'"),
        (("new", "--type", "slurm", "login1", "login2"), "Name one, as in `via=login1`"),
        (
            ("new", "--type", "kubernetes", "prod"),
            "'prod' was given.\nOptions as KEY=VALUE: kubeconfig, context",
        ),
        (
            ("new", "--type", "local", "gpu1"),
            "Options as KEY=VALUE: reuse, reuse_idle",
        ),
        (("new", "--type", "debug", "gpu1"), "it has none"),
        (("new", "--type", "slurm", "--via", "login1"), "An option of a profile is KEY=VALUE, as in port=2222"),
        ((), "a name is missing"),
    ],
)
def test_what_cannot_be_added_is_told_and_nothing_is_written(terminal, file: Path, words: tuple, told: str) -> None:
    with pytest.raises(AutotrainError, match=told):
        terminal.run("backends", "add", *words)
    assert file.read_text() == WRITTEN


def test_an_edit_changes_its_profile_and_keeps_comments(terminal, file: Path) -> None:
    terminal.run("backends", "edit", "lab", "--set", "port=2222", "--unset", "user")
    text = file.read_text()
    assert "# fast" in text
    assert "# the two boxes in the lab" in text
    assert "port: 2222" in text
    assert "ada" not in text
    assert text.endswith("# borrowed\nother: {type: ssh, hosts: [c1]}\n")
    assert terminal.run("backends", "edit", "other").endswith("other: {type: ssh, hosts: [c1]}\n")
    with pytest.raises(HeaderError, match="expected at least 1"):
        terminal.run("backends", "edit", "other", "--set", "port=0")


def test_a_profile_is_removed_with_its_lines_alone(terminal, file: Path) -> None:
    terminal.run("backends", "remove", "lab")
    assert file.read_text() == "# our machines\n\n\n# borrowed\nother: {type: ssh, hosts: [c1]}\n"
    with pytest.raises(HeaderError, match="unknown backend 'lab'"):
        terminal.run("backends", "remove", "lab")


def test_a_profile_that_others_share_is_not_changed(terminal, file: Path) -> None:
    (terminal.cwd / "autotrain.yaml").write_text("backends: {team: {type: ssh, hosts: [t1]}}\n")
    with pytest.raises(AutotrainError, match="is in a file shared with others"):
        terminal.run("backends", "edit", "team", "--set", "port=1")
    with pytest.raises(AutotrainError, match="is a type of backend"):
        terminal.run("backends", "remove", "local")


def test_config_says_which_definition_counts(terminal, file: Path) -> None:
    (terminal.cwd / "autotrain.yaml").write_text("backends: {lab: {type: ssh, hosts: [t1]}, local: {type: local}}\n")
    trust_project(terminal.cwd, {"HOME": str(terminal.cwd)})
    said = terminal.run("config").splitlines()
    assert "backend lab: ssh (autotrain.yaml line 1; overrides ~/.jupyter/backends.yaml line 3)" in said
    assert "backend other: ssh (~/.jupyter/backends.yaml line 11)" in said
    assert not [line for line in said if line.startswith("backend local")]
    assert "`local` of a project's autotrain.yaml does not count" in terminal.run("backends")
    assert terminal.json("config")["backends"][0]["name"] == "lab"
    assert terminal.run("config", "--explain", "backend").splitlines()[0] == "backend = local (default)"


def test_a_broken_file_of_the_project_is_told_and_keeps_nobody_from_a_profile_of_ones_own(terminal, file: Path) -> None:
    (terminal.cwd / "autotrain.yaml").write_text("backends:\n  team: {type: ssh, hosts: [t1}\n")
    assert "autotrain.yaml line 2: 'team: {type: ssh" in terminal.run("config")
    with pytest.raises(HeaderError, match=r"autotrain\.yaml line 2: 'team: {type: ssh"):
        terminal.run("backends", "check", "team")
    terminal.run("backends", "add", "mine", "--type", "ssh", "m1")
    assert "mine:" in file.read_text()


@pytest.mark.usefixtures("answering")
def test_doctor_checks_the_profiles_and_no_type_that_needs_options(terminal, file: Path) -> None:
    file.write_text(WRITTEN + "bad: {type: ssh}\n")
    found = {row["name"]: row for row in terminal.json("doctor")}
    assert found["backend bad"]["text"].endswith(
        "bad.hosts: is missing; expected a value; as in `hosts: [gpu1, {host: gpu2, port: 2222}]`"
    )
    assert found["backend lab"]["text"].startswith("Hosts that answer: all")
    assert "backend ssh" not in found


def test_a_type_that_this_machine_lacks_is_a_fault_only_where_a_file_defines_it(
    terminal, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SlurmBackend, "probe", lambda _: Probe(False, "There is no squeue."))
    monkeypatch.setattr(SshBackend, "probe", lambda _: Probe(False, "No host answers."))
    file.write_text("lab: {type: ssh, hosts: [gpu1]}\n")
    found = {row["name"]: row for row in terminal.json("doctor")}
    assert (found["backend slurm"]["good"], found["backend slurm"]["text"]) == (
        True,
        "not set up: There is no squeue",
    )
    assert "n/a   backend slurm: not set up: There is no squeue\n" in terminal.run("doctor")
    assert not found["backend lab"]["good"]
    file.write_text("slurm: {type: slurm, partition: gpu}\n")
    found = {row["name"]: row for row in terminal.json("doctor")}
    assert not found["backend slurm"]["good"]


def test_doctor_asks_all_backends_at_the_same_time(terminal, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=60)

    def probe(_: SshBackend) -> Probe:
        both.wait()
        return Probe(False, "No host answers.")

    monkeypatch.setattr(SshBackend, "probe", probe)
    file.write_text("lab: {type: ssh, hosts: [gpu1]}\nattic: {type: ssh, hosts: [gpu2]}\n")
    found = {row["name"]: row["text"] for row in terminal.json("doctor")}
    assert found["backend lab"] == found["backend attic"] == "No host answers"


def test_actions_and_names_are_completed() -> None:
    def found(text: str) -> dict[str, str]:
        return complete_verb(text, lambda: ["digits"], lambda: {"lab": "backends.yaml line 1", "local": "type"})

    assert [*found("%autotrain backends ch")] == ["check"]
    assert found("%autotrain backends check l") == {"lab": "backends.yaml line 1", "local": "type"}
    assert found("%autotrain wh") == {"why": "why an experiment waits or failed"}
    assert found("%autotrain show d") == {"digits": "experiment"}
    assert "--type" in found("%autotrain backends add lab --")


def test_a_file_written_in_braces_is_left_to_its_author() -> None:
    with pytest.raises(AutotrainError, match="by hand"):
        profile_editing.removed("{lab: {type: ssh, hosts: [a]}}\n", "lab")


def test_a_check_says_each_step_and_the_whole(terminal) -> None:
    said = terminal.run("backends", "check", "debug").splitlines()
    assert [line.split()[1] for line in said[:-1]] == ["probe", "discover", "tiny", "metric", "clean"]
    assert all(line.startswith("ok ") for line in said[:-1])
    assert said[-1] == "debug works: a trial ran on 1 node, and its metric came back."
    assert terminal.run("check", "debug").splitlines()[-1] == said[-1]
    assert terminal.json("backends", "check", "debug")[0]["name"] == "probe"


def test_a_check_of_an_unknown_backend_names_the_nearest(terminal) -> None:
    with pytest.raises(HeaderError, match="did you mean 'debug'"):
        terminal.run("backends", "check", "debgu")
    with pytest.raises(AutotrainError, match="Expected: %autotrain backends check"):
        terminal.run("backends", "check")


def test_a_backend_without_host_keys_cannot_be_trusted(terminal) -> None:
    with pytest.raises(AutotrainError, match="has no host keys"):
        terminal.run("backends", "trust", "local", "gpu1")
