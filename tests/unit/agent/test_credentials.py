"""Tests of what looks like a credential, and the many things that do not."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.agent.credentials import holds_credential, is_credential, names_credential

KEYS = (
    "hf_" + "aB3xK9" * 6,
    "sk-" + "Ab3" * 16,
    "sk-proj-Ab_3-" + "xY9z" * 12,
    "sk-ant-api03-" + "Ab3d" * 10,
    "sk_live_" + "a1B2" * 6,
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1_B2" * 8,
    "glpat-" + "a1B2" * 5,
    "xoxb-123456789012-abcdef",
    "AIza" + "Sy-D_9" * 6,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n",
    "-----BEGIN PRIVATE KEY-----",
    "postgres://ada:lovelace1@db.example/x",
)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_known_by_its_form_whatever_it_is_called(key):
    assert is_credential("x", key)
    assert is_credential("x", key.encode())
    assert holds_credential(f"curl -H 'Authorization: Bearer {key}'")
    assert holds_credential(f"{key}\n")


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("length", [0, 1, 14, 22, 50, 300])
def test_a_key_is_found_in_a_pickle_whatever_stands_before_it(key, length):
    for value in (key + "." * length, [key], {"a": {"b": key}}, (b"x" * length, key.encode()), {key}):
        assert holds_credential(pickle.dumps(value, protocol=5))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password", "hunter2"),
        ("db_password", "correcthorsebattery"),
        ("dbPassword", "correcthorse1"),
        ("api_key", "0123456789abcdef"),
        ("OPENAI_API_KEY", "abcdef123456"),
        ("aws_secret_access_key", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"),
        ("client_secret", "a8f5f167f44f4964"),
        ("credentials", "ada:lovelace"),
        ("token", "0a1b2c3d4e5f6a7b8c9d"),
        ("auth_token", "abcdefgh12345678"),
        ("signing_key", "7a9c2f1e"),
        ("key", "pLq8Zr3NwX0aTg5Vb2Kc"),
        ("secret", b"7a9c2f1e"),
    ],
)
def test_a_name_tells_of_a_value_that_could_be_a_secret(name, value):
    assert is_credential(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("key", "val_accuracy"), ("key", "epoch"), ("sort_key", "resnet50_imagenet1k_v2"), ("cache_key", "d41d8cd98f"),
        ("keys", "a"), ("keyword", "longer words here"), ("monkey", "aB3" * 10),
        ("token", "[CLS]"), ("pad_token", "<|endoftext|>"), ("eos_token", "</s>"), ("token", "hello"),
        ("tokenizer", "bert-base-uncased"), ("tokenizer_name", "meta-llama/Llama-3-8B"), ("max_tokens", "2048"),
        ("token_ids", "1 2 3"), ("token", "unbelievably_long_word"),
        ("api_key", "OPENAI_API_KEY"), ("api_key", ""), ("password", "<password>"), ("password", "{password}"),
        ("password_file", "/run/secrets/password"), ("secret_name", "projects/x"), ("password_length", "16-letters"),
        ("api_key", 12345678), ("password", None), ("key", np.zeros(2)), ("password", "a sentence of words"),
        ("model", "task-specific-language-model-v2-large"), ("x", "sk-learn-text-classification"),
        ("x", "risk-adjustedperformancemeasure1"), ("x", "hf_dataset"), ("url", "https://example.org/a:b@c"),
        ("url", "http://proxy:3128"), ("template", "postgres://{user}:{password}@{host}/x"), ("x", "AKIA-short"),
        ("sha", "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3"),
    ],
)  # fmt: skip
def test_ordinary_values_are_no_secrets(name, value):
    assert not is_credential(name, value)


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "db_password", "API_KEY", "GITHUB_PAT", "apiKey"]
)
def test_names_of_secrets(name):
    assert names_credential(name)


@pytest.mark.parametrize("name", ["PATH", "TOKENIZERS_PARALLELISM", "KEYBOARD", "MONKEY", "SSH_AUTH_SOCK", "HF_HOME"])
def test_names_of_other_things(name):
    assert not names_credential(name)


@settings(max_examples=200)
@given(value=st.text(max_size=60) | st.binary(max_size=60), name=st.text(max_size=30))
def test_any_text_is_judged(value, name):
    assert is_credential(name, value) in {True, False}
    assert names_credential(name) in {True, False}


def test_random_data_holds_none():
    assert not holds_credential(np.random.default_rng(7).bytes(4_000_000))
