"""A bundle and one set of parameters as a single script that needs nothing else of this package."""

from __future__ import annotations

import ast
import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.capture.bundle import DATA, FILES, SCRIPT, read_bundle
from jupyter_autotrain.capture.refusals import tree
from jupyter_autotrain.capture.state.generators import AT_IMPORT, SEED
from jupyter_autotrain.capture.values.standins import own_text
from jupyter_autotrain.core.data import DataSource
from jupyter_autotrain.errors import ShipError

EMBED_BYTES = 20_000_000
"""The most data and files that a script may carry, in bytes."""
_WIDTH = 100
_TITLE = "# A trial of jupyter_autotrain, exported to run alone: python THIS_FILE\n"


def export_script(  # noqa: PLR0913 - one keyword for each thing that a trial has
    bundle_dir: Path,
    params: Mapping[str, JsonValue],
    out: Path | None = None,
    *,
    seed: int | None = None,
    hash_seed: str = "",
    limit_bytes: int = EMBED_BYTES,
    sources: Iterable[DataSource] = (),
) -> str:
    """Write a script that runs one trial alone: `python train.py` gives the metrics the trial gave.

    Args:
        bundle_dir: The experiment's bundle.
        params: The trial's parameters.
        out: Where to write it; None only returns it.
        seed: The trial's own seed; None lets the generators start from the captured states.
        hash_seed: The trial's `PYTHONHASHSEED`; "" leaves the order of sets to chance.
        limit_bytes: How much data and files may be embedded.
        sources: What the header's `data:` names; it stays where it is here.

    Raises:
        ShipError: Data and files are too big to be embedded.
    """
    bundle = read_bundle(bundle_dir)
    main = (bundle_dir / SCRIPT).read_text(encoding="utf-8")
    files = {name: bundle_dir / FILES / name for name in bundle.files}
    data = {path.stem: path for path in sorted((bundle_dir / DATA).glob("*.pkl"))}
    variables = {f"{row.name} (data)": row.size_bytes for row in bundle.captured if row.how == "data"}
    _check_size({name: path.stat().st_size for name, path in files.items()} | variables, limit_bytes)
    futures, body = _split_futures(main)
    parts = [
        futures,
        _TITLE + _seed_line(seed, hash_seed),
        _standalone_module(),
        *_seeding(seed, hash_seed, waits=AT_IMPORT in main),
        f"globals().update(__autotrain__.start(\n    {_literal(params)},\n{_packed(data)},\n"
        f"{_packed(files, bundle.folders)},\n))",
        _data_line(sources),
        "\n# The cell, with what it needs\n",
        _awaiting(body) if _awaits(body) else body,
    ]
    script = "\n".join(filter(None, parts))
    if out is not None:
        out.write_text(script, encoding="utf-8")
    return script


def _check_size(sizes: Mapping[str, int], limit_bytes: int) -> None:
    if sum(sizes.values()) > limit_bytes:
        raise ShipError(
            f"Data and files are too big for one script: {format_bytes(sum(sizes.values()))}.\n{tree(sizes, rows=1)}",
            f"At most {format_bytes(limit_bytes)} can be written into a script.",
            "Load the data inside the cell, and export again.",
        )


def _split_futures(main: str) -> tuple[str, str]:
    """Return the `from __future__` line, which must stay first, and the rest."""
    if main.startswith("from __future__"):
        first, _, rest = main.partition("\n")
        return first, rest
    return "", main


def _standalone_module() -> str:
    """Return the code of the embedded module that replaces a trial's API, apart from the script's names."""
    code = own_text("jupyter_autotrain.capture", "standalone.py")
    return (
        '__autotrain__ = __import__("types").ModuleType("autotrain_standalone")\n'
        f"exec({_quoted(code)}, vars(__autotrain__))\n"
    )


def _seed_line(seed: int | None, hash_seed: str) -> str:
    """Return the facts that are fixed for this script, as a comment."""
    seeded = [f"Seed {seed}, for random, NumPy, PyTorch and TensorFlow."] if seed is not None else []
    ordered = (
        [f"It starts itself once more with PYTHONHASHSEED={hash_seed}, for the order of sets."] if hash_seed else []
    )
    return "".join(f"# {line}\n" for line in (*seeded, *ordered))


def _seeding(seed: int | None, hash_seed: str, *, waits: bool) -> list[str]:
    """Return the lines that do what the trial did before it ran the cell."""
    lines = [f"__autotrain__.fix_hash_order({hash_seed!r})"] if hash_seed else []
    if waits or seed is not None:
        code = own_text("jupyter_autotrain.agent.ranks", "library_hooks.py")
        lines.append(f"exec({_quoted(code)}, vars(__autotrain__))\n")
    if waits:
        lines.append(f"{AT_IMPORT} = __autotrain__.at_import")
    if seed is not None:
        lines.append(f"__autotrain__.seed_everything({seed})")
        lines.append(f"{SEED} = lambda: __autotrain__.seed_loaded({seed})")
    return lines


def _data_line(data: Iterable[DataSource]) -> str:
    """Return the line that gives the script the paths of its data here; "" without any."""
    places = {one.name: (one.local_path or one.path or one.file_name, one.url, one.sha256) for one in data}
    return f"__autotrain__.add_data(globals(), {places!r})" if places else ""


def _literal(params: Mapping[str, JsonValue]) -> str:
    return repr(json.loads(json.dumps(params)))


def _packed(files: Mapping[str, Path], folders: Iterable[str] = ()) -> str:
    """Return files as code of a dict of text, compressed; folders stand by their names with a slash."""
    lines = ["    {", *(f"        {name + '/'!r}: ''," for name in folders)]
    if not files and len(lines) == 1:
        return "    {}"
    for name, path in files.items():
        text = base64.b85encode(zlib.compress(path.read_bytes(), 9)).decode()
        pieces = [text[at : at + _WIDTH] for at in range(0, len(text), _WIDTH)]
        lines += [f"        {name!r}:", *(f"            {piece!r}" for piece in pieces)]
        lines[-1] += ","
    return "\n".join([*lines, "    }"])


def _awaits(body: str) -> bool:
    """Tell whether the script waits at its left margin, which a plain file cannot."""
    try:
        compile(body, "<script>", "exec", dont_inherit=True)
    except SyntaxError:
        return True
    return False


def _awaiting(body: str) -> str:
    """Run a script that has `await` at its left margin as a notebook does."""
    return (
        "import ast as __ast, asyncio as __asyncio\n"
        f"__cell = {_quoted(body)}\n"
        '__code = compile(__cell, "<cell>", "exec", flags=__ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)\n'
        "__waiting = eval(__code)\n"
        "if __waiting is not None:\n"
        "    __asyncio.run(__waiting)\n"
    )


def _quoted(body: str) -> str:
    """Return a text as a literal, kept readable when it can be."""
    plain = f"r'''\n{body}'''"
    if "'''" not in body and not body.endswith(("\\", "'")) and ast.literal_eval(plain) == f"\n{body}":
        return plain
    return repr(body)
