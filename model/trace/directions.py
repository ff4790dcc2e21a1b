"""Translation directions, and which checkpoint serves which. Importable without torch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_CODE = re.compile(r"[A-Za-z]{1,20}(_[A-Za-z0-9]{1,20}){0,2}")


def is_code(code: object) -> bool:
    """Whether it names a language, or a group of them, in any of the published ways: de, deu_Latn, de_DE, ROMANCE."""
    return isinstance(code, str) and _CODE.fullmatch(code) is not None


def parse_direction(direction: str) -> tuple[str, str]:
    """"de-en" -> ("de", "en"), "eng_Latn-deu_Latn" likewise. ValueError for anything else."""
    parts = tuple(direction.split("-"))
    if len(parts) != 2 or not all(map(is_code, parts)) or parts[0] == parts[1]:
        raise ValueError(f"a direction is two different language codes such as 'de-en', found {direction!r}")
    return parts


@dataclass(frozen=True)
class Route:
    """One direction of one checkpoint that is served. direction: as checkpoints, traces and links write it, "de-en".
    label: what the API and the page's menu call it, unique among all that are served. Neither is taken apart elsewhere.
    """

    direction: str
    checkpoint: str
    label: str

    @property
    def source(self) -> str:
        """The code of the language that is translated."""
        return parse_direction(self.direction)[0]

    @property
    def target(self) -> str:
        """The code of the language that it is translated into."""
        return parse_direction(self.direction)[1]

    @property
    def is_first(self) -> bool:
        """Whether it is the first to serve its direction: its label is then the direction alone."""
        return self.label == self.direction


def routes(served: Iterable[tuple[str, Sequence[str]]]) -> tuple[Route, ...]:
    """From (checkpoint, its directions), in order. Where several serve a direction, the first one's label is the
    direction, the others' is "direction (checkpoint)". ValueError for two checkpoints of one name after the first."""
    found: dict[str, Route] = {}
    for checkpoint, directions in served:
        for direction in directions:
            label = f"{direction} ({checkpoint})" if direction in found else direction
            if label in found:
                raise ValueError(f"two checkpoints are called {checkpoint!r}, and both translate {direction}")
            found[label] = Route(direction, checkpoint, label)
    return tuple(found.values())


def find_route(among: Sequence[Route], direction: str, checkpoint: str) -> Route | None:
    """The route of this direction and checkpoint; else the first that serves the direction; else None."""
    serving = [route for route in among if route.direction == direction]
    return next((route for route in serving if route.checkpoint == checkpoint), serving[0] if serving else None)
