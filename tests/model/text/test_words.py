"""A vocabulary of whole words: training, unknown words, languages, and its file."""

from __future__ import annotations

import pytest

from attention_atlas.model.checkpoint import read_tokenizer
from attention_atlas.model.text.words import WordVocabulary

SENTENCES = ["der hund schläft", "der hund bellt", "the dog sleeps"]


def test_the_most_frequent_words_are_kept_and_others_are_unknown():
    words = WordVocabulary.train(SENTENCES, vocabulary_size=9, languages=["de", "en"])
    assert [str(piece) for piece in words.pieces[:6]] == ["<pad>", "<s>", "</s>", "<unk>", "<2de>", "<2en>"]
    assert words.words[:2] == ("der", "hund") and len(words) == 9
    ids = words.encode_source("der hund <unk> tanzt", "en")
    assert ids == [5, 6, 7, 3, 3, 2] and words.decode(ids) == "der hund <unk> <unk>"
    with pytest.raises(ValueError, match="<2fr>"):
        words.encode_source("der", "fr")
    with pytest.raises(ValueError, match="at least one word"):
        WordVocabulary.train(SENTENCES, vocabulary_size=6, languages=["de", "en"])


def test_its_file_is_read_again_or_refused(tmp_path):
    words = WordVocabulary.train([*SENTENCES, "a\u2028b"], vocabulary_size=99, languages=["en"])
    entry = words.write(tmp_path)
    reloaded = read_tokenizer(tmp_path, entry)
    assert isinstance(reloaded, WordVocabulary) and reloaded.pieces == words.pieces
    for text in (b"a\na", b"a b", b"a\n"):
        (tmp_path / "words.txt").write_bytes(text)
        with pytest.raises(ValueError, match="one word a line"):
            read_tokenizer(tmp_path, entry)
    with pytest.raises(ValueError, match="languages"):
        read_tokenizer(tmp_path, {"kind": "words"})
