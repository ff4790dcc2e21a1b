"""Tokenizers of whole words between blanks, for models trained on a few sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from attention_atlas.model.text.interface import TextTokenizer, check_utf8, with_kinds
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.tokens import Token
from attention_atlas.model.trace.words import SPACE

PAD, BEGIN, END = "<pad>", "<s>", "</s>"


class WordTokenizer(TextTokenizer):
    """One table for source and target: three symbols, then the words in the order of their first appearance.

    Encoding a word that the table lacks raises Refusal. A word spelled like a symbol is a word.
    """

    pad_id, begin_id, end_id = 0, 1, 2
    special_ids = frozenset((0, 1, 2))

    def __init__(self, sentences: Iterable[str]) -> None:
        words = dict.fromkeys(word for sentence in sentences for word in sentence.split())
        self.words = tuple(words)
        self._ids = {word: number for number, word in enumerate(self.words, len(self.special_ids))}
        self.pieces = with_kinds((PAD, BEGIN, END, *(SPACE + word for word in self.words)), self.special_ids)

    def encode(self, text: str) -> list[int]:
        """Return the ids of the words. Raises Refusal for a word that the table lacks."""
        check_utf8(text)
        for word in text.split():
            if word not in self._ids:
                raise Refusal(
                    "This model knows only the {n} words it was trained on; {word} is not one of them.",
                    n=len(self.words),
                    word=repr(word[:40]),
                )
        return [self._ids[word] for word in text.split()]

    def encode_joined(self, text: str) -> list[int]:
        """Return the same as encode(): text cannot continue a whole word."""
        return self.encode(text)

    def encode_source(self, text: str, target_language: str, source_language: str | None = None) -> list[int]:
        """Return the words' ids and `</s>`; the only direction needs no symbol."""
        return [*self.encode(text), self.end_id]

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(self.pieces[i].removeprefix(SPACE) for i in map(int, ids) if i not in self.special_ids)

    def write(self, folder: Path) -> dict:
        """Raise ValueError: a model with such a vocabulary is retrained by its recipe instead of saved."""
        raise ValueError("a vocabulary of whole words is not written to a checkpoint")


class TwoWordTokenizers(WordTokenizer):
    """A table of words for each side, which number their words independently."""

    def __init__(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        super().__init__(targets)
        self.source = WordTokenizer(sources)

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self.source.pieces), len(self.pieces)

    def encode_source(self, text: str, target_language: str, source_language: str | None = None) -> list[int]:
        return self.source.encode_source(text, target_language, source_language)

    def source_tokens(self, ids: Sequence[int], text: str) -> tuple[Token, ...]:
        return self.source.tokens(ids)

    def decode_source(self, ids: Iterable[int]) -> str:
        return self.source.decode(ids)
