"""The header of a cell, read, checked, explained and completed. Knows nothing of IPython.

Data flow: `splitting` (where it ends) → `yaml_parts` (YAML with lines) → `flags`, `config_sources`, `aliases`
(one set of settings) → `checking` (against `schema`) → `Header.to_spec`.
"""

from __future__ import annotations

from jupyter_autotrain.header.aliases import Flags
from jupyter_autotrain.header.backend_models import profiles_schema
from jupyter_autotrain.header.cell import ParsedCell, cell_faults, explain, from_mapping, parse_cell
from jupyter_autotrain.header.completions import MAGIC, Completions, completions
from jupyter_autotrain.header.config_sources import HeaderContext
from jupyter_autotrain.header.help import KEY_GROUPS, help_text, json_schema, known_keys, with_backend_types
from jupyter_autotrain.header.schema import Header

__all__ = [
    "KEY_GROUPS",
    "MAGIC",
    "Completions",
    "Flags",
    "Header",
    "HeaderContext",
    "ParsedCell",
    "cell_faults",
    "completions",
    "explain",
    "from_mapping",
    "help_text",
    "json_schema",
    "known_keys",
    "parse_cell",
    "profiles_schema",
    "with_backend_types",
]
