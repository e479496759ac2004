"""Values of header keys that are one of several words."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from jupyter_autotrain.header.faults import UnfitError, expected_instead


@dataclass(frozen=True)
class OneOf:
    """Annotates text that must be one of `names`; `others` are further spellings of them, in lower case."""

    names: tuple[str, ...]
    others: tuple[tuple[str, str], ...] = ()

    def read(self, value: object) -> str:
        """The name that is meant.

        Raises:
            UnfitError: When none is.
        """
        known = {name: name for name in self.names} | dict(self.others)
        word = str(value) if isinstance(value, str | int) else ""
        if word.lower() not in known:
            raise UnfitError(expected_instead(word, self.names))
        return known[word.lower()]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, _: CoreSchema, __: GetJsonSchemaHandler) -> dict[str, object]:
        return {"type": "string", "enum": list(self.names)}


@dataclass(frozen=True)
class ShortForm:
    """Annotates a section that one text may stand for: the value of its key `key`, one of `texts`."""

    key: str
    texts: OneOf

    def read(self, value: object) -> object:
        """The section that is meant.

        Raises:
            UnfitError: When the text is none of those known.
        """
        return {self.key: self.texts.read(value)} if isinstance(value, str) else value

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        return {"anyOf": [{"type": "string", "enum": list(self.texts.names)}, handler(schema)]}
