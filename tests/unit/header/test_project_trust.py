"""A project's file that was cloned or planted runs nothing, reaches nothing and reveals nothing."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from jupyter_autotrain import backends, header
from jupyter_autotrain.errors import HeaderError
from jupyter_autotrain.header import project_trust
from tests.projects import trust_project

SCHEMA = backends.header_schema()
SECURITY = Path(__file__).parents[3] / "docs" / "security.md"
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


@pytest.mark.parametrize("pattern", ["d/etc", "d/etc/hostname", "d/etc/*.conf", "../../secret", "/etc/hostname"])
def test_what_a_project_ships_lies_inside_when_links_are_followed(context: header.HeaderContext, pattern: str) -> None:
    (context.cwd / "d").mkdir()
    (context.cwd / "d" / "etc").symlink_to("/etc")
    plant(context.cwd, f"ship: ['{pattern}']\n")
    trust_project(context.cwd, context.environ)
    with pytest.raises(HeaderError, match="leads out of the project"):
        parsed(context)
    plant(context.cwd, "ship: ['d/*.py', '!d/etc']\n")
    trust_project(context.cwd, context.environ)
    assert tuple(parsed(context).ship.files) == ("d/*.py", "!d/etc")
