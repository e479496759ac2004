"""Capture: a cell and what it needs, as one script with its data and files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from jupyter_autotrain.capture import mutations, name_conflicts, packages, refusals, reports, secrets, state, unnamed
from jupyter_autotrain.capture.differences import Difference
from jupyter_autotrain.capture.files import ship as shipping
from jupyter_autotrain.capture.files import shipped
from jupyter_autotrain.capture.files.data_files import RequiredFiles
from jupyter_autotrain.capture.files.path_texts import TrialCode
from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.looking import refused_by_name
from jupyter_autotrain.capture.refusals import CaptureLimits
from jupyter_autotrain.capture.result import Capture
from jupyter_autotrain.capture.script import THIS_CELL, CapturedCode, TrialScript, assemble
from jupyter_autotrain.capture.slice import HeaderOptions, Slice
from jupyter_autotrain.capture.syntax.cells import Cell, parse_code
from jupyter_autotrain.capture.syntax.history import History, futures_in
from jupyter_autotrain.capture.syntax.names import analyse
from jupyter_autotrain.capture.syntax.scopes import bound_by
from jupyter_autotrain.capture.values.stream import ByteBudget
from jupyter_autotrain.core.spec import TRIAL, CapturedName

_NO_LIMITS = CaptureLimits()
_NO_DATA: Mapping[str, str] = MappingProxyType({})


@refused_by_name("")
def capture(  # noqa: PLR0913 - one keyword for each thing that a header or a caller may set
    code: str,
    namespace: Mapping[str, object],
    cells: Sequence[Cell] = (),
    *,
    cwd: Path,
    parameters: Collection[str] = (),
    ship: Sequence[str] = (),
    first_line: int = 1,
    label: str = THIS_CELL,
    limits: CaptureLimits = _NO_LIMITS,
    not_secrets: Collection[str] = (),
    returns: Collection[str] = (),
    progress: Callable[[int], object] | None = None,
    seed: int | None = None,
    trials: int = 1,
    variables: Collection[str] = (),
    data: Mapping[str, str] = _NO_DATA,
    setup: Collection[int] = (),
) -> Capture:
    """Find the smallest script that runs `code` elsewhere.

    Args:
        code: The cell's code, header removed.
        namespace: The notebook's globals.
        cells: The executed cells, in order of execution; without them nothing is known about where names come from.
        cwd: The folder the notebook works in; files travel by their place in it.
        parameters: Names of the search space: literals assigned to them are overridden in the trial.
        ship: Patterns of files to send; one that begins with `!` names files that stay here.
        first_line: The line of the cell on which `code` starts.
        label: What to call the code in the source map.
        limits: How much may travel.
        not_secrets: Names whose values may travel although they look like secrets.
        returns: Names of the cell's variables that come back from the trial.
        progress: Called with the bytes of data pickled so far, at most ten times a second; what it raises, such as
            KeyboardInterrupt, ends the capture.
        seed: What trials seed all random generators with, if anything.
        trials: How many trials there will be.
        variables: Names and patterns of environment variables that trials get by the header.
        data: The entries of the header's `data:`: of each the path here, or ""; they are not sent with the code too.
        setup: The numbers of executed cells that run in the trial first.

    Raises:
        CaptureError: A name is missing or cannot travel, the data is too big, or something looks like a secret; all
            all such names.
        ShipError: The files are too many or too big, or a pattern of `ship` fits nothing.
    """
    tree, text, notes = parse_code(code, first_line)
    read = CapturedCode(text, tree, label, first_line)
    history = History(cells, namespace)
    options = HeaderOptions(frozenset(parameters), seed, trials, variables, bool(data), setup)
    budget = ByteBudget(limits.data_bytes, progress)
    patterns = [*ship, *shipped.staying(data.values(), cwd)]
    unnamed_: set[str] = set()
    while True:
        items, slice_ = _items(read, history, budget, options, unnamed_)
        script = assemble(read, items, _futures(read, items, history), parameters)
        whole = unnamed.appended(script, unnamed.definitions(slice_.values.codes), cells)
        found = _files(whole, slice_, data, cwd, patterns)
        fresh = unnamed.in_pickles(found.all, slice_)
        if not fresh:
            break
        unnamed_ |= fresh
    values = {name: (slice_.namespace.get(name), pickled.content) for name, pickled in slice_.values.pickles.items()}
    secrets.refuse(values, script, not_secrets)
    renamed = _renamed(read, slice_, whole)
    files = found.files
    contents = slice_.values.files.values()
    shipping.check_limits(files, limits)
    return Capture(
        script=script.text,
        data=slice_.values.files,
        captured=(*(_row(item) for item in items if item.how not in {"setup", "state"}), *shipped.rows(found)),
        files=files,
        folders=tuple(sorted(found.folders)),
        written=frozenset(filter(found.may_write, files)),
        source_map=script.source_map,
        notes=(*notes, *slice_.notes),
        reports=reports.find(whole, files, contents, slice_.provided.conflicts),
        differences=(
            *slice_.differences,
            *renamed,
            *mutations.find(tree, items, namespace, returns),
            *found.differences,
        ),
        packages=packages.find(whole.tree, files, slice_.values.modules),
    )


def _files(
    whole: TrialScript, slice_: Slice, data: Mapping[str, str], cwd: Path, patterns: Sequence[str]
) -> RequiredFiles:
    live = {name: slice_.namespace.get(name) for name in slice_.values.pickles} | shipped.elsewhere(data)
    code = TrialCode(whole, live, slice_.options.parameters)
    found = shipped.find(code, slice_.values.modules, cwd, patterns)
    found.elsewhere |= {cwd / path for path in data.values()}
    return found


def _items(
    code: CapturedCode,
    history: History,
    budget: ByteBudget,
    options: HeaderOptions,
    unnamed_: Collection[str],
) -> tuple[list[Item], Slice]:
    """Slice until no definition needs itself to be made; such ones travel by value instead."""
    by_value: frozenset[str] = frozenset()
    names = analyse(code.tree.body, lazy_annotations="annotations" in futures_in(code.tree), values=history.values)
    while True:
        slice_ = Slice(history, options, by_value, budget)
        slice_.follow(names)
        slice_.include(unnamed_)
        while more := unnamed.reached(code.text, slice_):
            slice_.include(more)
        state.restore_code(slice_, code.tree)
        slice_.finish()
        refusals.raise_first(slice_, budget.limit_bytes)
        items, circle = slice_.order()
        if not circle:
            return items, slice_
        by_value |= circle


def _renamed(code: CapturedCode, slice_: Slice, script: TrialScript) -> list[Difference]:
    """Report the names that stay the notebook's, and refuse code that uses them as the trial's."""
    bound = bound_by(code.tree.body)
    is_free = not (name_conflicts.is_notebooks(TRIAL, slice_.namespace) or TRIAL in bound)
    firm = [one for one in slice_.provided.conflicts if one.name not in bound]
    parameters = slice_.options.parameters
    name_conflicts.refuse_meant_as_the_trials(script, firm, parameters, trial_is_free=is_free)
    unused = name_conflicts.unused(sorted(parameters & bound), slice_.items, script.text)
    return [*name_conflicts.differences(slice_.provided.conflicts, trial_is_free=is_free), *unused]


def _futures(code: CapturedCode, items: Sequence[Item], history: History) -> set[str]:
    return {*history.futures} if any(item.how in {"setup", "source"} for item in items) else futures_in(code.tree)


def _row(item: Item) -> CapturedName:
    return CapturedName(item.name, item.how, item.origin, item.size_bytes, item.stale)
