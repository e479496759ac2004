"""Small wheels, made without a build tool: what virtual environments of tests are made of, without a network."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType


def write_wheel(
    folder: Path,
    name: str,
    version: str,
    source: str = "",
    requires: Sequence[str] = (),
    scripts: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """Write a wheel with one module, called as the distribution.

    Args:
        folder: Where to.
        name: Name of the distribution and of its module.
        version: Its version.
        source: The module's text; `__version__` is set before it.
        requires: What it requires, as in `Requires-Dist`.
        scripts: Its programs: their text, by name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
    metadata += [f"Requires-Dist: {line}\n" for line in requires]
    files = {
        f"{name}.py": f"__version__ = {version!r}\n{source}\n",
        f"{info}/METADATA": "".join(metadata),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files |= {f"{name}-{version}.data/scripts/{script}": text for script, text in scripts.items()}
    record = "".join(f"{file},,\n" for file in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in {**files, f"{info}/RECORD": record}.items():
            entry = zipfile.ZipInfo(file)
            entry.external_attr = (0o100755 if "/scripts/" in file else 0o100644) << 16
            archive.writestr(entry, text)
    return path
