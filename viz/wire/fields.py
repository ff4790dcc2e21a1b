"""Read the fields of what the page sends. Anything may come: a malformed field is a Refusal that names it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from attention_atlas.model.trace import check_integer, is_integer, is_number
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal

Data = Mapping[str, object]
Value = TypeVar("Value")
Default = TypeVar("Default")
_NEEDED = object()


def whole(data: Data, name: str, default: object = _NEEDED) -> int:
    """A whole number; the default where there is no such field."""
    value = _given(data, name, default)
    return value if is_integer(value) else _refuse(name, value)


def wholes(data: Data, name: str) -> list[int]:
    """A list of whole numbers."""
    value = _given(data, name, _NEEDED)
    return [whole({name: one}, name) for one in value] if isinstance(value, list) else _refuse(name, value)


def each(data: Data, name: str, read: Callable[[object], Value]) -> list[Value]:
    """A list, each entry of it as `read` makes it of what came."""
    value = _given(data, name, _NEEDED)
    try:
        return [read(one) for one in value] if isinstance(value, list | tuple) else _refuse(name, value)
    except (ValueError, TypeError):
        _refuse(name, value)


def kind_and_layer(value: object) -> tuple[AttentionKind, int]:
    """For each(): [kind, layer]."""
    named, layer = value
    return AttentionKind(named), check_integer("layer", layer)


def head(value: object) -> tuple[AttentionKind, int, int]:
    """For each(): [kind, layer, head]."""
    named, layer, number = value
    return AttentionKind(named), check_integer("layer", layer), check_integer("head", number)


def number(data: Data, name: str, default: object = _NEEDED) -> float:
    """A number; the default where there is no such field."""
    value = _given(data, name, default)
    able = is_number(value) and abs(value) < 1e300
    return float(value) if able else _refuse(name, value)


def text(data: Data, name: str, default: object = _NEEDED) -> str:
    """A text; the default where there is no such field."""
    value = _given(data, name, default)
    return value if isinstance(value, str) else _refuse(name, value)


def entry(data: Data, name: str, entries: Mapping[str, Default]) -> Default:
    """What a table has under the name that the field says."""
    value = _given(data, name, _NEEDED)
    return entries[value] if isinstance(value, str) and value in entries else _refuse(name, value)


def option(data: Data, entries: Sequence[Value]) -> Value:
    """The entry of a menu that the page names by its number."""
    at = whole(data, "option")
    return entries[at] if 0 <= at < len(entries) else _refuse("option", at)


def _given(data: Data, name: str, default: object) -> object:
    return data.get(name) if default is _NEEDED else data.get(name, default)


def _refuse(name: str, value: object):
    raise Refusal("The page asked for something unknown: {what}", what=f"{name} {value!r:.80}")
