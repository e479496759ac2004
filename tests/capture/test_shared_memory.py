"""Arrays and tensors that share memory have copies of their own in a trial, which is told; a view carries its own data."""

# Cases are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import gc
import weakref

import pytest

CASES = {
    "a slice": ("a = np.arange(10)\nv = a[:3]", "a += 1\nprint(v)"),
    "the base of a slice is not named": ("a = np.arange(10)\nv, w = a[2:5], a[4:8]\ndel a", "v += 10\nprint(w)"),
    "transposed": ("a = np.arange(6.).reshape(2, 3)\nt = a.T", "t[0] = 9\nprint(a, t.strides)"),
    "reshaped and flat": ("a = np.arange(6)\nr = a.reshape(2, 3)\nf = r.ravel()", "f[:] = 5\nprint(a, r)"),
    "backwards": ("a = np.arange(6)\nb = a[::-1]", "a[0] = 50\nprint(b, b.strides)"),
    "every second": ("a = np.arange(8)\ne, o = a[::2], a[1::2]", "e += 10\nprint(e, o, a)"),
    "a field": ("r = np.zeros(3, dtype=[('x', 'f4'), ('y', 'i8')])\nx = r['x']", "x += 1\nprint(r)"),
    "broadcast": ("a = np.arange(3)\nb = np.broadcast_to(a, (4, 3))", "a += 1\nprint(b, b.strides, b.flags.writeable)"),
    "in a dict and in a list": ("a = np.zeros(4)\nd = {'v': a[1:]}\nk = [a[:2]]", "d['v'][0] = 3\nprint(k, a)"),
    "within one value": ("a = np.zeros(4)\nd = {'a': a, 'v': a[1:], 't': (a, a[::2])}\ndel a", "d['a'][2] = 1\nprint(d)"),
    "another type of the same bytes": ("a = np.zeros(2, 'f8')\nb = a.view('u1')", "b[7] = 64\nprint(a)"),
    "bytes from an odd address": (
        "a = np.zeros(24, 'u1')\nb = a[3:11].view('f8')", "b[0] = 2\nprint(a, b, b.flags.aligned)",
    ),
    "an array that is read only": ("a = np.arange(3)\nv = a[:]\nv.flags.writeable = False", "a += 1\nprint(v, v.flags.writeable)"),
    "objects": ("o = np.array([[1], 'x', None], dtype=object)\nv = o[1:]", "o[1] = 7\nv[1] = 8\nprint(o, v)"),
    "an attribute of an object": ("class Box: pass\nb = Box()\nb.a = np.zeros(3)\nv = b.a[1:]", "b.a += 1\nprint(v)"),
    "a bytearray": ("raw = bytearray(8)\na = np.frombuffer(raw, 'u1')\nv = a[4:]", "raw[5] = 1\nv[0] = 2\nprint(a, raw)"),
    "an array of the standard library": ("import array\ns = array.array('d', [1, 2])\na = np.asarray(s)", "s[0] = 5\nprint(a)"),
    "a masked array": ("a = np.arange(4.)\nm = np.ma.array(a, mask=[0, 1, 0, 0], copy=False)", "a += 1\nprint(m, m.mean())"),
    "a class of arrays": (
        "class Tagged(np.ndarray):\n    pass\na = np.zeros(3)\nt = a[1:].view(Tagged)\nt.tag = 'x'",
        "a += 1\nprint(t, type(t), t.tag)",
    ),
    "a record array": ("r = np.rec.array([(1, 2.)], dtype=[('x', 'i8'), ('y', 'f8')])\nx = r.x", "x[0] = 9\nprint(r)"),
    "dates": ("a = np.array(['2020-01-01', '2021-01-01'], 'M8[D]')\nv = a[1:]", "a += 1\nprint(v)"),
    "nothing in it": ("a = np.zeros((0, 3))\nb = a[:, 1:]", "print(a.shape, b.shape)"),
    "an alias": ("a = np.zeros(2)\nb = a", "a += 1\nprint(b, a is b)"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_arrays_that_share_memory_are_told_where_it_matters(notebook, case):
    made, code = CASES[case]
    equal_or_told(notebook(f"import numpy as np\n{made}"), code, "numpy")


def equal_or_told(book, code, *imported):
    there = book.elsewhere(code, imported=imported)
    told = [one.text for one in book.capture(code).differences if one.text.startswith("memory that")]
    assert there == book._execute(code) or told


TORCH = {
    "views": ("w = torch.zeros(6)\na, b = w[:3], w.view(2, 3)", "a += 1\nprint(w, b)"),
    "a tensor made from an array": ("a = np.zeros(4)\nt = torch.from_numpy(a[1:])", "a += 1\nt[0] = 9\nprint(a, t)"),
    "the array of a tensor": ("t = torch.zeros(4)\na = t.numpy()[::2]", "t += 1\nprint(a)"),
    "detached": ("w = torch.zeros(3, requires_grad=True)\nd = w.detach()", "d += 1\nprint(w)"),
    "a parameter and its data": ("p = torch.nn.Parameter(torch.zeros(3))\nd = p.data[1:]", "d += 1\nprint(p)"),
    "tied weights": (
        "e, h = torch.nn.Embedding(3, 2), torch.nn.Linear(2, 3, bias=False)\nh.weight = e.weight",
        "h.weight.data.zero_()\nprint(e.weight, e.weight is h.weight)",
    ),
    "expanded": ("t = torch.zeros(3)\ne = t.expand(2, 3)", "t += 1\nprint(e, e.stride())"),
    "another type of the same bytes": ("t = torch.zeros(2)\nb = t.view(torch.uint8)", "b[3] = 64\nprint(t)"),
    "complex and its parts": ("z = torch.zeros(2, dtype=torch.complex64)\nr = z.imag", "r += 1\nprint(z)"),
    "conjugated": ("z = torch.ones(2, dtype=torch.complex64) * 1j\nc = z.conj()", "print(c, c.is_conj())"),
    "a storage": ("t = torch.zeros(2)\ns = t.untyped_storage()", "s[3] = 64\nprint(t)"),
    "sparse": ("s = torch.eye(3).to_sparse()", "print(s)"),
    "half precision": ("t = torch.ones(4, dtype=torch.bfloat16)\nv = t[2:]", "t += 1\nprint(v)"),
    "nothing in it": ("t = torch.zeros(0, 3)\nu = torch.tensor([])", "print(t, u)"),
    "a number": ("t = torch.tensor(1.5)", "print(t)"),
    "shared with other processes": ("t = torch.zeros(2).share_memory_()", "print(t.is_shared())"),
    "that can be resized": ("t = torch.zeros(2)", "t.resize_(4)\nprint(t.shape)"),
    "a class of tensors": ("class T(torch.Tensor): pass\nt = torch.zeros(2).as_subclass(T)\nt.tag = 3", "print(t, t.tag)"),
}  # fmt: skip


@pytest.mark.parametrize("case", TORCH)
def test_tensors_that_share_memory_are_told_where_it_matters(notebook, case):
    made, code = TORCH[case]
    equal_or_told(notebook(f"import numpy as np, torch\n{made}"), code, "torch")


TABLES = {
    "values": ("df = pd.DataFrame({'a': [1., 2.], 'b': [3., 4.]})\nv = df.values", "df.iloc[0, 0] = 9\nprint(v)"),
    "a column is a copy": ("df = pd.DataFrame({'a': [1., 2.]})\ns = df['a']", "df.iloc[0, 0] = 9\nprint(s)\ns.iloc[1] = 7\nprint(df)"),
    "a column and values": (
        "df = pd.DataFrame({'a': [1., 2.], 'b': [3., 4.]})\ns = df['a']\nv = df.values",
        "s.iloc[0] = 5\ndf.iloc[1, 1] = 9\nprint(v, s, df)",
    ),
    "a shallow copy": ("df = pd.DataFrame({'a': [1., 2.]})\nd2 = df.copy(deep=False)", "df.iloc[0, 0] = 9\nprint(d2)"),
    "an index made a column": ("i = pd.Index([1., 2.])\ns = pd.Series(i)", "s.iloc[0] = 9\nprint(i)"),
    "an array made a table": (
        "a = np.zeros((2, 2))\ndf = pd.DataFrame(a, copy=False)", "a += 1\nprint(df)\ndf.iloc[0, 0] = 7\nprint(a)",
    ),
    "text": ("df = pd.DataFrame({'t': ['x', 'y'], 'n': [1, 2]})\ns = df['t']", "df.loc[0, 't'] = 'z'\nprint(s, df)"),
    "objects": ("df = pd.DataFrame({'t': [[1], {}]}, dtype=object)\nv = df['t'].to_numpy()", "df.loc[0, 't'].append(2)\nprint(v)"),
    "rows": ("df = pd.DataFrame({'a': [1., 2., 3.]})\ntop = df[:2]", "df.iloc[0, 0] = 9\nprint(top)\ntop.iloc[1, 0] = 8\nprint(df)"),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_tables_are_copied_when_written_to_as_here(notebook, case):
    made, code = TABLES[case]
    equal_or_told(notebook(f"import numpy as np, pandas as pd\n{made}"), code, "pandas")


@pytest.mark.parametrize(
    ("made", "most_bytes"),
    [
        ("x = np.zeros((1000, 1000))[:3]", 40_000),
        ("x = np.zeros((1000, 1000))[:, 0]", 40_000),
        ("x = [torch.zeros(1000, 1000)[i] for i in range(3)]", 40_000),
        ("t = torch.zeros(1000, 1000)\nx = [t[i] for i in range(20)]\ndel t", 100_000),
        ("t = np.zeros((1000, 1000), 'f4')\nx = [t[:, 3], t[:, 8]]\ndel t", 40_000),
        ("t = np.zeros((1000, 1000), 'f4')\nx = torch.from_numpy(t[5])\ndel t", 40_000),
        ("t = torch.zeros(1000, 1000)\nx = t[:, 3]\ndel t", 40_000),
        ("x = np.broadcast_to(np.zeros(1000), (1000, 1000))", 40_000),
    ],
)
def test_a_view_carries_only_its_own_data(notebook, made, most_bytes):
    book = notebook(f"import numpy as np, torch\n{made}")
    captured = book.capture("print(x)")
    assert sum(map(len, captured.data.values())) < most_bytes


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("a = np.arange(10)\nv = a[:3]", ["a and v"]),
        ("a = np.arange(6.0).reshape(3, 2)\nv, w = a[:, 0], a[:, 1]\ndel a", []),  # columns only interleave
        ("a = np.zeros(3)\nd = [a, a[1:]]\ndel a", ["arrays in d"]),
        ("t = torch.zeros(3)\na = t.numpy()", ["a and t"]),
        ("m = torch.nn.Linear(2, 2)\ns = m.state_dict()", ["m and s"]),
        ("m = torch.nn.Linear(2, 2)\no = torch.optim.SGD(m.parameters(), 0.1)", []),
        ("m = torch.nn.LSTM(2, 2, 2)", []),
        ("b = bytearray(8)\na = np.frombuffer(b, 'u1')", ["a and b"]),
        ("a = np.zeros(3)\nb = a", []),
        ("w = torch.ones(2, requires_grad=True)\nw.sum().backward()\ng = w.grad[1:]", ["g and w"]),
    ],
)
def test_overlapping_arrays_are_told_by_their_names(notebook, made, told):
    book = notebook(f"import numpy as np, torch\n{made}")
    names = [name for name in book.namespace if len(name) == 1]
    texts = [one.text for one in book.capture(f"print({', '.join(names)})").differences]
    assert [text.removeprefix("memory that ").partition(" share")[0] for text in texts] == told


def test_a_file_in_memory_that_would_be_written_to_is_told(notebook, tmp_path):
    book = notebook(
        f"import numpy as np\nm = np.memmap({str(tmp_path / 'f.dat')!r}, 'f8', 'w+', shape=(3,))\nv = m[1:]\n"
        f"r = np.memmap({str(tmp_path / 'f.dat')!r}, 'f8', 'r', shape=(3,))"
    )
    assert book.both("print(m + 1, type(m))")
    told = book.capture("m.sum()\nprint(v, r)").differences
    copied = [one for one in told if one.kind == "copied"]
    assert [one.text.split()[0] for one in copied] == ["m", "v"]
    assert all("f.dat" in one.text for one in copied)


def test_a_capture_holds_nothing_of_the_notebook_afterwards(notebook):
    book = notebook("import pandas as pd\ndf = pd.DataFrame({'a': [1.]})")
    gc.disable()
    try:
        book.capture("print(df)")
        held = weakref.ref(book.namespace.pop("df"))
        assert held() is None
    finally:
        gc.enable()
