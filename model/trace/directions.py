"""Translation directions (language pairs), and which checkpoint serves which direction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_CODE = re.compile(r"[A-Za-z]{1,20}(_[A-Za-z0-9]{1,20}){0,2}")


def is_code(code: object) -> bool:
    """Whether `code` names a language or a group of languages, as in de, deu_Latn, de_DE or ROMANCE."""
    return isinstance(code, str) and _CODE.fullmatch(code) is not None


def parse_direction(direction: str) -> tuple[str, str]:
    """Split "de-en" into ("de", "en"); longer codes such as "eng_Latn-deu_Latn" too. ValueError for anything else."""
    parts = tuple(direction.split("-"))
    if len(parts) != 2 or not all(map(is_code, parts)) or parts[0] == parts[1]:
        raise ValueError(f"a direction is two different language codes such as 'de-en', found {direction!r}")
    return parts


# From ISO 639-3, as NLLB writes it, to ISO 639-1, for the languages that this project has sentences of.
_SHORT = {"eng": "en", "deu": "de", "fra": "fr", "spa": "es", "zho": "zh", "arb": "ar", "hin": "hi", "rus": "ru"}


def language_of(code: str) -> str:
    """Drop a code's script or country, and shorten known languages to two letters: deu_Latn, de_DE -> de."""
    language = code.split("_")[0]
    return _SHORT.get(language, language)


@dataclass(frozen=True)
class Languages:
    """The languages of a multilingual model, which translates from each source into each other target.

    ValueError unless both are non-empty lists of language codes.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in ("sources", "targets"):
            codes = getattr(self, name)
            if not isinstance(codes, (list, tuple)) or not codes or not all(map(is_code, codes)):
                raise ValueError(f"{name} of a model's languages are codes such as 'eng_Latn', found {codes!r:.200}")
            object.__setattr__(self, name, tuple(codes))

    def __contains__(self, direction: object) -> bool:
        """Whether the model translates a direction such as "eng_Latn-deu_Latn"."""
        pair = direction.split("-") if isinstance(direction, str) else []
        return len(pair) == 2 and pair[0] in self.sources and pair[1] in self.targets and pair[0] != pair[1]

    def __len__(self) -> int:
        """The number of languages on either side."""
        return len({*self.sources, *self.targets})

    def covering(self) -> tuple[str, ...]:
        """Return a few directions that together contain each language on each of its sides."""
        into = [f"{source}-{next((t for t in self.targets if t != source), source)}" for source in self.sources]
        out_of = [f"{next((s for s in self.sources if s != target), target)}-{target}" for target in self.targets]
        return tuple(direction for direction in dict.fromkeys((*into, *out_of)) if direction in self)


@dataclass(frozen=True)
class Route:
    """A direction that a checkpoint serves.

    direction  as checkpoints, traces and links write it, "de-en"
    label      its unique name in the API and in the page's menu
    """

    direction: str
    checkpoint: str
    label: str

    @property
    def source(self) -> str:
        """The code of the source language."""
        return parse_direction(self.direction)[0]

    @property
    def target(self) -> str:
        """The code of the target language."""
        return parse_direction(self.direction)[1]

    @property
    def is_first(self) -> bool:
        """Whether its checkpoint is the first that serves the direction, so that the label is the direction alone."""
        return self.label == self.direction


def list_routes(served: Iterable[tuple[str, Sequence[str]]]) -> tuple[Route, ...]:
    """Make the routes of (checkpoint, its directions) pairs, in order.

    If several checkpoints serve a direction, the label of the first is the direction, that of the others "direction
    (checkpoint)". ValueError if two later ones have the same name.
    """
    by_label: dict[str, Route] = {}
    for checkpoint, directions in served:
        for direction in directions:
            label = f"{direction} ({checkpoint})" if direction in by_label else direction
            if label in by_label:
                raise ValueError(f"two checkpoints are called {checkpoint!r}, and both translate {direction}")
            by_label[label] = Route(direction, checkpoint, label)
    return tuple(by_label.values())


def multilingual_route(label: str, models: Iterable[tuple[str, Languages]]) -> Route | None:
    """Return the route of a label between two languages of a multilingual model, or None.

    "direction" names the first model that translates it, "direction (checkpoint)" a certain one.
    """
    direction, _, rest = label.partition(" (")
    for checkpoint, languages in models:
        if direction in languages and rest in ("", f"{checkpoint})"):
            return Route(direction, checkpoint, label)
    return None


def find_route(routes: Sequence[Route], direction: str, checkpoint: str) -> Route | None:
    """Return the route of this direction and checkpoint, or else the direction's first route, or None."""
    serving = [route for route in routes if route.direction == direction]
    return next((r for r in serving if r.checkpoint == checkpoint), next((r for r in serving if r.is_first), None))
