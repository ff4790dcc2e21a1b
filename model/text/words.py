"""Tokenizers of whole words between blanks: for networks trained on the page, and for courses' vocabularies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from attention_atlas.model.files import MAX_VOCABULARY_BYTES, read_bytes, replace_file
from attention_atlas.model.text.interface import TextTokenizer, check_utf8, with_kinds
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.tokens import Token
from attention_atlas.model.trace.words import SPACE

PAD, BEGIN, END, UNKNOWN = "<pad>", "<s>", "</s>", "<unk>"
FILE = "words.txt"


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


class WordVocabulary(TextTokenizer):
    """One table of whole words for all languages of a checkpoint, as in courses; any other word becomes `<unk>`.

    The symbols are <pad>, <s>, </s>, <unk> and one for each target language, such as `<2en>`. Text is split at blanks:
    punctuation is a word of its own only where the text has a blank before it.
    """

    pad_id, begin_id, end_id, unknown_id = 0, 1, 2, 3

    def __init__(self, words: Sequence[str], languages: Sequence[str]) -> None:
        symbols = (PAD, BEGIN, END, UNKNOWN, *(f"<2{language}>" for language in languages))
        self.words, self.languages = tuple(words), tuple(languages)
        self.language_ids = {language: i for i, language in enumerate(languages, self.unknown_id + 1)}
        self.special_ids = frozenset(range(len(symbols)))
        self._ids = {word: i for i, word in enumerate(self.words, len(symbols))}
        self.pieces = with_kinds((*symbols, *(SPACE + word for word in self.words)), self.special_ids)

    @classmethod
    def train(cls, sentences: Iterable[str], *, vocabulary_size: int, languages: Sequence[str]) -> WordVocabulary:
        """Return the most frequent words of the sentences: at most vocabulary_size pieces, symbols included."""
        counts = Counter(word for sentence in sentences for word in sentence.split())
        room = vocabulary_size - cls.unknown_id - 1 - len(languages)
        if room < 1:
            raise ValueError(f"a vocabulary of words has its symbols and at least one word, found {vocabulary_size}")
        return cls([word for word, _ in counts.most_common(room)], languages)

    @classmethod
    def read(cls, folder: Path, described: dict) -> WordVocabulary:
        """Read what write() wrote. Raises ValueError for anything else."""
        languages = described.get("languages")
        if not isinstance(languages, list) or not all(isinstance(language, str) for language in languages):
            raise ValueError(f"the languages of a vocabulary of words are a list, found {languages!r:.100}")
        words = read_bytes(folder / FILE, MAX_VOCABULARY_BYTES).decode("utf-8").split("\n")
        if len(set(words)) < len(words) or any(word.split() != [word] for word in words):
            raise ValueError(f"{folder / FILE} must have one word a line, and none twice")
        return cls(words, languages)

    def write(self, folder: Path) -> dict:
        replace_file(folder / FILE, lambda path: path.write_bytes("\n".join(self.words).encode()))
        return {"kind": "words", "languages": list(self.languages)}

    def encode(self, text: str) -> list[int]:
        """Return the ids of the words, `<unk>` for those that the table lacks."""
        check_utf8(text)
        return [self._ids.get(word, self.unknown_id) for word in text.split()]

    def encode_joined(self, text: str) -> list[int]:
        """Return the same as encode(): text cannot continue a whole word."""
        return self.encode(text)

    def encode_source(self, text: str, target_language: str, source_language: str | None = None) -> list[int]:
        """Return `<2xx>`, the words' ids, `</s>`. Raises ValueError for a language without a symbol."""
        if target_language not in self.language_ids:
            raise ValueError(f"the vocabulary has no symbol <2{target_language}>")
        return [self.language_ids[target_language], *self.encode(text), self.end_id]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the words; an unknown one is `<unk>`."""
        word_ids = (i for i in map(int, ids) if i == self.unknown_id or i not in self.special_ids)
        return " ".join(self.pieces[i].removeprefix(SPACE) for i in word_ids)
