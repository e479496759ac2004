"""Tests of what `backend:` may say, where profiles come from, and what is said of faulty ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_autotrain import backends, header
from jupyter_autotrain.agent.json import from_json, to_json
from jupyter_autotrain.core.profile import BackendChoice, Price
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Resources
from jupyter_autotrain.errors import HeaderError
from tests.projects import trust_project

SCHEMA = backends.header_schema()
TYPES = ("debug", "local", "ssh")


class Places:
    """A user's folder and a project's, with the files of both."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "home" / ".jupyter" / "backends.yaml"
        self.project = folder / "project" / "autotrain.yaml"
        self.cwd = folder / "project" / "notebooks"
        self.user.parent.mkdir(parents=True)
        self.cwd.mkdir(parents=True)
        self.context = header.HeaderContext(self.cwd, {"HOME": str(folder / "home")}, TYPES, SCHEMA)

    def trusted(self, text: str) -> None:
        """Write the project's file, and agree to it."""
        self.project.write_text(text)
        trust_project(self.cwd, self.context.environ)

    def choices(self, cell: str, line: str = "") -> tuple[BackendChoice, ...]:
        parsed = header.parse_cell(line, f"{cell}\n---\nx = 1", self.context).header
        return parsed.to_spec(bundle=Bundle(), name="x").backends

    def faults(self, cell: str) -> list[str]:
        with pytest.raises(HeaderError) as caught:
            self.choices(cell)
        return list(caught.value.faults)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def test_a_profile_of_the_users_file_is_found_by_its_name(places: Places) -> None:
    places.user.write_text("# my machines\nlab:\n  type: ssh\n  hosts: [gpu1, {host: gpu2, port: 2222}]\n")
    (choice,) = places.choices("backend: lab")
    assert (choice.profile.name, choice.profile.type) == ("lab", "ssh")
    assert choice.profile.options == {"hosts": [{"host": "gpu1"}, {"host": "gpu2", "port": 2222}]}


def test_a_price_of_a_profile_is_no_option_of_its_backend(places: Places) -> None:
    places.user.write_text("lab: {type: ssh, hosts: [gpu1], price: {cpu_hour: 0.5, gpu_hour: 2, currency: USD}}\n")
    (choice,) = places.choices("backend: lab")
    assert choice.profile.options == {"hosts": [{"host": "gpu1"}]}
    assert choice.profile.price == Price(0.5, 2.0, "USD")
    spec = ExperimentSpec("x", Bundle(), backends=(choice,), resources=Resources(cpus=4, gpus=1))
    assert from_json(ExperimentSpec, to_json(spec)).hour_price == (4.0, "USD")
    places.user.write_text("lab: {type: ssh, hosts: [gpu1], price: {gpu_hour: -2}}\n")
    assert "gpu_hour" in places.faults("backend: lab")[0]


def test_a_project_file_above_the_notebook_defines_profiles_and_defaults(places: Places) -> None:
    places.trusted("concurrency: 3\nbackend: lab\nbackends:\n  lab: {type: ssh, hosts: [gpu1]}\n")
    parsed = header.parse_cell("", "x = 1", places.context).header
    assert parsed.concurrency == 3
    assert [choice.profile.name for choice in parsed.choices] == ["lab"]


def test_the_nearer_definition_wins_and_a_type_is_taken_by_its_name_last(places: Places) -> None:
    places.user.write_text("lab: {type: ssh, hosts: [mine]}\nlocal: {type: local, max_trials_per_gpu: 2}\n")
    assert places.choices("backend: lab")[0].profile.options == {"hosts": [{"host": "mine"}]}
    places.trusted("backends: {lab: {type: ssh, hosts: [ours]}}\n")
    assert places.choices("backend: lab")[0].profile.options == {"hosts": [{"host": "ours"}]}
    assert places.choices("backend: {type: ssh, name: lab, hosts: [this]}")[0].profile.options == {
        "hosts": [{"host": "this"}]
    }
    assert places.choices("")[0].profile.options == {"max_trials_per_gpu": 2}
    assert places.choices("backend: debug")[0].profile.options == {}


def test_the_search_for_the_project_file_ends_at_the_root_of_the_repository(places: Places) -> None:
    places.project.write_text("retries: 3\n")
    assert header.parse_cell("", "x = 1", places.context).header.retries == 3
    (places.cwd / ".git").mkdir()
    assert header.parse_cell("", "x = 1", places.context).header.retries == 0


def test_a_list_names_several_with_limits_and_weights(places: Places) -> None:
    places.user.write_text("cluster: {type: ssh, hosts: [c1]}\n")
    cell = "backend:\n- local\n- {type: ssh, hosts: [gpu1]}\n- {name: cluster, at_most: 8, prefer: 2}"
    found = [(one.profile.name, one.profile.type, one.at_most, one.prefer) for one in places.choices(cell)]
    assert found == [("local", "local", None, 1.0), ("ssh", "ssh", None, 1.0), ("cluster", "ssh", 8, 2.0)]
    (inline,) = places.choices("backend: {type: ssh, hosts: [gpu1], at_most: 4, prefer: 0.5}")
    assert (inline.at_most, inline.prefer, inline.profile.options) == (4, 0.5, {"hosts": [{"host": "gpu1"}]})


def test_names_with_commas_are_a_list_also_on_the_magic_line(places: Places) -> None:
    assert [one.profile.name for one in places.choices("", "--backend local,debug")] == ["local", "debug"]
    assert [one.profile.name for one in places.choices("backend: local, debug")] == ["local", "debug"]


def test_options_of_a_section_reach_each_backend_of_its_type(places: Places) -> None:
    places.user.write_text("other: {type: local}\n")
    first, second, third = places.choices("backend: [local, other, debug]\nlocal: {use_active_gpu: true}")
    assert (first.options, second.options, third.options) == ({"use_active_gpu": True}, {"use_active_gpu": True}, {})


def test_a_relative_path_is_relative_to_the_file_it_stands_in(places: Places) -> None:
    places.user.write_text("mine: {type: ssh, hosts: [{host: gpu1, key_file: keys/lab}], key_file: ~/.ssh/id}\n")
    places.trusted("backends: {ours: {type: ssh, hosts: [gpu1], config_file: ./ssh_config}}\n")
    (mine,) = places.choices("backend: mine")
    assert mine.profile.options["hosts"] == [{"host": "gpu1", "key_file": str(places.user.parent / "keys" / "lab")}]
    assert mine.profile.options["key_file"] == "~/.ssh/id"
    (ours,) = places.choices("backend: ours")
    assert ours.profile.options["config_file"] == str(places.project.parent / "ssh_config")
    (inline,) = places.choices("backend: {type: ssh, hosts: [gpu1], key_file: id_lab}")
    assert inline.profile.options["key_file"] == str(places.cwd / "id_lab")


def test_all_faults_of_a_profile_are_told_at_once_with_file_and_line(places: Places) -> None:
    text = "lab:\n  type: ssh\n  hostz: [a]\n  port: 0\n  hosts:\n  - gpu1\n  - host: gpu2\n    usr: ada\n"
    places.user.write_text(text)
    assert places.faults("trials: x\nbackend: lab") == [
        "line 2: trials: 'x'; expected an integer",
        "~/.jupyter/backends.yaml line 3: unknown key 'hostz' in lab; did you mean 'hosts'?",
        "~/.jupyter/backends.yaml line 4: lab.port: 0; expected at least 1; as in `port: 2222`",
        "~/.jupyter/backends.yaml line 8: unknown key 'usr' in lab.hosts.1; did you mean 'user'?",
    ]


def test_a_faulty_profile_that_is_not_used_is_no_fault(places: Places) -> None:
    places.user.write_text("lab: {type: ssh, hosts: []}\n")
    assert places.choices("backend: local")[0].profile.name == "local"
    assert "lab.hosts: []; expected a list with more in it; as in `hosts: [" in places.faults("backend: lab")[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("lab:\n\ttype: ssh\n", "line 2: a tab before 'type: ssh'; expected spaces; indent it with spaces"),
        ("lab: {type: ssh\n", "~/.jupyter/backends.yaml line"),
        ("lab: {type: ssh, hosts: [a]}\nlab: {type: ssh, hosts: [b]}\n", "line 2: 'lab' is given twice"),
    ],
)
def test_a_file_that_is_no_yaml_is_told_with_its_line(places: Places, text: str, told: str) -> None:
    places.user.write_text(text)
    assert told in "\n".join(places.faults("backend: lab"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "backends:\n  lab: {type: ssh, hosts: [a}\n",
            "autotrain.yaml line 2: 'lab: {type: ssh, hosts: [a}' is not YAML",
        ),
        ("backends: [lab]\n", "autotrain.yaml line 1: backends: ['lab']; expected profiles by name"),
    ],
)
def test_what_is_wrong_with_the_projects_file_is_told_without_a_cell_too(places: Places, text: str, told: str) -> None:
    places.project.write_text(text)
    (fault,) = places.context.profiles()[1]
    assert told in str(fault)
    assert "\n".join(places.faults("backend: lab")).count(told) == 1


def test_a_file_that_cannot_be_read_is_told_by_its_path(places: Places) -> None:
    places.user.write_bytes(b"lab: \xff")
    (fault,) = places.context.profiles()[1]
    assert str(fault).startswith("~/.jupyter/backends.yaml cannot be read: not UTF-8 text")


@pytest.mark.parametrize(
    ("definition", "told"),
    [
        ("lab: [gpu1]", "line 1: the profile lab: ['gpu1']; expected a mapping such as {type: ssh, hosts: [gpu1]}"),
        ("lab: {hosts: [gpu1]}", "line 1: lab has no type; expected `type:` with one of debug, local, ssh; add it"),
        ("lab: {type: shh, hosts: [gpu1]}", "line 1: lab: unknown type 'shh'; did you mean 'ssh'?"),
        ("lab: {type: ssh}", "line 1: lab.hosts: is missing; expected a value; as in `hosts: ["),
    ],
)
def test_a_definition_without_its_parts_is_told(places: Places, definition: str, told: str) -> None:
    places.user.write_text(definition)
    (fault,) = places.faults("backend: lab")
    assert fault.startswith(f"~/.jupyter/backends.yaml {told}")


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("backend: lba", "line 2: unknown backend 'lba'; did you mean 'lab'?"),
        ("backend: moonbase", "line 2: unknown backend 'moonbase'; expected one of debug, lab, local"),
        ("backend: []", "line 2: backend: []; expected a name, a mapping such as"),
        ("backend: [[local]]", "line 2: backend: ['local']; expected a name"),
        ("backend: {hosts: [gpu1]}", "line 2: backend without a type and without a name; expected `type:` with one of"),
        ("backend: {type: ssh, hosts: [g], at_mots: 3}", "line 2: unknown key 'at_mots' in backend; did you mean"),
        ("backend: [{name: lab, at_most: 0}]", "line 2: backend.0.at_most: 0; expected at least 1"),
        ("backend: [local, local]", "line 2: two backends are called 'local' (first on line 2); expected names that"),
        ("backend: ssh", "line 2: ssh alone is a type of backend; expected its options: `backend: {type:"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_key_is_told_with_the_nearest_match(places: Places, cell: str, told: str) -> None:
    places.user.write_text("lab: {type: ssh, hosts: [gpu1]}\n")
    assert places.faults(cell)[0].startswith(told)


def test_a_mapping_without_its_type_is_told_the_type_that_has_its_keys(places: Places) -> None:
    assert places.faults("backend: {hosts: [gpu1]}")[0].endswith("add `type: ssh`")


@pytest.mark.parametrize(
    "secret",
    ["password: hunter2x", "passphrase: abc", "api_key: k3J8dk2LmQ9vX1zR7tY", "user: ghp_0123456789abcdef"],
)
def test_a_secret_in_a_profile_is_refused_and_not_shown(places: Places, secret: str) -> None:
    places.user.write_text(f"lab:\n  type: ssh\n  hosts: [gpu1]\n  {secret}\n")
    key, _, value = secret.partition(": ")
    (fault,) = places.faults("backend: lab")
    assert fault.startswith(f"~/.jupyter/backends.yaml line 4: lab.{key}: what looks like a secret (not shown here)")
    assert "key_file" in fault
    assert "environment variable" in fault
    assert value not in fault
    (inline,) = places.faults(f"backend: {{type: ssh, hosts: [gpu1], {secret}}}")
    assert inline.startswith(f"line 2: backend.{key}: what looks like a secret")


def test_profiles_in_the_users_file_of_defaults_are_told_their_place(places: Places) -> None:
    places.user.with_name("autotrain.yaml").write_text("backends: {lab: {type: ssh, hosts: [gpu1]}}\n")
    assert places.faults("") == [
        "~/.jupyter/autotrain.yaml line 1: `backends:` in your autotrain.yaml; expected your profiles in backends.yaml "
        "beside it; move them there"
    ]


def test_the_schema_of_the_key_knows_every_form() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(header.json_schema(SCHEMA))
    good = [
        "lab",
        {"type": "ssh", "hosts": ["gpu1", {"host": "gpu2", "port": 2222}]},
        ["local", {"name": "lab", "prefer": 2}],
    ]
    for value in good:
        assert validator.is_valid({"backend": value}), value
    for value in [3.5, {"type": "ssh", "hosts": ["a"], "hostz": []}, {"at_most": 3}, [[]]]:
        assert not validator.is_valid({"backend": value}), value


def completed(cell: str) -> set[str]:
    text = f"%%autotrain\n{cell}\n---\nx = 1"
    cursor = text.index("|@")
    return set(header.completions(text.replace("|@", ""), cursor, ["lab", "local"], SCHEMA).matches)


@pytest.mark.parametrize(
    ("cell", "offered"),
    [
        ("backend: l|@", {"lab", "local"}),
        ("backend: [local, la|@", {"lab"}),
        ("backend:\n- la|@", {"lab"}),
        ("backend: [{name: la|@", {"lab"}),
        ("backend: {ty|@", {"type: "}),
        ("backend: {type: ss|@", {"ssh"}),
        ("backend: {type: ssh, ho|@", {"hosts: "}),
        ("backend: {type: ssh, hosts: [a, b], key|@", {"key_file: "}),
        ("backend: {type: ssh, hosts: [{host: a, po|@", {"port: "}),
        ("backend: [local, {type: ssh, hosts: [a], at_|@", {"at_most: "}),
        ("backend:\n  type: ssh\n  config|@", {"config_file: "}),
        ("backend: [{name: lab, pre|@", {"prefer: "}),
    ],
)
def test_every_form_is_completed(cell: str, offered: set[str]) -> None:
    assert completed(cell) == offered


def test_help_says_the_keys_of_each_type() -> None:
    lines = header.help_text("backend", SCHEMA).splitlines()
    assert "  backend.at_most: How many of its trials may be there at the same time." in lines
    assert "  type ssh:" in lines
    assert "    hosts: The hosts." in lines


def test_a_file_of_profiles_has_a_schema_too() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(header.profiles_schema(SCHEMA.backend_types))
    assert validator.is_valid({"lab": {"type": "ssh", "hosts": ["gpu1"]}, "here": {"type": "local"}})
    for wrong in (
        {"lab": {"hosts": ["gpu1"]}},
        {"lab": {"type": "ssh", "hosts": ["gpu1"], "prot": 1}},
        {"lab": "gpu1"},
    ):
        assert not validator.is_valid(wrong), wrong


def test_a_file_is_read_again_when_it_has_changed(places: Places) -> None:
    places.user.write_text("lab: {type: ssh, hosts: [one]}\n")
    assert places.choices("backend: lab")[0].profile.options == {"hosts": [{"host": "one"}]}
    places.user.write_text("lab: {type: ssh, hosts: [three]}\n")
    assert places.choices("backend: lab")[0].profile.options == {"hosts": [{"host": "three"}]}


def test_via_of_a_slurm_profile_may_name_a_profile_of_hosts(places: Places) -> None:
    places.user.write_text(
        "lab: {type: ssh, user: ada, hosts: [{host: login1, port: 2222}, other]}\n"
        "cluster: {type: slurm, via: lab, partition: gpu}\n"
        "loop: {type: slurm, via: loop}\n"
    )
    home = {"HOME": str(places.user.parents[1])}
    places.context = header.HeaderContext(places.cwd, home, (*TYPES, "slurm"), SCHEMA)
    (choice,) = places.choices("backend: cluster")
    assert choice.profile.options == {"via": "login1", "partition": "gpu", "user": "ada", "port": 2222}
    (inline,) = places.choices("backend: {type: slurm, via: login9}")
    assert inline.profile.options == {"via": "login9"}
    assert places.choices("backend: loop")[0].profile.options == {"via": "loop"}
