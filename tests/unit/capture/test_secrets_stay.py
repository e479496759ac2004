"""Tests that what looks like a secret does not travel unless it is said to be none."""

import pytest

from jupyter_autotrain.errors import CaptureError

TOKEN = "hf_" + "aB3xK9" * 6


SETTINGS = """
from dataclasses import dataclass, field

@dataclass
class Settings:
    name: str = "run"
    password: str = ""
    inner: dict = field(default_factory=dict)
"""


def refused(book, code="print(len(str(x)))", **more):
    with pytest.raises(CaptureError) as caught:
        book.capture(code, **more)
    text = str(caught.value)
    assert "aB3xK9" not in text
    assert "hunter2" not in text
    assert len(text.splitlines()) <= 6
    return text


def test_a_variable_with_a_key_is_refused_with_the_line_to_write(notebook):
    text = refused(notebook(f"hf_token = '{TOKEN}'"), "login(hf_token) if hf_token else 1\ndef login(t): pass")
    assert "`secrets: [HF_TOKEN]`" in text
    assert 'os.environ["HF_TOKEN"]' in text
    assert "not_secrets: [hf_token]" in text


@pytest.mark.parametrize(
    "made",
    [
        "{'a': [1, {'deep': TOKEN}]}", "[TOKEN]", "(1, TOKEN)", "{TOKEN}", "TOKEN.encode()", "{TOKEN: 1}",
        "{'api_key': 'hunter2hunter2'}", "[{'db': {'password': 'hunter2'}}]", "{'n': {'password': b'hunter2'}}",
        "f'https://me:{TOKEN}@host/x'", "json.dumps({'key': TOKEN})", "[list(range(20_000)), TOKEN]",
    ],
)  # fmt: skip
def test_a_key_is_refused_wherever_it_is_nested(notebook, made):
    text = refused(notebook("import json, os", f"x = eval({made!r}, dict(json=json, TOKEN='hf_' + 'aB3xK9' * 6))"))
    assert "looks like a secret" in text


@pytest.mark.parametrize(
    "made", ["Settings(password='hunter2')", "Settings(inner={'secret': 'hunter2hunter2'})", f"[Settings('{TOKEN}')]"]
)
def test_the_attributes_of_objects_are_looked_at(notebook, made):
    refused(notebook(SETTINGS, f"x = eval({made!r})"))


def test_the_place_in_a_nested_value_is_told(notebook):
    text = refused(notebook("x = {'db': [{'password': 'hunter2'}]}"))
    assert "x['db'][0]['password']" in text
    assert "`secrets: [PASSWORD]`" in text
    assert "not_secrets: [x]" in text


@pytest.mark.parametrize(
    "code",
    [
        f"login('{TOKEN}')", f"x = 1  # {TOKEN}", f"x = f'{TOKEN}{{1}}'", "connect(password='hunter2')",
        "settings = {'api_key': 'hunter2hunter2'}", "import os\nos.environ['DB_PASSWORD'] = 'hunter2'",
        "def f(a, secret='hunter2!'): return a",
        "key = '''-----BEGIN PRIVATE KEY-----\nMIIE\n'''", "self_ = 1\nclass A:\n    password: str = 'hunter2'",
    ],
)  # fmt: skip
def test_a_key_that_code_spells_out_is_refused_with_its_line(notebook, code):
    text = refused(notebook("def login(t): pass\ndef connect(password): pass"), code)
    assert "this cell:" in text
    assert "pragma: allowlist secret" in text


def test_a_key_in_a_function_of_another_cell_is_found_too(notebook):
    text = refused(notebook(f"def login():\n    return '{TOKEN}'"), "print(login())")
    assert ":2" in text


def test_what_is_said_to_be_none_travels(notebook):
    book = notebook(f"x = '{TOKEN}'", "y = {'password': 'hunter2'}")
    assert book.capture("print(x, y)", not_secrets=["x", "password"]).data.keys() == {"values"}
    captured = book.capture(f"z = '{TOKEN}'  # pragma: allowlist secret\nconnect = dict(password='hunter2')",
                            not_secrets=["password"])  # fmt: skip
    assert TOKEN in captured.script


def test_ordinary_names_and_values_travel(notebook):
    book = notebook(
        "key = 'epoch'\nkeys = ['a', 'b']\ntoken_ids = [1, 2]\nmax_tokens = 2048\ntokenizer = 'bert-base'\n"
        "pad_token = '<pad>'\nvocab = {'token': 'secret', 'key': 'password', 'password': 3}\nmodel = 'gpt-4o'\n"
        "import numpy as np\nprng_key = np.zeros(2, dtype=np.uint32)\nsecret_dim = 8\ndata = np.ones((500, 500))"
    )
    names = "key, keys, token_ids, max_tokens, tokenizer, pad_token, vocab, model, prng_key, secret_dim, data"
    captured = book.capture(f"print({names})")
    assert {row.name for row in captured.captured if row.how == "data"} == set(names.split(", "))


def test_large_and_circular_values_are_looked_at_in_bounded_time(notebook):
    book = notebook()
    circle = [["word"] * 200_000]
    circle.append(circle)
    book.namespace["x"] = circle
    assert book.capture("print(len(x))").data


def test_bytes_in_an_array_are_looked_at_and_wider_numbers_are_not(notebook):
    refused(notebook(f"import numpy as np\nx = np.frombuffer(b'{TOKEN}  ', dtype='u1')"))
    numbers = notebook(f"import numpy as np\nx = np.frombuffer((b'{TOKEN}' + b' ' * 8)[:40], dtype='f8')")
    assert numbers.capture("print(x.sum())").data
