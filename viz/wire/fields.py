"""Readers of the fields that the page sends. A malformed or missing field raises a Refusal that names it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, TypeVar

from attention_atlas.model.trace import check_integer, is_integer, is_number
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal

Data = Mapping[str, object]
Value = TypeVar("Value")


def read_integer(data: Data, name: str, default: object = None) -> int:
    """Return an integer, or the default (None: the field is required) if the field is missing."""
    value = data.get(name, default)
    return value if is_integer(value) else _refuse(name, value)


def read_integers(data: Data, name: str) -> list[int]:
    """Return a list of integers."""
    value = data.get(name)
    return value if isinstance(value, list) and all(map(is_integer, value)) else _refuse(name, value)


def read_list(data: Data, name: str, parse: Callable[[object], Value]) -> list[Value]:
    """Return a list with each entry parsed; `parse` raises ValueError or TypeError for a malformed one."""
    value = data.get(name)
    try:
        return [parse(item) for item in value] if isinstance(value, list | tuple) else _refuse(name, value)
    except (ValueError, TypeError):
        _refuse(name, value)


def parse_layer(value: object) -> tuple[AttentionKind, int]:
    """Parse [kind, layer], for read_list()."""
    kind, layer = value
    return AttentionKind(kind), check_integer("layer", layer)


def parse_head(value: object) -> tuple[AttentionKind, int, int]:
    """Parse [kind, layer, head], for read_list()."""
    kind, layer, head = value
    return AttentionKind(kind), check_integer("layer", layer), check_integer("head", head)


def read_number(data: Data, name: str, default: object = None) -> float:
    """Return a number, or the default (None: the field is required) if the field is missing."""
    value = data.get(name, default)
    return float(value) if is_number(value) and abs(value) < 1e300 else _refuse(name, value)


def read_text(data: Data, name: str, default: object = None) -> str:
    """Return a text, or the default (None: the field is required) if the field is missing."""
    value = data.get(name, default)
    return value if isinstance(value, str) else _refuse(name, value)


def read_entry(data: Data, name: str, entries: Mapping[str, Value]) -> Value:
    """Return the entry of a table whose key the field holds."""
    value = data.get(name)
    return entries[value] if isinstance(value, str) and value in entries else _refuse(name, value)


def read_option(data: Data, options: Sequence[Value]) -> Value:
    """Return the option of a menu whose index is in the field "option"."""
    index = read_integer(data, "option")
    return options[index] if 0 <= index < len(options) else _refuse("option", index)


def _refuse(name: str, value: object) -> NoReturn:
    raise Refusal("The page asked for something unknown: {what}", what=f"{name} {value!r:.80}")
