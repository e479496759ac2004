"""Settings of libraries that can be read: the live value is what counts, however and wherever it was set."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from types import ModuleType

from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.items import LATEST, Item
from jupyter_autotrain.capture.state import plotting, tensors
from jupyter_autotrain.capture.state.effects import Effect
from jupyter_autotrain.capture.state.literals import arguments, is_literal_value
from jupyter_autotrain.capture.state.paths import import_text
from jupyter_autotrain.capture.state.uses import UsedLibraries
from jupyter_autotrain.core.text_format import cut

_ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
_PRINTING = {
    "edgeitems": 3, "threshold": 1000, "floatmode": "maxprec", "precision": 8, "suppress": False, "linewidth": 75,
    "nanstr": "nan", "infstr": "inf", "sign": "-", "formatter": None, "legacy": False, "override_repr": None,
}  # fmt: skip
_DECIMAL = {"prec": 28, "rounding": "ROUND_HALF_EVEN", "Emin": -999999, "Emax": 999999, "capitals": 1, "clamp": 0}
_TRAPS = frozenset({"DivisionByZero", "InvalidOperation", "Overflow"})
_LOCALES = ("LC_COLLATE", "LC_MONETARY", "LC_NUMERIC", "LC_TIME")
_OF_PANDAS = ("pandas.set_option", "pandas.reset_option", "pandas.option_context")
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class LibrarySetting:
    """Something that a library keeps for the whole process.

    Attributes:
        library: The module that keeps it.
        setters: How the full names of what sets it begin.
        read: Statements that make it what it is now; none while it is what a fresh process has. `{m}` is the module.
        is_for_all: True for what concerns every trial, whether or not its code names the library.
    """

    library: str
    setters: tuple[str, ...]
    read: Callable[[ModuleType], Iterator[str]]
    is_for_all: bool = False


def plain(library: str, getter: str, setter: str, default: object, *, is_for_all: bool = False) -> LibrarySetting:
    """A setting with one value: what gives it, or holds it, and the function that sets it."""

    def read(module: ModuleType) -> Iterator[str]:
        now = attrgetter(getter)(module)
        value = now() if callable(now) else now
        if value != default:
            yield f"{{m}}.{setter}({value!r})"

    return LibrarySetting(library, (f"{library}.{setter}",), read, is_for_all)


def _numpy_errors(numpy: ModuleType) -> Iterator[str]:
    changed = {key: value for key, value in numpy.geterr().items() if value != _ERRORS.get(key)}
    if changed:
        yield f"{{m}}.seterr({arguments(changed)})"


def _numpy_printing(numpy: ModuleType) -> Iterator[str]:
    now = numpy.get_printoptions().items()
    changed = {key: value for key, value in now if value != _PRINTING.get(key, value) and is_literal_value(value)}
    if changed:
        yield f"{{m}}.set_printoptions({arguments(changed)})"


def _sklearn(sklearn: ModuleType) -> Iterator[str]:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only notebooks with sklearn pay

    with ThreadPoolExecutor(1) as fresh:  # a new thread has the defaults
        default = fresh.submit(sklearn.get_config).result()
    changed = {key: value for key, value in sklearn.get_config().items() if value != default.get(key)}
    if changed and is_literal_value(changed):
        yield f"{{m}}.set_config({arguments(changed)})"


def _decimal(decimal: ModuleType) -> Iterator[str]:
    context = decimal.getcontext()
    for name, default in _DECIMAL.items():
        if (value := getattr(context, name)) != default:
            yield f"{{m}}.getcontext().{name} = {value!r}"
    for signal, is_trapped in context.traps.items():
        if bool(is_trapped) != (signal.__name__ in _TRAPS):
            yield f"{{m}}.getcontext().traps[{{m}}.{signal.__name__}] = {bool(is_trapped)}"


def _collector(gc: ModuleType) -> Iterator[str]:
    if not gc.isenabled():
        yield "{m}.disable()"


def _locale(locale: ModuleType) -> Iterator[str]:
    for name in _LOCALES:
        if (value := locale.setlocale(getattr(locale, name))) != "C":
            yield f"{{m}}.setlocale({{m}}.{name}, {value!r})"


def _start_method(multiprocessing: ModuleType) -> Iterator[str]:
    method = multiprocessing.get_start_method(allow_none=True)
    if method not in {None, multiprocessing.get_all_start_methods()[0]}:
        yield f"{{m}}.set_start_method({method!r}, force=True)"


def _arguments(system: ModuleType) -> Iterator[str]:
    """The arguments of the program, unless they are still those that this kernel was started with."""
    name, *given = system.argv or [""]
    started = {part for word in system.orig_argv for part in (word, Path(word).stem)}
    is_own = {name, Path(name).stem, Path(name).parent.name} & started
    is_same = is_own and given == system.orig_argv[len(system.orig_argv) - len(given) :]
    if not is_same and (Path(name).stem, given[:1]) != ("ipykernel_launcher", ["-f"]):
        yield f"{{m}}.argv[:] = {system.argv!r}"


SETTINGS = (
    plain("sys", "getrecursionlimit", "setrecursionlimit", 1000, is_for_all=True),
    LibrarySetting("sys", ("sys.argv",), _arguments, is_for_all=True),
    LibrarySetting("gc", ("gc.enable", "gc.disable"), _collector, is_for_all=True),
    LibrarySetting("locale", ("locale.setlocale",), _locale, is_for_all=True),
    plain("sys", "getswitchinterval", "setswitchinterval", 0.005, is_for_all=True),
    plain("sys", "get_int_max_str_digits", "set_int_max_str_digits", 4300, is_for_all=True),
    plain("socket", "getdefaulttimeout", "setdefaulttimeout", None, is_for_all=True),
    plain("logging", "root.manager.disable", "disable", 0),
    LibrarySetting(
        "multiprocessing", ("multiprocessing.set_start_method", "torch.multiprocessing.set_start_method"), _start_method
    ),
    plain("csv", "field_size_limit", "field_size_limit", 128 * 1024),
    LibrarySetting("decimal", ("decimal.getcontext()", "decimal.setcontext"), _decimal),
    LibrarySetting("numpy", ("numpy.seterr",), _numpy_errors),
    LibrarySetting("numpy", ("numpy.set_printoptions",), _numpy_printing),
    plain("numpy", "getbufsize", "setbufsize", 8192),
    LibrarySetting("sklearn", ("sklearn.set_config",), _sklearn),
    plain("torch", "is_grad_enabled", "set_grad_enabled", True),
    plain("torch", "get_float32_matmul_precision", "set_float32_matmul_precision", "highest"),
    *(LibrarySetting("torch", setters, read) for setters, read in tensors.SETTINGS),
    LibrarySetting("matplotlib", plotting.SETTERS, plotting.read),
)


def restore_code(effects: Sequence[Effect], uses: UsedLibraries) -> Iterator[tuple[Item | None, Difference | None]]:
    """What sets the changed settings again, and the differences: those that a cell's text shows.

    Args:
        effects: What the cells did.
        uses: What the trial uses.
    """
    for setting in SETTINGS:
        module = sys.modules.get(setting.library)
        statements = _statements(setting, module) if module is not None else []
        if not statements or not (setting.is_for_all or uses.reaches(setting.library)):
            continue
        last = next((effect for effect in reversed(effects) if effect.path.startswith(setting.setters)), None)
        text = "\n".join(statements).replace("{m}", import_text(setting.library))
        position = last.position if last else (LATEST[0] - 1, 0, 0)
        item = Item(f"setting {setting.setters[0]}", "state", text, position=position)
        shown = cut("; ".join(statements).replace("{m}", setting.library), _SHOWN)
        yield item, Difference(DifferenceKind.REPLAYED, shown, last.scope.label) if last else None


def options_of_pandas() -> Iterator[tuple[str, object]]:
    """The full name and value of each that is not as pandas sets it."""
    known = getattr(sys.modules.get("pandas._config.config"), "_registered_options", {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some are deprecated
        now = {key: sys.modules["pandas"].get_option(key) for key in known}
    for key, value in now.items():
        if value is not known[key].defval and value != known[key].defval:
            yield f"pandas.options.{key}", value


def functions_of_numpy() -> Iterator[tuple[str, object, str]]:
    """What numpy calls to print and on errors: the name, the value, and how it gets the value `{v}`."""
    numpy = sys.modules["numpy"]
    if (formatter := numpy.get_printoptions()["formatter"]) is not None:
        yield "numpy.set_printoptions.formatter", formatter, '__import__("numpy").set_printoptions(formatter={v})'
    if (called := numpy.geterrcall()) is not None:
        yield "numpy.seterrcall", called, '__import__("numpy").seterrcall({v})'


def covers(effect: Effect) -> bool:
    """Whether a call or assignment sets something that is read live."""
    return effect.path.startswith(_OF_PANDAS) or any(effect.path.startswith(one.setters) for one in SETTINGS)


def _statements(setting: LibrarySetting, module: ModuleType) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a library may call a setting of its own deprecated
        try:
            return list(setting.read(module))
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):
            return []  # a version that has no such setting
