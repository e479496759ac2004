"""A header holds names of secrets, never secrets."""

import pytest

from jupyter_autotrain import header
from jupyter_autotrain.errors import HeaderError

TOKEN = "hf_" + "aB3xK9" * 6


def parse(text, line=""):
    return header.parse_cell(line, f"{text}\n---\nx = 1", header.HeaderContext()).header


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        (f"env: {{HF_TOKEN: {TOKEN}}}", "HF_TOKEN"),
        (f"env:\n  MODE: fast\n  X: {TOKEN}", "X"),
        ("env: {DB_PASSWORD: hunter2}", "DB_PASSWORD"),
        ("env: {HTTPS_PROXY: 'http://me:hunter2@proxy:3128'}", "HTTPS_PROXY"),
        ("env: {API_KEY: 0123456789abcdef}", "API_KEY"),
        (f"search:\n  key: choice(a, '{TOKEN}')", "KEY"),
        (f"search:\n  key: [a, '{TOKEN}']", "API_KEY"),
    ],
)
def test_a_secret_value_is_refused_with_the_line_to_write(text, variable):
    with pytest.raises(HeaderError) as caught:
        parse(text)
    told = "\n".join(caught.value.faults)
    assert f"`secrets: [{variable}]`" in told
    assert told.startswith("line ")
    assert "aB3" not in told
    assert "hunter2" not in told


def test_a_secret_in_a_comment_is_refused_since_headers_are_kept():
    with pytest.raises(HeaderError, match="line 2: a comment holds what looks like a secret"):
        parse(f"trials: 1  # {TOKEN}")


def test_what_is_said_to_be_none_is_taken():
    spec = parse(f"env: {{X: {TOKEN}, MODE: fast}}\nnot_secrets: X\n# {TOKEN}  pragma: allowlist secret")
    assert spec.env == {"X": TOKEN, "MODE": "fast"}


def test_ordinary_variables_are_taken():
    env = "{TOKENIZERS_PARALLELISM: false, KEY: epoch, MAX_TOKENS: 3, HF_HOME: /data/hf, https_proxy: 'http://p:3128'}"
    assert len(parse(f"env: {env}").env) == 5


def test_python_settings_are_held_to_the_same():
    with pytest.raises(HeaderError, match=r"`secrets: \[HF_TOKEN\]`"):
        header.from_mapping({"env": {"HF_TOKEN": TOKEN}})


def test_pass_env_takes_names_and_refuses_those_of_secrets():
    assert parse("pass_env: [WANDB_PROJECT, SLURM_*]").pass_env == ("WANDB_PROJECT", "SLURM_*")
    with pytest.raises(HeaderError, match=r"`secrets: \[HF_TOKEN\]`"):
        parse("pass_env: [HF_TOKEN]")


@pytest.mark.parametrize(
    "key", ["name", "trials", "seed", "timeout", "search", "env", "resources", "objective", "ship"]
)
def test_an_integer_that_python_cannot_write_is_a_fault_too(key):
    with pytest.raises(HeaderError):
        header.from_mapping({key: {"x": 10**5000} if key in {"search", "env"} else 10**5000})
