"""Settings of libraries that can be read: the live value is what counts, however and wherever it was set."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from types import ModuleType

from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.items import LATEST, Item
from jupyter_autotrain.capture.state import library_settings
from jupyter_autotrain.capture.state.effects import Effect
from jupyter_autotrain.capture.state.libraries import UsedLibraries
from jupyter_autotrain.capture.state.paths import arguments, import_text, is_literal_value
from jupyter_autotrain.core.text_format import cut

_ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
_PRINTING = {
    "edgeitems": 3, "threshold": 1000, "floatmode": "maxprec", "precision": 8, "suppress": False, "linewidth": 75,
    "nanstr": "nan", "infstr": "inf", "sign": "-", "formatter": None, "legacy": False, "override_repr": None,
}  # fmt: skip
_DECIMAL = {"prec": 28, "rounding": "ROUND_HALF_EVEN", "Emin": -999999, "Emax": 999999, "capitals": 1, "clamp": 0}
_TRAPS = frozenset({"DivisionByZero", "InvalidOperation", "Overflow"})
_LOCALES = ("LC_COLLATE", "LC_MONETARY", "LC_NUMERIC", "LC_TIME")
_OF_PANDAS = ("pandas.options.", "pandas.set_option", "pandas.reset_option", "pandas.option_context")
_OF_WARNINGS = ("warnings.filterwarnings", "warnings.simplefilter", "warnings.resetwarnings")
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class LibrarySetting:
    """A setting that a library keeps for the whole process.

    Attributes:
        library: The module that keeps it.
        setters: How the full names of what sets it begin.
        read: Statements that make it what it is now; none while it is what a fresh process has. `{m}` is the module.
        is_for_all: True for what concerns every trial, whether or not its code names the library.
        is_known_by_text: True for what libraries and kernels set too: only what a cell has set is set again.
    """

    library: str
    setters: tuple[str, ...]
    read: Callable[[ModuleType], Iterator[str]]
    is_for_all: bool = False
    is_known_by_text: bool = False


def plain(
    library: str, getter: str, setter: str, default: str = "", *, is_for_all: bool = False, by_text: bool = False
) -> LibrarySetting:
    """Return a setting with one value.

    Args:
        library: As in `LibrarySetting`.
        getter: The function of the library, or the attribute, that gives the value.
        setter: The code that sets it to `{v}`.
        default: The value of a fresh process, written out.
        is_for_all: As in `LibrarySetting`.
        by_text: As `is_known_by_text` there.
    """

    def read(module: ModuleType) -> Iterator[str]:
        now = attrgetter(getter)(module)
        value = repr(now() if callable(now) else now)
        if value != default:
            yield f"{{m}}.{setter.replace('{v}', value)}"

    path = re.split(r"[ (]", setter)[0]
    return LibrarySetting(library, (f"{library}.{path}",), read, is_for_all, by_text)


def _numpy_errors(numpy: ModuleType) -> Iterator[str]:
    changed = {key: value for key, value in numpy.geterr().items() if value != _ERRORS.get(key)}
    if changed:
        yield f"{{m}}.seterr({arguments(changed)})"


def _numpy_printing(numpy: ModuleType) -> Iterator[str]:
    now = numpy.get_printoptions().items()
    changed = {key: value for key, value in now if value != _PRINTING.get(key, value) and is_literal_value(value)}
    if changed:
        yield f"{{m}}.set_printoptions({arguments(changed)})"


def pandas_options(*, is_plain: bool) -> Iterator[tuple[str, object]]:
    """Yield the options of pandas that are not as it sets them: those that can be written out, or the others."""
    known = getattr(sys.modules.get("pandas._config.config"), "_registered_options", {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some are deprecated
        for key, option in known.items():
            value = sys.modules["pandas"].get_option(key)
            is_default = value is option.defval or value == option.defval
            if not is_default and is_literal_value(value) is is_plain:
                yield key, value


def _pandas(_: ModuleType) -> Iterator[str]:
    for key, value in pandas_options(is_plain=True):
        yield f"{{m}}.set_option({key!r}, {value!r})"


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
    """Yield the statement that sets the program's arguments.

    There is none when they are still those that this kernel was started with.
    """
    name, *given = system.argv or [""]
    started = {part for word in system.orig_argv for part in (word, Path(word).stem)}
    is_own = {name, Path(name).stem, Path(name).parent.name} & started
    is_same = is_own and given == system.orig_argv[len(system.orig_argv) - len(given) :]
    if not is_same and (Path(name).stem, given[:1]) != ("ipykernel_launcher", ["-f"]):
        yield f"{{m}}.argv[:] = {system.argv!r}"


def _filters(warnings_: ModuleType) -> Iterator[str]:
    """Yield statements for the filters of warnings, with those that every process starts with among them."""
    yield "{m}.resetwarnings()"
    for action, message, category, module, line in reversed(warnings_.filters[1:]):  # without that of `_statements`
        words = [getattr(one, "pattern", one) or "" for one in (message, module)]
        if category.__module__ != "__main__" and getattr(sys.modules.get(category.__module__), category.__name__, None):
            name = f"{import_text(category.__module__)}.{category.__name__}"
            yield f"{{m}}.filterwarnings({action!r}, {words[0]!r}, {name}, {words[1]!r}, {line})"


def _logging(logging_: ModuleType) -> Iterator[str]:
    """Yield statements for the levels of loggers, and for the form of the root logger's lines."""
    handlers = [one for one in logging_.root.handlers if type(one) is logging_.StreamHandler and one.formatter]
    for handler in handlers[:1]:
        form = handler.formatter
        yield f"{{m}}.basicConfig(format={form._fmt!r}, datefmt={form.datefmt!r})"  # noqa: SLF001 - it has no public name
    for name, logger in [("", logging_.root), *logging_.root.manager.loggerDict.items()]:
        level = getattr(logger, "level", 0)
        if level != (logging_.WARNING if not name else 0):
            yield f"{{m}}.getLogger({name!r}).setLevel({level})"


SETTINGS = (
    LibrarySetting("warnings", _OF_WARNINGS, _filters, True, True),
    LibrarySetting(
        "logging",
        ("logging.getLogger().setLevel", "logging.basicConfig", "logging.config.dictConfig"),
        _logging,
        is_known_by_text=True,
    ),
    plain("gc", "get_threshold", "set_threshold(*{v})", is_for_all=True, by_text=True),
    plain("torch", "get_num_threads", "set_num_threads({v})", by_text=True),
    plain("sys", "getrecursionlimit", "setrecursionlimit({v})", "1000", is_for_all=True),
    LibrarySetting("sys", ("sys.argv",), _arguments, is_for_all=True),
    LibrarySetting("gc", ("gc.enable", "gc.disable"), _collector, is_for_all=True),
    LibrarySetting("locale", ("locale.setlocale",), _locale, is_for_all=True),
    plain("sys", "getswitchinterval", "setswitchinterval({v})", "0.005", is_for_all=True),
    plain("sys", "get_int_max_str_digits", "set_int_max_str_digits({v})", "4300", is_for_all=True),
    plain("socket", "getdefaulttimeout", "setdefaulttimeout({v})", "None", is_for_all=True),
    plain("logging", "root.manager.disable", "disable({v})", "0"),
    LibrarySetting(
        "multiprocessing", ("multiprocessing.set_start_method", "torch.multiprocessing.set_start_method"), _start_method
    ),
    plain("csv", "field_size_limit", "field_size_limit({v})", "131072"),
    LibrarySetting("decimal", ("decimal.getcontext()", "decimal.setcontext"), _decimal),
    LibrarySetting("numpy", ("numpy.seterr",), _numpy_errors),
    LibrarySetting("numpy", ("numpy.set_printoptions",), _numpy_printing),
    plain("numpy", "getbufsize", "setbufsize({v})", "8192"),
    LibrarySetting("pandas", _OF_PANDAS, _pandas),
    LibrarySetting("sklearn", ("sklearn.set_config",), _sklearn),
    plain("torch", "is_grad_enabled", "set_grad_enabled({v})", "True"),
    plain("torch", "get_float32_matmul_precision", "set_float32_matmul_precision({v})", "'highest'"),
    plain("torch", "get_default_device", "set_default_device({m}.{v})", "device(type='cpu')"),
    plain("torch", "backends.cudnn.deterministic", "backends.cudnn.deterministic = {v}", "False"),
    plain("torch", "backends.cudnn.benchmark", "backends.cudnn.benchmark = {v}", "False"),
    plain("torch", "backends.cudnn.enabled", "backends.cudnn.enabled = {v}", "True"),
    *(LibrarySetting("torch", setters, read) for setters, read in library_settings.SETTINGS),
    LibrarySetting("matplotlib", library_settings.SETTERS, library_settings.read),
)


def restore_code(effects: Sequence[Effect], uses: UsedLibraries) -> Iterator[tuple[Item | None, Difference | None]]:
    """Yield the items that set the changed settings again, and the differences that a cell's text shows.

    Args:
        effects: What the cells did.
        uses: What the trial uses.
    """
    for setting in SETTINGS:
        statements = _statements(setting) if setting.is_for_all or uses.reaches(setting.library) else []
        fitting = [one for one in effects if one.path.startswith(setting.setters) and not one.is_undone]
        if not statements or (setting.is_known_by_text and not fitting):
            continue
        text = "\n".join(statements).replace("{m}", import_text(setting.library))
        position = fitting[-1].position if fitting else (LATEST[0] - 1, 0, 0)
        item = Item(f"setting {setting.setters[0]}", "state", text, position=position)
        shown = cut("; ".join(statements).replace("{m}", setting.library), _SHOWN)
        yield item, Difference(DifferenceKind.REPLAYED, shown, fitting[-1].cell.label) if fitting else None


def covers(effect: Effect) -> bool:
    """Tell whether a call or assignment sets something that is read live."""
    return any(effect.path.startswith(one.setters) for one in SETTINGS)


def _statements(setting: LibrarySetting) -> list[str]:
    if setting.library not in sys.modules:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a library may call a setting of its own deprecated
        try:
            return list(setting.read(sys.modules[setting.library]))
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):
            return []  # a version that has no such setting
