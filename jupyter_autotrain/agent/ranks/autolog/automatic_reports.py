"""Reports that a library makes without a line of the cell: their steps, their names, and the notice of them."""

from __future__ import annotations

import ast
import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

from jupyter_autotrain.agent.ranks import api
from jupyter_autotrain.agent.ranks.reporter import print_to_stderr

_NEVER = frozenset({"step", "all_ranks"})
_Act = Callable[..., None]


class AutomaticReports:
    """The reports of libraries, in the process of the trial's first rank.

    A metric that the cell reports itself is left to it.
    """

    def __init__(self, context: api.TrialContext) -> None:
        self._context = context
        self._process = os.getpid()
        self._own: frozenset[str] | None = None
        self._shifts: dict[str, int] = {}
        self._told: set[str] = set()
        self._muted = 0
        self._place: object = None  # of the call that a wrapped function answers
        self._names: dict[object, str] = {}

    def add(self, library: str, step: object, values: Mapping[str, object], *, each_once: bool = False) -> None:
        """Report the values that are numbers.

        A loop that begins anew goes on where the one before it has ended, as steps may not go back.

        Args:
            library: Whose values they are.
            step: Theirs; None counts on from the metrics' last one.
            values: By name; a mapping among them is `name.inner`.
            each_once: Whether a second value of the same step is of another loop.
        """
        if self._own is None:
            self._own = _names_reported_in(self._context.script)
        numbers = {name: value for name, value in _numbers(values) if name not in self._own}
        if not numbers:
            return
        reporter = self._context.reporter
        last = reporter.last_step(numbers)
        loop = next(iter(numbers)) if each_once else library
        number = last + 1 if step is None else int(step) + self._shifts.get(loop, 0)  # type: ignore[call-overload] # what a library calls a step
        if number < last + each_once:
            self._shifts[loop] = self._shifts.get(loop, 0) + last + 1 - number
            number = last + 1
        self._tell(library)
        reporter.automatic(number, numbers)

    def name_of_call(self, name: str) -> str:
        """Return a name for the values of this place in the cell: the name, `name_2` for the next place, ..."""
        count = len(self._names) + 1
        return self._names.setdefault(self._place, name if count == 1 else f"{name}_{count}")

    def _tell(self, library: str) -> None:
        if library not in self._told:
            self._told.add(library)
            text = f"{library} reports its metrics by itself; `autolog: false` in the header turns this off"
            self._context.reporter.note("info", text)
            print_to_stderr(f"autotrain: {text}")

    def wrap(
        self, owner: object, name: str, act: _Act, *, is_logger: bool = False, unless_from: tuple[str, ...] = (),
        mutes: bool = False,
    ) -> None:  # fmt: skip
        """Have a function also call `act` with its result and its arguments; nothing where there is no such function.

        Args:
            owner: The class or module that has it.
            name: Its name.
            act: Called after it, or, with None as the result, before the call of a logger.
            is_logger: Whether the cell calls it to log something.
            unless_from: Packages whose own calls do not count.
            mutes: Whether loops inside of it do not report.
        """
        found = vars(owner).get(name)
        function = getattr(found, "fn", found)  # as scikit-learn's `available_if` keeps it
        if not callable(function):
            return

        @functools.wraps(function)
        def wrapped(*args: object, **kwargs: object) -> object:
            caller = sys._getframe(1)  # noqa: SLF001 - the stack has no other way in
            counts = str(caller.f_globals.get("__name__")).partition(".")[0] not in unless_from
            place = (caller.f_code, caller.f_lasti)
            if counts and is_logger:
                self._act(act, place, None, args, kwargs)
            self._muted += mutes
            try:
                result = function(*args, **kwargs)
            finally:
                self._muted -= mutes
            if counts and not is_logger and not self._muted:
                self._act(act, place, result, args, kwargs)
            return result

        if function is found:
            _replace(owner, name, found, wrapped)
        else:
            found.fn = wrapped  # type: ignore[union-attr] # it has just been read

    def _act(
        self, act: _Act, place: tuple[object, int], result: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> None:
        """Report in this process alone, and never raise into the training."""
        if os.getpid() != self._process:
            return
        self._place = place
        try:
            act(result, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - another version of a library may be anything
            text = f"autolog: a value was not reported: {type(error).__name__}: {error}"
            self._context.reporter.invalid.add("autolog", type(error).__name__, text)


def _replace(owner: object, name: str, old: object, new: object) -> None:
    """Set a function in its class or module, and in the packages around that have taken it over."""
    setattr(owner, name, new)
    package = owner.__name__ if isinstance(owner, ModuleType) else ""
    while package:
        package = package.rpartition(".")[0]
        around = sys.modules.get(package)
        if around is not None and vars(around).get(name) is old:
            setattr(around, name, new)


def _numbers(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{prefix}{name}.")
        elif (prefix or name not in _NEVER) and (isinstance(value, (int, float)) or _is_scalar(value)):
            yield f"{prefix}{name}", value


def _is_scalar(value: object) -> bool:
    """Tell whether a value is one of numpy, torch or the like with one element; a text of numpy is none."""
    size = getattr(value, "numel", None) or getattr(value, "size", None)
    return hasattr(value, "item") and (size() if callable(size) else size) == 1 and not isinstance(value, (str, bytes))


def _names_reported_in(script: str) -> frozenset[str]:
    """Return the metrics that calls of `report` in a script name."""
    with open(script, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and "report" in {getattr(node.func, "id", ""), getattr(node.func, "attr", "")}:
            found.update(keyword.arg for keyword in node.keywords if keyword.arg)
    return frozenset(found)
