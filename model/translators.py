"""The translators of an app, by the labels of the routes (direction and checkpoint) that they serve."""

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
    """A mapping of a route's label to the Translator that serves it.

    all     every translator once, the app's first choice first
    routes  the listed routes; a model of many languages also serves its others, by labels of the same form
    """

    def __init__(self, translators: Sequence[Translator], *, guests: Sequence[Translator] = ()) -> None:
        """guests: those of `translators` that get a direction's plain label only if no other translator has it."""
        if not translators:
            raise ValueError("no translator was given")
        self.all = tuple(dict.fromkeys(translators))
        by_precedence = sorted(self.all, key=lambda translator: translator in guests)
        labelled = zip(
            list_routes((translator.name, translator.directions) for translator in by_precedence),
            (translator for translator in by_precedence for _ in translator.directions),
            strict=True,
        )
        served = sorted(labelled, key=lambda pair: self.all.index(pair[1]))
        self.routes = tuple(route for route, _ in served)
        self._by_label = {route.label: translator for route, translator in served}
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
        """Load the folders `models`, then every checkpoint folder inside `folder`.

        The latter keep their labels in links and the API, whatever `models` are. Raises ValueError if there is no
        checkpoint or one cannot be loaded.
        """
        paths = [*models, *sorted(path.parent for path in Path(folder).glob(f"*/{checkpoints.CONFIG}"))]
        if not paths:
            raise ValueError(f"no checkpoint in {folder}: expected folders with a {checkpoints.CONFIG}")
        loaded = [Translator.load(path, device, limits=limits) for path in paths]
        return cls(loaded, guests=loaded[: len(models)])

    def to(self, device: str) -> None:
        """Move every model to a device. Call it only before an app starts serving."""
        for translator in self.all:
            translator.to(torch.device(device))

    def lend(self, translator: Translator) -> None:
        """Let by_digest() find another translator, which is not listed, while something else refers to it."""
        self._lent[translator.digest] = translator

    def by_digest(self, digest: str) -> Translator | None:
        """Return the translator with these weights, lent or not; None if there is none."""
        return next((t for t in self.all if t.digest == digest), None) or self._lent.get(digest)

    def __getitem__(self, label: str) -> Translator:
        """Return the translator of a label, of a listed route or of a model of many languages, or raise Refusal."""
        route = self.route(label)
        return self._by_label.get(label) or next(t for t in self._many() if t.name == route.checkpoint)

    def route(self, label: str) -> Route:
        """Return the route of a label. Raises Refusal if there is none."""
        route = next((route for route in self.routes if route.label == label), None) or multilingual_route(
            label, [(t.name, t.languages) for t in self._many()]
        )
        if route is None:
            raise Refusal(
                "Unknown direction {direction}: there are {all}.",
                direction=f"{label!r:.80}",
                all=", ".join(self._by_label),
            )
        return route

    def find(self, direction: str, checkpoint: str) -> Route | None:
        """Return the route of a direction and checkpoint, else the first of the direction, else None."""
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
