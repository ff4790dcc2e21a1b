"""Result: the base of what experiments return, which adds a table, a file and a notebook's view.

A file is JSON, exact to the last bit: {"schema": "attention-atlas-result", "version": 1, "result": "Why", ..}, then the
fields by name. Arrays are nested lists, NaN is null, and tokens keep their kind and word.

>>> from attention_atlas.model.trace.why.effects import SmallestSet
>>> smallest = SmallestSet(frozenset({("cross", 2, 4)}), total=96, passes=120, verified=True)
>>> smallest.about()
'1 of 96 heads write the same translation'
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Self, Union, get_args, get_origin, get_type_hints

import numpy as np

from attention_atlas.model.files import replace_file, value_errors
from attention_atlas.model.trace.tokens import Token
from attention_atlas.model.trace.why.evidence import to_jsonable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Result"]

SCHEMA, VERSION = "attention-atlas-result", 1


class Result:
    """A base for dataclasses, which implement columns_of_table() and about()."""

    def columns_of_table(self) -> Mapping[str, object]:
        """Return the columns of to_frame() by name, all of equal length."""
        raise NotImplementedError

    def about(self) -> str:
        """Summarise the result in one line."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table. Needs pandas, which Gradio installs."""
        try:
            import pandas as pd  # only needed here
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("a table needs pandas: pip install pandas", name=error.name) from error
        return pd.DataFrame(self.columns_of_table())

    def _repr_html_(self) -> str | None:
        """The notebook's view; without pandas, notebooks fall back to repr()."""
        try:
            table = self.to_frame()
        except ModuleNotFoundError:
            return None
        return f"<p>{html.escape(self.about())}</p>" + table.to_html(float_format="%.3f", na_rep="", max_rows=60)

    def save(self, path: str | Path) -> None:
        """Write the result as JSON. ValueError for a name that ends in .npz, since only traces have that format."""
        if Path(path).suffix.lower() == ".npz":
            raise ValueError(f"a {type(self).__name__} is written as JSON, found {str(path)!r:.80}")
        data = {"schema": SCHEMA, "version": VERSION, "result": type(self).__name__, **to_jsonable(self, whole=True)}
        text = json.dumps(data, ensure_ascii=False, allow_nan=False)
        replace_file(Path(path), lambda partial: partial.write_text(text, encoding="utf-8"))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file of save(). ValueError, naming the file, for any other file."""
        with value_errors(f"{path} is no saved {cls.__name__}", ValueError, TypeError, KeyError, AttributeError):
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            if not isinstance(data, dict):
                raise ValueError(f"it holds {data!r:.80}")
            header = [data.pop(name, None) for name in ("schema", "version", "result")]
            if header != [SCHEMA, VERSION, cls.__name__]:
                raise ValueError("its schema, version and result are {!r:.80}, {!r:.80} and {!r:.80}".format(*header))
            return _read(cls, data)


def _read(type_: Any, value: Any) -> Any:
    """Read a value of this type from the result of to_jsonable(.., whole=True)."""
    origin, args = get_origin(type_), get_args(type_)
    if origin in (Union, UnionType):
        return _read_union(args, value)
    if origin is tuple:
        types = args[:1] * len(value) if args[1:] == (...,) else args
        return tuple(_read(part, item) for part, item in zip(types, value, strict=True))
    if origin is frozenset:
        return frozenset(_read(args[0], item) for item in value)
    if origin is dict:
        return {_read(args[0], key): _read(args[1], item) for key, item in value.items()}
    if type_ is np.ndarray:
        array = np.array(value)
        return array.astype(np.float64) if array.dtype == object else array
    if type_ is str and isinstance(value, list):
        return Token(*value)
    if is_dataclass(type_):
        types = get_type_hints(type_)
        return type_(**{name: _read(types[name], item) for name, item in value.items()})
    if isinstance(type_, type) and issubclass(type_, Enum):
        return type_(value)
    return value


def _read_union(types: tuple, value: Any) -> Any:
    """Read a value of one of these types: dataclasses are told apart by their fields, enums by their values."""
    if value is None and NoneType in types:
        return None
    for type_ in types:
        if is_dataclass(type_):
            if isinstance(value, dict) and set(value) == {field.name for field in fields(type_)}:
                return _read(type_, value)
        elif isinstance(type_, type) and issubclass(type_, Enum):
            if value in [member.value for member in type_]:
                return type_(value)
        elif type_ is not NoneType:
            return _read(type_, value)
    raise ValueError(f"{value!r:.80} is none of {', '.join(map(str, types))}")
