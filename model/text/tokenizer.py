"""The tokenizer of this project's checkpoints: a SentencePiece model with byte fallback and control symbols."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from pathlib import Path

import sentencepiece

from attention_atlas.model.files import MAX_VOCABULARY_BYTES, read_bytes, replace_file, value_errors
from attention_atlas.model.text.interface import TextTokenizer, check_utf8, with_kinds
from attention_atlas.model.text.splitters import SPACE, SentencePieces

PAD, BEGIN, END, UNKNOWN = "<pad>", "<s>", "</s>", "<unk>"
FILE = "tokenizer.model"
_LANGUAGE_SYMBOL = re.compile(r"<2([a-z]{2,8})>")
_PRIVATE_USE = range(0xF0000, 0xFFFFE)  # of plane 15: more characters than any text this project accepts


class Tokenizer(TextTokenizer):
    """One vocabulary for every language of a checkpoint.

    Any text can be encoded: characters that the pieces cannot spell become UTF-8 byte pieces, so <unk> never occurs.
    Text is not normalized, so decode(encode(text)) == text. Control symbols (padding, begin, end, `<2en>`) are only
    ids: the same characters in a text are spelled out from pieces.
    """

    def __init__(self, model: bytes) -> None:
        """model: the bytes of a SentencePiece model. Raises ValueError if it is none or lacks a symbol."""
        self.model = model
        self._processor = SentencePieces(model).processor
        every_id = list(range(self._processor.GetPieceSize()))
        pieces = self._processor.IdToPiece(every_id)
        controls = {i for i, is_control in enumerate(self._processor.IsControl(every_id)) if is_control}
        ids = {piece: i for i, piece in enumerate(pieces)}
        absent = [symbol for symbol in (PAD, BEGIN, END, "<0x00>") if symbol not in ids]
        if absent:
            raise ValueError(f"the SentencePiece model lacks {', '.join(absent)}")
        self.pad_id, self.begin_id, self.end_id = ids[PAD], ids[BEGIN], ids[END]
        self.language_ids = {match[1]: i for i in sorted(controls) if (match := _LANGUAGE_SYMBOL.fullmatch(pieces[i]))}
        self._byte_ids = [ids[f"<0x{byte:02X}>"] for byte in range(256)]
        self._characters = frozenset().union(*pieces)
        self.special_ids = frozenset(controls) | {ids.get(UNKNOWN, self.pad_id)}
        self.pieces = with_kinds(pieces, self.special_ids, set(self._byte_ids))

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Read a tokenizer.model file. Raises ValueError if it is missing, too large or no SentencePiece model."""
        return cls(read_bytes(Path(path), MAX_VOCABULARY_BYTES))

    @classmethod
    def train(
        cls,
        sentences: Iterable[str],
        *,
        vocabulary_size: int,
        languages: Iterable[str],
        algorithm: str = "unigram",
        exact: bool = True,
    ) -> Tokenizer:
        """Learn pieces from sentences.

        algorithm  SentencePiece's "unigram" (Kudo 2018) or "bpe"
        exact      whether to raise ValueError if the sentences yield fewer pieces than vocabulary_size
        """
        if algorithm not in ("unigram", "bpe"):
            raise ValueError(f"algorithm must be 'unigram' or 'bpe', found {algorithm!r}")
        file = io.BytesIO()
        with value_errors(f"SentencePiece could not train {vocabulary_size} pieces", RuntimeError):
            sentencepiece.SentencePieceTrainer.Train(
                sentence_iterator=iter(sentences),
                model_writer=file,
                model_type=algorithm,
                vocab_size=vocabulary_size,
                hard_vocab_limit=exact or algorithm == "bpe",  # SentencePiece has no soft limit for "bpe"
                character_coverage=0.9999,
                byte_fallback=True,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                add_dummy_prefix=True,
                split_digits=True,
                control_symbols=[f"<2{language}>" for language in languages],
                pad_id=0,
                pad_piece=PAD,
                bos_id=1,
                bos_piece=BEGIN,
                eos_id=2,
                eos_piece=END,
                unk_id=3,
                unk_piece=UNKNOWN,
                minloglevel=2,
            )
        return cls(file.getvalue())

    def encode(self, text: str) -> list[int]:
        """Return the ids of the text, without any symbol. Raises ValueError for lone surrogates."""
        check_utf8(text)
        if SPACE not in text:
            return self._processor.EncodeAsIds(text)
        # SentencePiece would read its own space mark as a space: encode an unknown character in its place.
        stand_in = self._unknown_character(text)
        ids = self._processor.EncodeAsIds(text.replace(SPACE, stand_in))
        old, new = self._spell(stand_in), self._spell(SPACE)
        spelled, i = [], 0
        while i < len(ids):
            is_mark = ids[i : i + len(old)] == old
            spelled += new if is_mark else ids[i : i + 1]
            i += len(old) if is_mark else 1
        return spelled

    def encode_joined(self, text: str) -> list[int]:
        """Return the ids of text that continues without a space. Raises ValueError as encode() does."""
        # SentencePiece puts a space before any text: put an unknown character between the two.
        stand_in = self._unknown_character(text)
        ids, spelled = self.encode(stand_in + text), self._spell(stand_in)
        starts = next(i for i in range(len(ids)) if ids[i : i + len(spelled)] == spelled)
        return ids[starts + len(spelled) :]

    def encode_source(self, text: str, target_language: str, source_language: str | None = None) -> list[int]:
        """Return `<2xx>` text `</s>`: the target language's symbol comes first (Johnson et al. 2017, section 3)."""
        if target_language not in self.language_ids:
            raise ValueError(f"the vocabulary has no symbol <2{target_language}>")
        return [self.language_ids[target_language], *self.encode(text), self.end_id]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids without control symbols; invalid byte sequences become U+FFFD."""
        return self._processor.DecodeIds([i for i in map(int, ids) if i not in self.special_ids])

    def write(self, folder: Path) -> dict:
        replace_file(folder / FILE, lambda path: path.write_bytes(self.model))
        return {}

    def _unknown_character(self, text: str) -> str:
        """Return a character that neither a piece nor the text contains."""
        known = self._characters.union(text)
        return next(c for c in map(chr, _PRIVATE_USE) if c not in known)

    def _spell(self, character: str) -> list[int]:
        return [self._byte_ids[byte] for byte in character.encode("utf-8")]
