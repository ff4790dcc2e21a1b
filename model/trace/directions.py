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
    """ "de-en" -> ("de", "en"), "eng_Latn-deu_Latn" likewise. ValueError for anything else."""
    parts = tuple(direction.split("-"))
    if len(parts) != 2 or not all(map(is_code, parts)) or parts[0] == parts[1]:
        raise ValueError(f"a direction is two different language codes such as 'de-en', found {direction!r}")
    return parts


# ISO 639-3, as NLLB writes it, to ISO 639-1 for the languages of which this project has sentences or speaks first.
_SHORT = {"eng": "en", "deu": "de", "fra": "fr", "spa": "es", "zho": "zh", "arb": "ar", "hin": "hi", "rus": "ru"}


def language_of(code: str) -> str:
    """A code without its script or country, in two letters where this project knows them: deu_Latn, de_DE -> de."""
    language = code.split("_")[0]
    return _SHORT.get(language, language)


@dataclass(frozen=True)
class Languages:
    """What a model of many languages translates: from each of `sources` into each other of `targets`, both codes.
    ValueError for anything else."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in ("sources", "targets"):
            found = getattr(self, name)
            if not isinstance(found, (list, tuple)) or not found or not all(map(is_code, found)):
                raise ValueError(f"{name} of a model's languages are codes such as 'eng_Latn', found {found!r:.200}")
            object.__setattr__(self, name, tuple(found))

    def __contains__(self, direction: object) -> bool:
        """Whether it is one of them, "eng_Latn-deu_Latn"."""
        pair = direction.split("-") if isinstance(direction, str) else []
        return len(pair) == 2 and pair[0] in self.sources and pair[1] in self.targets and pair[0] != pair[1]

    def __len__(self) -> int:
        """How many languages there are on either side."""
        return len({*self.sources, *self.targets})

    def covering(self) -> tuple[str, ...]:
        """A few directions among which each language is, on each of its sides."""
        into = [f"{source}-{next((t for t in self.targets if t != source), source)}" for source in self.sources]
        out_of = [f"{next((s for s in self.sources if s != target), target)}-{target}" for target in self.targets]
        return tuple(direction for direction in dict.fromkeys((*into, *out_of)) if direction in self)


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


def unlisted(label: str, many: Iterable[tuple[str, Languages]]) -> Route | None:
    """The route of a label that routes() does not list, between two languages of a checkpoint of many. "direction": of
    the first that translates it; "direction (checkpoint)": of the one that is named."""
    direction, _, rest = label.partition(" (")
    for checkpoint, languages in many:
        if direction in languages and rest in ("", f"{checkpoint})"):
            return Route(direction, checkpoint, label)
    return None


def find_route(among: Sequence[Route], direction: str, checkpoint: str) -> Route | None:
    """The route of this direction and checkpoint; else the one that is called by the direction alone; else None."""
    serving = [route for route in among if route.direction == direction]
    return next((r for r in serving if r.checkpoint == checkpoint), next((r for r in serving if r.is_first), None))
