"""Plain data, pickled: definitions by reference into the script, objects shared by several names kept shared."""

from __future__ import annotations

import ctypes
import hashlib
from array import array
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import CodeType

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.values.array_layout import ArrayLayout
from jupyter_autotrain.capture.values.memory import Span, span
from jupyter_autotrain.capture.values.pickler import PickleContext, ValuePickler
from jupyter_autotrain.capture.values.stream import LimitError, PickleStream
from jupyter_autotrain.capture.values.unpicklable import UnpicklableError
from jupyter_autotrain.errors import AutotrainError

_LONGEST_FILE_NAME = 100


@dataclass(frozen=True, slots=True)
class Pickled:
    """One pickle.

    Attributes:
        content: The bytes.
        refers: Names of the script's own functions and classes that must exist before it is read.
        uses: Globals that functions inside it read when they are called.
        modules: Modules that classes and functions inside it are imported from.
        spans: Where its arrays lie.
        pickler: What wrote it; holds every object inside, so that no passing object takes the identity of another.
        again: Whether the content is not whole, because arrays in it lie in the same memory.
        copies: In which way something in it is only a copy of what is here.
        emptied: Functions whose cached results stay here.
        left_out: Attributes of instances that stay here.
        codes: The code of functions inside it.
    """

    content: bytes = b""
    refers: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    spans: tuple[Span, ...] = ()
    pickler: ValuePickler | None = None
    again: bool = False
    copies: tuple[str, ...] = ()
    emptied: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    codes: frozenset[CodeType] = frozenset()

    def parts(self) -> list[int]:
        """The identities of what can change inside, to see what is shared with other names."""
        return [] if self.pickler is None else self.pickler.shareable()

    def buffers(self) -> list[Span]:
        """Where its bytearrays and the like lie, which arrays may be views of."""
        return [] if self.pickler is None else list(_buffers(self.pickler.kept()))


def dump(value: object, context: PickleContext, stream: PickleStream, *, is_joined: bool = False) -> Pickled:
    """Pickle a value.

    Args:
        value: What to pickle.
        context: What it refers to.
        stream: Where to write it; it counts the bytes.
        is_joined: Whether the memory of all arrays is known.

    Raises:
        UnpicklableError: Something in it cannot be pickled.
        LimitError: It has more bytes than may travel.
    """
    pickler = ValuePickler(stream, context, ArrayLayout(context.memory, is_joined=is_joined))
    try:
        pickler.dump(value)
    except (LimitError, AutotrainError):
        raise
    except RecursionError:
        raise UnpicklableError("it is nested too deeply") from None
    except Exception as error:  # noqa: BLE001 - any class may raise anything while it is pickled
        raise UnpicklableError(looking.words_of(error)) from None
    return Pickled(
        stream.content(),
        refers=frozenset(pickler.refers),
        uses=frozenset(pickler.uses),
        modules=frozenset(pickler.modules),
        spans=tuple(pickler.layout.spans),
        pickler=pickler,
        again=pickler.layout.again,
        copies=tuple(pickler.layout.copies),
        emptied=frozenset(pickler.emptied),
        left_out=frozenset(pickler.left_out),
        codes=frozenset(pickler.codes),
    )


def _buffers(values: Iterable[object]) -> Iterator[Span]:
    """Where objects lie whose memory arrays can be views of."""
    for value in values:
        if isinstance(value, bytearray) and value:
            address = ctypes.addressof(ctypes.c_char.from_buffer(value))
            yield span(address, (len(value),), (1,), 1, value)
        elif isinstance(value, array) and value:
            yield span(value.buffer_info()[0], (len(value),), (value.itemsize,), value.itemsize, value)


def sharing(parts: Mapping[str, Iterable[int]]) -> list[tuple[str, ...]]:
    """Group names whose values share objects, such as a model and its optimizer; they must be pickled together."""
    group: dict[str, str] = {name: name for name in parts}
    owner: dict[int, str] = {}

    def root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    for name in parts:
        for part in parts[name]:
            group[root(name)] = root(owner.setdefault(part, name))
    together: dict[str, list[str]] = {}
    for name in parts:
        together.setdefault(root(name), []).append(name)
    return [tuple(names) for names in together.values()]


def file_name(names: Sequence[str], others: Container[str] = ()) -> str:
    """The name of the pickle that holds these names' values, such that every file system takes it.

    Args:
        names: The names.
        others: File names that are taken, in small letters: `X` and `x` are one file on some systems.
    """
    name = names[0] if len(names) == 1 else f"{names[0]}_and_{len(names) - 1}"
    if not name.isascii() or len(name) > _LONGEST_FILE_NAME:
        name = f"data_{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return next(one for n in count() if (one := f"{name}_{n}" if n else name).lower() not in others)


def embed(names: Iterable[str], namespace: Mapping[str, object]) -> object:
    """What to pickle for a group of names: the value of one, or a tuple of all."""
    values = tuple(namespace[name] for name in names)
    return values[0] if len(values) == 1 else values
