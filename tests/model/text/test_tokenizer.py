"""The tokenizer: every text round-trips without unknown pieces, and no text becomes a control symbol."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_atlas.model.text.tokenizer import SPACE, Tokenizer
from attention_atlas.model.trace.tokens import is_byte
from tests.conftest import SENTENCES

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))  # all of Unicode but surrogates
TRICKY = st.lists(
    st.sampled_from(["▁", " ", "<", ">", "2", "en", "/", "s", "pad", "<0x41>", "\n", "\0", "é", "\u0301", "\U000f0000"])
).map("".join)
BPE = Tokenizer.train(SENTENCES * 5, vocabulary_size=350, languages=("de", "en"), algorithm="bpe")
UNIGRAM = Tokenizer.train(SENTENCES * 5, vocabulary_size=350, languages=("de", "en", "fr"))


@settings(max_examples=300)
@given(st.one_of(ANY_TEXT, TRICKY), st.sampled_from([BPE, UNIGRAM]))
def test_any_text_round_trips_and_no_symbol_comes_from_text(text, tokenizer):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert not tokenizer.special_ids.intersection(ids)


@pytest.mark.parametrize(
    "text",
    [
        "<pad>",
        "<s>",
        "</s>",
        "<unk>",
        "<2en>",
        "<2de> Guten Tag",
        "<0x41>",
        SPACE,
        f"a{SPACE}b {SPACE}",
        "",
        " ",
        "  a  ",
        "a\u0301",
        "ﬁ",
        "①",
        "\u2028",
        "\x00",
        "\U0010ffff",
        "".join(map(chr, range(0xE000, 0xF8FF))) + SPACE,
    ],
)
def test_hostile_texts_are_spelled_out(text):
    for tokenizer in (UNIGRAM, BPE):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert not tokenizer.special_ids.intersection(ids)


def test_a_private_use_character_among_the_pieces_is_not_used_as_stand_in():
    stand_in = chr(0xF0000)
    tokenizer = Tokenizer.train([f"{s} {stand_in}" for s in SENTENCES] * 5, vocabulary_size=350, languages=("en",))
    assert any(stand_in in piece for piece in tokenizer.pieces)
    for text in (f"{SPACE}a", f"{stand_in}{SPACE}"):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_unseen_characters_become_their_bytes():
    ids = UNIGRAM.encode("😀")
    assert [t for t in UNIGRAM.tokens(ids) if t != SPACE] == [f"<0x{b:02X}>" for b in "😀".encode()]
    assert all(is_byte(piece) for piece in UNIGRAM.tokens(ids) if piece != SPACE)
    assert not any(map(is_byte, UNIGRAM.tokens(UNIGRAM.encode("der Hund"))))


def test_broken_bytes_decode_to_replacement_characters():
    ids = UNIGRAM.encode("😀")
    assert "\ufffd" in UNIGRAM.decode(ids[:-1])


def test_source_starts_with_the_targets_symbol_and_ends_with_end():
    ids = UNIGRAM.encode_source("Der Hund", "en")
    assert UNIGRAM.tokens(ids)[0] == "<2en>" and ids[-1] == UNIGRAM.end_id
    assert ids[1:-1] == UNIGRAM.encode("Der Hund")
    assert UNIGRAM.decode(ids) == "Der Hund"
    assert sorted(UNIGRAM.language_ids) == ["de", "en", "fr"]


def test_lone_surrogates_are_refused_in_words():
    with pytest.raises(ValueError, match="surrogate pair at character 3"):
        UNIGRAM.encode("ab\ud800")


def test_a_saved_model_tokenizes_the_same(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(UNIGRAM.model)
    loaded = Tokenizer.load(tmp_path / "tokenizer.model")
    assert loaded.pieces == UNIGRAM.pieces and loaded.encode(SENTENCES[3]) == UNIGRAM.encode(SENTENCES[3])
    assert len(loaded) == 350


def test_invalid_tokenizers_are_refused():
    with pytest.raises(ValueError, match="SentencePiece"):
        Tokenizer(b"not a model")
    with pytest.raises(ValueError, match="'unigram' or 'bpe'"):
        Tokenizer.train(SENTENCES, vocabulary_size=350, languages=("en",), algorithm="word")
    with pytest.raises(ValueError, match="100000 pieces"):
        Tokenizer.train(SENTENCES, vocabulary_size=100_000, languages=("en",))
