"""What every answer of an experiment can do: become a table, a file, a notebook's cell. Importable without torch.

The file is JSON, exact to the last bit: {"schema": "attention-atlas-result", "version": 1, "result": "Why", ..}, then
the fields by name. Arrays are nested lists, NaN is null, and a token says whether it is text, a symbol or a byte.

>>> from attention_atlas.model.trace.why.effects import SmallestSet
>>> found = SmallestSet(frozenset({("cross", 2, 4)}), total=96, passes=120, verified=True)
>>> found.about()
'1 of 96 heads write the same translation'
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Self, Union, get_args, get_origin, get_type_hints

import numpy as np

from attention_atlas.model.files import replace_file
from attention_atlas.model.trace.tokens import Token

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Result"]

SCHEMA, VERSION = "attention-atlas-result", 1


class Result:
    """For a dataclass, which says what its table is (columns by name, of equal length) and what it is about."""

    def columns_of_table(self) -> Mapping[str, object]:
        """Column -> its cells. For to_frame()."""
        raise NotImplementedError

    def about(self) -> str:
        """In a line, for whoever sees it in a notebook."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """A pandas table. Needs pandas, which Gradio brings."""
        try:
            import pandas as pd  # nothing else here needs it
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("a table needs pandas: pip install pandas", name=error.name) from error
        return pd.DataFrame(self.columns_of_table())

    def _repr_html_(self) -> str | None:
        """What a notebook shows of it; without pandas, what Python prints."""
        try:
            table = self.to_frame()
        except ModuleNotFoundError:
            return None
        return f"<p>{html.escape(self.about())}</p>" + table.to_html(float_format="%.3f", na_rep="", max_rows=60)

    def save(self, path: str | Path) -> None:
        """Write it as JSON; load() gives it back. ValueError for a name that says it is NPZ, as a trace's may be."""
        if Path(path).suffix.lower() == ".npz":
            raise ValueError(f"a {type(self).__name__} is written as JSON, found {str(path)!r:.80}")
        found = {"schema": SCHEMA, "version": VERSION, "result": type(self).__name__, **_written_fields(self)}
        text = json.dumps(found, ensure_ascii=False, allow_nan=False)
        replace_file(Path(path), lambda partial: partial.write_text(text, encoding="utf-8"))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file of save(). ValueError, naming the file, for anything else."""
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
            if not isinstance(found, dict):
                raise ValueError(f"it holds {found!r:.80}")
            told = [found.pop(name, None) for name in ("schema", "version", "result")]
            if told != [SCHEMA, VERSION, cls.__name__]:
                raise ValueError("its schema, version and result are {!r:.80}, {!r:.80} and {!r:.80}".format(*told))
            return _read(cls, found)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path} is no saved {cls.__name__}: {error}") from error


def _written_fields(value: Any) -> dict:
    return {field.name: _written(getattr(value, field.name)) for field in fields(value)}


def _written(value: Any) -> Any:
    if is_dataclass(value):
        return _written_fields(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Token):
        return [str(value), value.kind.value, value.word]
    if isinstance(value, np.ndarray | np.generic):
        return _written(value.tolist())
    if isinstance(value, Mapping):
        return {str(_written(key)): _written(one) for key, one in value.items()}
    if isinstance(value, frozenset):
        return sorted(map(_written, value))
    if isinstance(value, list | tuple):
        return [_written(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _read(type_: Any, value: Any) -> Any:
    """A value of this type from what _written() made of it."""
    kind, parts = get_origin(type_), get_args(type_)
    if kind in (Union, UnionType):
        return _read_one_of(parts, value)
    if kind is tuple:
        several = parts[:1] * len(value) if parts[1:] == (...,) else parts
        return tuple(_read(part, one) for part, one in zip(several, value, strict=True))
    if kind is frozenset:
        return frozenset(_read(parts[0], one) for one in value)
    if kind is dict:
        return {_read(parts[0], key): _read(parts[1], one) for key, one in value.items()}
    if type_ is np.ndarray:
        found = np.array(value)
        return found.astype(np.float64) if found.dtype == object else found
    if type_ is str and isinstance(value, list):
        return Token(*value)
    if is_dataclass(type_):
        types = get_type_hints(type_)
        return type_(**{name: _read(types[name], one) for name, one in value.items()})
    if isinstance(type_, type) and issubclass(type_, Enum):
        return type_(value)
    return value


def _read_one_of(types: tuple, value: Any) -> Any:
    """Several classes are told apart by their fields; several enums by their values."""
    if value is None and NoneType in types:
        return None
    for type_ in types:
        if is_dataclass(type_):
            if isinstance(value, dict) and set(value) == {field.name for field in fields(type_)}:
                return _read(type_, value)
        elif isinstance(type_, type) and issubclass(type_, Enum):
            if value in [one.value for one in type_]:
                return type_(value)
        elif type_ is not NoneType:
            return _read(type_, value)
    raise ValueError(f"{value!r:.80} is none of {', '.join(map(str, types))}")
