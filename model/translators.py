"""All models that are served, by the names of what they translate."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch

from attention_atlas.model import checkpoint as checkpoints
from attention_atlas.model.serve.limits import BatchLimits
from attention_atlas.model.trace.directions import Route, find_route, list_routes, multilingual_route
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.translator import Translator


class Translators(Mapping[str, Translator]):
    """The label of a Route -> the Translator that serves it. all: each of them once, the app's first one first; routes:
    those that are listed. A model of many languages also serves the others, by the same form of label. guests: those
    of `translators` that come after all others when a direction's plain name is given away."""

    def __init__(self, translators: Sequence[Translator], *, guests: Sequence[Translator] = ()) -> None:
        if not translators:
            raise ValueError("no translator was given")
        self.all = tuple(dict.fromkeys(translators))
        named = sorted(self.all, key=lambda translator: translator in guests)
        labelled = zip(
            list_routes((translator.name, translator.directions) for translator in named),
            (translator for translator in named for _ in translator.directions),
            strict=True,
        )
        shown = sorted(labelled, key=lambda pair: self.all.index(pair[1]))
        self.routes = tuple(route for route, _ in shown)
        self._by_label = {route.label: translator for route, translator in shown}
        self._lent: weakref.WeakValueDictionary[str, Translator] = weakref.WeakValueDictionary()  # by digest

    @classmethod
    def load(
        cls,
        folder: str | Path,
        device: str | None = None,
        *,
        limits: BatchLimits = BatchLimits(),
        models: Sequence[Path] = (),
    ) -> Translators:
        """The folders `models`, then every checkpoint folder inside `folder`; these keep their names in links and the
        API, whatever else is served. ValueError if there is none or one cannot be loaded."""
        found = [*models, *sorted(path.parent for path in Path(folder).glob(f"*/{checkpoints.CONFIG}"))]
        if not found:
            raise ValueError(f"no checkpoint in {folder}: expected folders with a {checkpoints.CONFIG}")
        loaded = [Translator.load(path, device, limits=limits) for path in found]
        return cls(loaded, guests=loaded[: len(models)])

    def to(self, device: str) -> None:
        """Move every model. For an app that is not serving yet."""
        for translator in self.all:
            translator.to(torch.device(device))

    def lend(self, translator: Translator) -> None:
        """Let made() find one more, as long as somebody else holds it. It stands in no list."""
        self._lent[translator.digest] = translator

    def made(self, digest: str) -> Translator | None:
        """The one with these weights, lent or not."""
        return next((t for t in self.all if t.digest == digest), None) or self._lent.get(digest)

    def __getitem__(self, label: str) -> Translator:
        """The one for a listed label, or one between two of a model's many languages. ValueError if none does."""
        route = self.route(label)
        return self._by_label.get(label) or next(t for t in self._many() if t.name == route.checkpoint)

    def route(self, label: str) -> Route:
        """The route of this label. ValueError if none has it."""
        found = next((route for route in self.routes if route.label == label), None) or multilingual_route(
            label, [(t.name, t.languages) for t in self._many()]
        )
        if found is None:
            raise Refusal(
                "Unknown direction {direction}: there are {all}.",
                direction=f"{label!r:.80}",
                all=", ".join(self._by_label),
            )
        return found

    def find(self, direction: str, checkpoint: str) -> Route | None:
        """The route of this direction and checkpoint; else the first that serves the direction; else None."""
        many = [(t.name, t.languages) for t in self._many()]
        exact = multilingual_route(f"{direction} ({checkpoint})", many)
        listed = find_route(self.routes, direction, checkpoint)
        return (
            listed
            if listed and (exact is None or listed.checkpoint == checkpoint)
            else exact or multilingual_route(direction, many)
        )

    def _many(self) -> list[Translator]:
        return [translator for translator in self.all if translator.languages]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_label)

    def __len__(self) -> int:
        return len(self._by_label)
