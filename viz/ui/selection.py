"""The selected attention, and the model that made a translation."""

from __future__ import annotations

from dataclasses import dataclass

from model.trace import is_whole
from model.trace.kinds import AttentionKind
from model.trace.language import Refusal
from model.trace.translation import TranslationTrace
from model.translator import Translator
from model.translators import Translators
from viz.maps import patterns
from viz.maps.branches import Tree
from viz.ui.desk.fields import entry


@dataclass(frozen=True)
class Selection:
    """The attention being looked at. Layer and head count from 0; query and key are positions, or None."""

    kind: AttentionKind = AttentionKind.CROSS
    layer: int = 0
    head: int = 0
    query: int | None = None
    key: int | None = None

    @classmethod
    def from_plain(cls, data: object) -> Selection:
        """As the page says it. A Refusal for an unknown kind."""
        if not isinstance(data, dict):
            return cls()

        def position(name: str) -> int | None:
            value = data.get(name)
            return value if is_whole(value, 0) else None

        kind = entry(data, "kind", {kind.value: kind for kind in AttentionKind})
        return cls(kind, position("layer") or 0, position("head") or 0, position("query"), position("key"))

    def fitted(self, trace: TranslationTrace) -> Selection:
        """The same, inside the limits of this trace: its layers, heads and tokens."""
        kind = self.kind if self.kind in trace.kinds else trace.kinds[-1]
        maps = trace.maps(kind)
        queries, keys = maps.weights.shape[2:]
        return Selection(
            kind,
            min(self.layer, maps.num_layers - 1),
            min(self.head, maps.num_heads - 1),
            self.query if self.query is not None and self.query < queries else None,
            self.key if self.key is not None and self.key < keys else None,
        )


def most_telling(trace: TranslationTrace) -> Selection:
    """The head to begin with: viz.maps.patterns says which."""
    view = patterns.most_telling(trace)
    return Selection(view.kind, view.layer, view.head)


def serving(translators: Translators, made_by: TranslationTrace | Tree) -> Translator:
    """The translator whose model made this trace or tree. ValueError if it is no longer served."""
    found = translators.made(made_by.digest)
    if found is None:
        raise no_longer_served(made_by)
    return found


def no_longer_served(made_by: TranslationTrace | Tree) -> Refusal:
    """Why nothing more can be asked about it."""
    return Refusal(
        "The checkpoint of this translation, {name}, is not loaded: translate again.", name=made_by.checkpoint
    )
