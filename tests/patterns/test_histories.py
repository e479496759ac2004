"""Random histories of notebooks: define, redefine, mutate, alias, view, seed, patch; never silently different."""

import importlib.util
import os
import re
from pathlib import Path

from hypothesis import HealthCheck, given, note, settings

MORE = int(os.environ.get("AUTOTRAIN_FUZZ_TIMES", "0"))  # so many times 20 examples
EXAMPLES = settings(
    max_examples=20 * MORE or 6,
    derandomize=not MORE,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


def load_histories():
    """Return the module beside this one, which is no package."""
    spec = importlib.util.spec_from_file_location("histories", Path(__file__).with_name("histories.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HISTORIES = load_histories()


def silently_different(outcome):
    """Return the first printed line that differs although nothing told names anything in it; "" when none does."""
    here = outcome.here.splitlines()
    there = outcome.there.splitlines()
    for number, line in enumerate(here):
        other = there[number] if number < len(there) else ""
        if line == other:
            continue
        words = {*re.findall(r"\w+", line), *re.findall(r"\w+", other)}
        told = [one for one in outcome.told if not one.startswith("copied")]
        if not any(words & set(re.findall(r"\w+", one)) for one in told):
            return f"here:  {line}\nthere: {other or outcome.there}"
    return ""


def test_no_history_of_a_notebook_is_silently_different(tried):
    @EXAMPLES
    @given(HISTORIES.PYTHON_HISTORIES)
    def holds(cells):
        note("\n# %%\n".join(cells[1:]))
        outcome = tried(cells)
        if outcome.refused or outcome.ended_here:
            return  # a cell that fails here may fail anywhere
        note(outcome.script)
        assert silently_different(outcome) == ""

    holds()
