"""A project's file that was cloned or planted runs nothing, reaches nothing and reveals nothing."""

from __future__ import annotations

import functools
import os
import re
import stat
from pathlib import Path

import pytest
from pydantic import BaseModel

from jupyter_autotrain import backends, header
from jupyter_autotrain.errors import AutotrainError, HeaderError
from jupyter_autotrain.header import config_sources, project_review, project_trust
from jupyter_autotrain.header.value_faults import keys_of
from tests.projects import trust_project

SCHEMA = backends.header_schema()
SECURITY = Path(__file__).parents[3] / "docs" / "explanations" / "security.md"
STRANGER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="another owner of a file can be set by root alone")


@pytest.fixture
def context(tmp_path: Path) -> header.HeaderContext:
    (tmp_path / "home" / "work" / "project").mkdir(parents=True)
    environ = {"HOME": str(tmp_path / "home")}
    return header.HeaderContext(tmp_path / "home" / "work" / "project", environ, backends.type_names(), SCHEMA)


def parsed(context: header.HeaderContext, cell: str = "") -> header.Header:
    return header.parse_cell("", f"{cell}\n---\nx = 1", context).header


def plant(folder: Path, text: str) -> Path:
    path = folder / "autotrain.yaml"
    path.write_text(text)
    return path


def test_every_key_of_a_header_is_free_or_needs_trust() -> None:
    classified = project_trust.FREE_KEYS | project_trust.TRUSTED_KEYS | {*SCHEMA.backend_sections}
    assert set(SCHEMA.model_fields) == classified
    assert not project_trust.FREE_KEYS & project_trust.TRUSTED_KEYS


def test_the_security_page_says_of_every_key_who_may_set_it() -> None:
    rows = SECURITY.read_text().splitlines()
    free = next(row for row in rows if row.startswith("| `name`"))
    assert set(re.findall(r"`(\w+)`", free)) == project_trust.FREE_KEYS
    held = next(row for row in rows if row.startswith("| `backend`"))
    assert {*re.findall(r"`(\w+)`", held), "hooks"} == project_trust.TRUSTED_KEYS


@pytest.mark.parametrize("key", [*sorted(project_trust.TRUSTED_KEYS - {"hooks"}), *SCHEMA.backend_sections])
def test_a_key_that_needs_trust_is_refused_by_name_with_the_command(context: header.HeaderContext, key: str) -> None:
    plant(context.cwd, f"{key}: {{}}\n")
    with pytest.raises(HeaderError) as caught:
        parsed(context)
    assert f"`{key}` of a project's autotrain.yaml that is not trusted yet" in str(caught.value)
    assert "%autotrain backends trust-project" in str(caught.value)


@pytest.mark.parametrize("type_name", backends.type_names())
def test_a_profile_of_any_type_counts_only_after_trust(context: header.HeaderContext, type_name: str) -> None:
    plant(context.cwd, f"backends: {{planted: {{type: {type_name}}}}}\n")
    profile, (fault,) = context.profiles()[0].find("planted")
    assert profile is None
    assert "is not trusted yet" in str(fault)
    trust_project(context.cwd, context.environ)
    _, faults = context.profiles()[0].find("planted")
    assert not [fault for fault in faults if "trusted" in str(fault)]


def test_what_shapes_a_search_counts_at_once(context: header.HeaderContext) -> None:
    plant(context.cwd, "trials: 7\nsearch: {lr: 'uniform(0, 1)'}\n")
    assert parsed(context).trials == 7


def test_a_profile_that_is_not_trusted_hides_none_of_the_users_own(context: header.HeaderContext) -> None:
    own = Path(context.environ["HOME"], ".jupyter", "backends.yaml")
    own.parent.mkdir()
    own.write_text("lab: {type: ssh, hosts: [mine]}\n")
    plant(context.cwd, "backends: {lab: {type: ssh, hosts: [planted]}}\n")
    profile, _ = context.profiles()[0].find("lab")
    assert profile is not None
    assert profile.options["hosts"] == [{"host": "mine"}]


@pytest.mark.parametrize("name", project_trust.BUILT_IN)
def test_a_built_in_place_is_never_defined_anew_by_a_project(context: header.HeaderContext, name: str) -> None:
    plant(context.cwd, f"backends: {{{name}: {{type: ssh, hosts: [planted]}}}}\n")
    trust_project(context.cwd, context.environ)
    profile, _ = context.profiles()[0].find(name)
    assert profile is not None
    assert profile.type == name
    assert f"`{name}` of a project's autotrain.yaml does not count" in str(context.uncounted()[0])


def test_a_changed_file_is_asked_about_again(context: header.HeaderContext) -> None:
    path = plant(context.cwd, "env: {A: '1'}\n")
    trust_project(context.cwd, context.environ)
    assert parsed(context).env == {"A": "1"}
    path.write_text("env: {A: '2'}\n")
    with pytest.raises(HeaderError, match="not trusted yet"):
        parsed(context)


def test_a_changed_file_that_it_names_is_asked_about_again(context: header.HeaderContext) -> None:
    kubeconfig = context.cwd / "kubeconfig"
    kubeconfig.write_text("harmless")
    plant(context.cwd, "backends: {lab: {type: kubernetes, kubeconfig: ./kubeconfig, image: i}}\n")
    trust_project(context.cwd, context.environ)
    assert context.profiles()[0].find("lab")[0] is not None
    kubeconfig.write_text("users: [{user: {exec: {command: planted}}}]")
    assert context.profiles()[0].find("lab")[0] is None


def test_trust_of_one_folder_is_not_trust_of_a_copy(context: header.HeaderContext, tmp_path: Path) -> None:
    plant(context.cwd, "env: {A: '1'}\n")
    trust_project(context.cwd, context.environ)
    other = tmp_path / "home" / "copy"
    other.mkdir()
    plant(other, "env: {A: '1'}\n")
    with pytest.raises(HeaderError, match="not trusted yet"):
        parsed(header.HeaderContext(other, context.environ, backends.type_names(), SCHEMA))


def test_a_variable_names_digests_where_nobody_can_be_asked(context: header.HeaderContext) -> None:
    path = plant(context.cwd, "env: {A: '1'}\n")
    digest = project_trust.digest(path, context.read(path).data)
    environ = {**context.environ, project_trust.VARIABLE: f"0123, {digest}"}
    assert parsed(header.HeaderContext(context.cwd, environ, backends.type_names(), SCHEMA)).env == {"A": "1"}


def test_the_record_is_the_users_alone(context: header.HeaderContext) -> None:
    plant(context.cwd, "env: {A: '1'}\n")
    trust_project(context.cwd, context.environ)
    record = Path(context.environ["HOME"], ".jupyter", project_trust.RECORD_FILE)
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    record.chmod(0o666)
    with pytest.raises(HeaderError, match="not trusted yet"):
        parsed(context)


@as_root
def test_a_strangers_file_in_a_sticky_parent_changes_nothing(context: header.HeaderContext, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    (scratch / "mine").mkdir(parents=True)
    scratch.chmod(0o1777)
    planted = "env: {PLANTED: '1'}\nsecrets: [MY_TOKEN]\nbackends: {local: {type: ssh, hosts: [evil]}}\ntrials: 99\n"
    os.chown(plant(scratch, planted), STRANGER, STRANGER)
    there = header.HeaderContext(scratch / "mine", context.environ, backends.type_names(), SCHEMA)
    found = parsed(there)
    assert (found.env, found.secrets, found.trials) == (parsed(context).env, parsed(context).secrets, None)
    assert [choice.profile.type for choice in found.choices] == ["local"]
    assert "does not count" in str(there.uncounted()[0])


@as_root
def test_a_file_in_a_folder_of_another_user_does_not_count(context: header.HeaderContext) -> None:
    plant(context.cwd, "trials: 7\n")
    os.chown(context.cwd, STRANGER, STRANGER)
    assert context.project_file() is None


@pytest.mark.parametrize("target", ["file", "folder", "parent"])
def test_a_file_that_others_can_write_does_not_count(context: header.HeaderContext, target: str) -> None:
    path = plant(context.cwd, "trials: 7\n")
    assert parsed(context).trials == 7
    opened = {"file": path, "folder": context.cwd, "parent": context.cwd.parent}[target]
    opened.chmod(opened.stat().st_mode | stat.S_IWOTH)
    assert parsed(context).trials is None
    ((found, why),) = context.unsafe_project_files()
    assert (found, "can be written by everybody" in why) == (path, True)


@as_root
def test_a_link_to_a_file_of_another_user_does_not_count(context: header.HeaderContext, tmp_path: Path) -> None:
    target = tmp_path / "theirs.yaml"
    target.write_text("trials: 7\n")
    os.chown(target, STRANGER, STRANGER)
    (context.cwd / "autotrain.yaml").symlink_to(target)
    assert context.project_file() is None


def test_the_search_ends_at_the_home_folder(context: header.HeaderContext, tmp_path: Path) -> None:
    plant(tmp_path, "trials: 7\n")
    assert context.project_file() is None
    plant(tmp_path / "home", "trials: 8\n")
    assert parsed(context).trials == 8


def test_the_search_ends_at_the_border_of_the_file_system(
    context: header.HeaderContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(context.cwd.parent, "trials: 7\n")
    assert parsed(context).trials == 7
    monkeypatch.setattr(config_sources, "_device", lambda folder: int(folder.is_relative_to(context.cwd)))
    assert parsed(context).trials is None


@pytest.mark.parametrize(
    "settings",
    [
        "ship: ['d/etc']", "ship: ['d/etc/hostname']", "ship: ['d/etc/*.conf']", "ship: ['../../secret']",
        "ship: ['/etc/hostname']", "ship: {files: d/etc}", "ship: far", "ship: [1]", "ship: 1", "ship: {files: [true]}",
        "ship: ['./d/../far']", "ship: ['loop']", "data: {x: ./far}", "data: {x: {send: far}}", "data: {x: d/etc}",
        "data: {x: 1}", "data: {x: ../../secret}", "environment: {requirements: far}", "environment: {requirements: 1}",
    ],
)  # fmt: skip
def test_what_a_project_names_lies_inside_when_links_are_followed(context: header.HeaderContext, settings: str) -> None:
    (context.cwd / "d").mkdir()
    (context.cwd / "d" / "etc").symlink_to("/etc")
    for name in ("1", "true", "nearer"):
        (context.cwd / name).symlink_to("/etc/hostname")
    (context.cwd / "far").symlink_to("nearer")  # a link to a link
    (context.cwd / "loop").symlink_to("loop")
    (context.cwd.parent.parent / "secret").touch()
    plant(context.cwd, f"{settings}\n")
    trust_project(context.cwd, context.environ)
    with pytest.raises(HeaderError, match="leads out of the project"):
        parsed(context)


@pytest.mark.parametrize(
    "settings", ["ship: ['d/*.py', '!d/etc']", "data: {x: ./inner}", "data: {x: /etc/hostname}", "ship: inner"]
)
def test_what_stays_inside_or_says_itself_where_it_lies_counts(context: header.HeaderContext, settings: str) -> None:
    (context.cwd / "d").mkdir()
    (context.cwd / "d" / "file").touch()
    (context.cwd / "inner").symlink_to("d/file")
    plant(context.cwd, f"{settings}\n")
    trust_project(context.cwd, context.environ)
    parsed(context)


def test_a_file_with_a_number_for_a_name_is_a_part_of_what_was_agreed_to(context: header.HeaderContext) -> None:
    (context.cwd / "1").write_text("harmless")
    plant(context.cwd, "backends: {lab: {type: ssh, hosts: [h], config_file: 1}}\n")
    trust_project(context.cwd, context.environ)
    (context.cwd / "1").write_text("planted!")
    assert context.profiles()[0].find("lab")[0] is None


# Options of the keys that count at once; one that is new has to be looked at before it is added here.
FREE_OPTIONS = {
    "early_stop": {"rule", "warmup_steps", "min_trials", "lower", "upper", "patience", "min_delta", "options"},
    "resources": {"cpus", "memory", "gpus", "gpu_memory", "adjacent", "nodes", "workers_per_node"},
    "budget": {"time", "failures"},
}


def test_every_option_below_a_free_key_is_classified_too() -> None:
    found = {key: set(keys_of((key,), SCHEMA)) for key in project_trust.FREE_KEYS}
    assert {key: options for key, options in found.items() if options} == FREE_OPTIONS
    for key, options in FREE_OPTIONS.items():
        assert not [option for option in options if keys_of((key, option), SCHEMA)]


def options_of(model: type[BaseModel], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every option of a model, those of the models inside it too."""
    found = []
    for key in keys_of(path, model):
        found += [(*path, key), *options_of(model, (*path, key))]
    return found


@pytest.mark.parametrize("type_name", backends.type_names())
def test_no_option_of_a_place_counts_before_trust_by_any_way_to_write_it(
    context: header.HeaderContext, type_name: str
) -> None:
    options = options_of(backends.options_model(type_name))
    for path in options:
        written = functools.reduce(lambda inner, key: f"{{{key}: {inner}}}", reversed(path), "1")
        for text in (f"backends: {{planted: {{type: {type_name}, {written[1:]}}}", f"{type_name}: {written}"):
            plant(context.cwd, f"{text}\n")
            with pytest.raises(HeaderError, match=r"not trusted yet|unknown key 'ssh'"):  # it has no section
                parsed(context, "backend: planted")


def test_a_script_that_a_named_file_names_is_a_part_of_what_was_agreed_to(context: header.HeaderContext) -> None:
    script = context.cwd / "bin" / "plugin.sh"
    script.parent.mkdir()
    script.write_text("harmless")
    (context.cwd / "conf").mkdir()
    (context.cwd / "conf" / "kubeconfig").write_text('users: [{user: {exec: {command: "../bin/plugin.sh"}}}]')
    plant(context.cwd, "backends: {lab: {type: kubernetes, kubeconfig: conf/kubeconfig, image: i}}\n")
    trust_project(context.cwd, context.environ)
    assert context.profiles()[0].find("lab")[0] is not None
    script.write_text("planted!")
    assert context.profiles()[0].find("lab")[0] is None


def test_a_long_file_that_it_names_is_a_part_too(context: header.HeaderContext) -> None:
    interpreter = context.cwd / "python"
    interpreter.write_bytes(b"x" * 3_000_000)
    plant(context.cwd, "environment: {python: ./python}\n")
    trust_project(context.cwd, context.environ)
    assert parsed(context).environment.python
    interpreter.write_bytes(b"y" + b"x" * 2_999_999)
    with pytest.raises(HeaderError, match="not trusted yet"):
        parsed(context)


def test_a_link_to_another_trusted_file_brings_no_trust_for_what_lies_beside_it(
    context: header.HeaderContext, tmp_path: Path
) -> None:
    other = tmp_path / "home" / "other"
    other.mkdir()
    (other / "kubeconfig").write_text("mine")
    plant(other, "backends: {lab: {type: kubernetes, kubeconfig: ./kubeconfig, image: i}}\n")
    trust_project(other, context.environ)
    (context.cwd / "kubeconfig").write_text("planted")
    (context.cwd / "autotrain.yaml").symlink_to(other / "autotrain.yaml")
    assert context.profiles()[0].find("lab")[0] is None


def test_what_is_no_small_regular_file_is_not_read(context: header.HeaderContext) -> None:
    path = context.cwd / "autotrain.yaml"
    os.mkfifo(path)
    assert context.project_file() is None
    path.unlink()
    with path.open("wb") as file:
        file.write(b"env: {A: '1'}\n")
        file.truncate(50 << 30)  # sparse: nobody has the time to read it
    with pytest.raises(HeaderError):
        parsed(context)
    with pytest.raises(AutotrainError, match="more than 65536 bytes"):
        project_review.review(context)
    path.unlink()
    os.mkfifo(context.cwd / "pipe")
    plant(context.cwd, "env: {A: ./pipe}\n")
    trust_project(context.cwd, context.environ)
    assert parsed(context).env == {"A": "./pipe"}


def test_a_file_that_names_very_many_others_is_not_trusted(context: header.HeaderContext) -> None:
    for number in range(300):
        (context.cwd / f"f{number}").touch()
    plant(context.cwd, f"pass_env: [{', '.join(f'f{number}' for number in range(300))}]\n")
    with pytest.raises(AutotrainError, match="more than 200 files"):
        project_review.review(context)
    with pytest.raises(HeaderError, match="not trusted yet"):
        parsed(context)


@pytest.mark.parametrize(
    "text",
    ["base: &a {A: '1'}\nenv: *a\n", "env: {<<: {A: '1'}}\n", "<<: {env: {A: '1'}}\n", 'env: {A: "\\ud800"}\n',
     "Env: {A: '1'}\n", "ENV: {A: '1'}\n", "env : {A: '1'}\n", "? env\n: {A: '1'}\n", '"e\\u006ev": {A: "1"}\n',
     "trainingService: {platform: planted}\n", "env: {A: '1'}\nenv: {A: '2'}\n", "!!map {env: {A: '1'}}\n"],
)  # fmt: skip
def test_no_other_spelling_of_a_key_gets_through(context: header.HeaderContext, text: str) -> None:
    plant(context.cwd, text)
    with pytest.raises(HeaderError):
        parsed(context)


@pytest.mark.parametrize("name", ["Local", "LOCAL", "local ", "l\u03bfcal", "debug.", "ssh", "kubernetes"])
def test_a_place_that_looks_like_a_built_in_one_does_not_take_its_place(
    context: header.HeaderContext, name: str
) -> None:
    plant(context.cwd, f"backends: {{'{name}': {{type: ssh, hosts: [planted]}}}}\n")
    assert [choice.profile.type for choice in parsed(context).choices] == ["local"]
    assert parsed(context, "backend: local").choices[0].profile.type == "local"
    assert context.profiles()[0].find(name)[0] is None


def test_the_nearest_file_counts_and_a_worktree_ends_the_search(context: header.HeaderContext) -> None:
    plant(context.cwd.parent, "trials: 7\n")
    assert parsed(context).trials == 7
    plant(context.cwd, "trials: 8\n")
    assert parsed(context).trials == 8
    (context.cwd / "autotrain.yaml").unlink()
    (context.cwd / ".git").write_text("gitdir: ../repository/.git/worktrees/project\n")
    assert parsed(context).trials is None


def test_what_it_would_do_is_shown_with_what_is_not_seen_spelled_out(context: header.HeaderContext) -> None:
    plant(context.cwd, "env: {A: 'safe\u202e evil \u200b'}\nbackends: {'p\u2066': {type: ssh, hosts: [h]}}\n")
    text = "\n".join(project_review.review(context).effects)
    assert "safe\\u202e evil \\u200b" in text
    assert "place p\\u2066" in text
