"""Corpora, their splits and their batches, on generated files."""

from __future__ import annotations

import gzip
import hashlib
import unicodedata
import zipfile
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import torch

from attention_atlas.model.nets.masks import pad
from attention_atlas.model.training import corpora
from attention_atlas.model.training.batches import Examples, make_batch, plan_batches
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.source import CORPORA
from attention_atlas.model.training.sources.readers import (
    TAG,
    Corpus,
    read_aligned,
    read_multi30k,
    read_tatoeba,
    remove_leaks,
    split_tatoeba,
)


def write_gz(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def write_tatoeba(path: Path, rows: list[str], member: str = "deu.txt") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_about.txt", "about\n")
        archive.writestr(member, "".join(f"{row}\n" for row in rows))


def bucket(english: str) -> int:
    """The documented rule, written out again."""
    folded = " ".join(unicodedata.normalize("NFKC", english).lower().split())
    return int(hashlib.sha1(folded.encode("utf-8")).hexdigest(), 16) % 100


@pytest.fixture()
def tatoeba() -> Corpus:
    pairs = [(f"Zahl {i % 400}.", f"Number {i}.") for i in range(2000)]  # each German side five times
    return Corpus("tatoeba", ("de", "en"), tuple(pairs))


def test_tatoeba_is_split_by_the_hash_of_the_english_sentence(tatoeba):
    parts = split_tatoeba(tatoeba)
    for number, name in enumerate(("test", "dev")):
        assert set(parts[name].pairs) == {pair for pair in tatoeba.pairs if bucket(pair[1]) == number} != set()


def test_training_shares_neither_side_with_dev_or_test(tatoeba):
    parts = split_tatoeba(tatoeba)
    held_out = [*parts["dev"].pairs, *parts["test"].pairs]
    german, english = {g for g, _ in held_out}, {e for _, e in held_out}
    expected = [p for p in tatoeba.pairs if bucket(p[1]) > 1 and p[0] not in german and p[1] not in english]
    assert list(parts["train"].pairs) == expected
    assert 0 < len(expected) < len(tatoeba.pairs) - len(held_out)  # some pairs did leak through the German side


def test_leaks_are_detected_despite_case_width_and_spaces():
    train = Corpus("a", ("de", "en"), (("Ein HUND", "x"), ("y", "Ａ　dog"), ("bleibt", "stays")))
    held_out = Corpus("b", ("de", "en"), (("ein  hund", "A Dog"),))
    assert remove_leaks(train, [held_out]).pairs == (("bleibt", "stays"),)


def test_tatoeba_zip_is_read_with_and_without_attribution(tmp_path):
    rows = ["Hello.\tHallo.", "Go  on.\tMach weiter.\tCC-BY 2.0 #1", "only english", "Strange\u2028line.\tSeltsam."]
    write_tatoeba(tmp_path / "deu-eng.zip", rows)
    corpus = read_tatoeba(tmp_path / "deu-eng.zip", "de")
    assert corpus.languages == ("de", "en")
    assert corpus.pairs == (("Hallo.", "Hello."), ("Mach weiter.", "Go on."), ("Seltsam.", "Strange line."))


def test_multi30k_is_read_in_its_repositorys_layout(tmp_path):
    folder = tmp_path / "data" / "task1" / "raw"
    write_gz(folder / "val.de", ["Ein Hund."]), write_gz(folder / "val.de.gz", ["Ein Hund.", "Zwei."])
    write_gz(folder / "val.en.gz", ["A dog.", "Two."])
    corpus = read_multi30k(tmp_path, "val", ("de", "en"))
    assert corpus.pairs == (("Ein Hund.", "A dog."), ("Zwei.", "Two."))
    assert corpus.oriented("en-de") == [("A dog.", "Ein Hund."), ("Two.", "Zwei.")]
    assert corpus.oriented("fr-en") == []


def test_aligned_files_keep_their_lines_together(tmp_path):
    (tmp_path / "a.de").write_text("eins\r\n\u00e4  x\x85y\nleer\n", encoding="utf-8", newline="")
    (tmp_path / "a.en").write_text("one\na\u0308 z\n\n", encoding="utf-8")
    corpus = read_aligned(tmp_path / "a.de", tmp_path / "a.en", ("de", "en"))
    assert corpus.pairs == (("eins", "one"), ("ä x y", "ä z"))  # composed, single spaces, no empty side


def test_files_of_unequal_length_are_refused_with_both_counts(tmp_path):
    (tmp_path / "a.de").write_text("eins\nzwei\n")
    (tmp_path / "a.en").write_text("one\n")
    with pytest.raises(ValueError, match=r"a\.de has 2 lines but .*a\.en has 1"):
        read_aligned(tmp_path / "a.de", tmp_path / "a.en", ("de", "en"))


def test_unreadable_files_are_named_in_the_error(tmp_path):
    (tmp_path / "good").write_text("x\n")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"abc\n" * 1000)[:-12])
    (tmp_path / "latin").write_bytes(b"\xe4\n")
    (tmp_path / "fake.gz").write_bytes(b"plain text\n")
    (tmp_path / "fake.zip").write_bytes(b"plain text\n")
    for name in ("absent", "cut.gz", "latin", "fake.gz"):
        with pytest.raises(ValueError, match=name):
            read_aligned(tmp_path / name, tmp_path / "good", ("de", "en"))
    for name in ("fake.zip", "absent.zip"):
        with pytest.raises(ValueError, match=name):
            read_tatoeba(tmp_path / name, "de")


@pytest.fixture()
def examples() -> Examples:
    random = np.random.default_rng(5)
    lengths = random.integers(1, 30, 300)
    return Examples.of([([4] * (n + 2), [9] * int(m)) for n, m in zip(lengths, random.permutation(lengths))])


def test_a_plan_depends_on_seed_and_epoch_only(examples):
    def plan(**changes):
        batches = plan_batches(examples, 200, **{"seed": 1, "epoch": 0, **changes})
        return [b.tolist() for b in batches]

    assert plan() == plan()
    assert plan() != plan(epoch=1) and plan() != plan(seed=2)


def test_a_plan_covers_every_pair_once_within_the_token_limit(examples):
    batches = plan_batches(examples, 200, seed=1, epoch=3)
    assert sorted(np.concatenate(batches).tolist()) == list(range(300))
    for rows in batches:
        lengths = [len(examples.target[i]) + 1 for i in rows]
        assert max(lengths) * len(rows) <= 200
        assert max(len(examples.source[i]) for i in rows) * len(rows) <= 400 or len(rows) == 1
    padded = sum(max(len(examples.target[i]) + 1 for i in rows) * len(rows) for rows in batches)
    assert padded < 1.15 * sum(len(t) + 1 for t in examples.target)  # like lengths share a batch


def test_a_pair_above_the_token_limit_gets_its_own_batch():
    plan = plan_batches(Examples.of([([4], [9] * 50), ([4], [9]), ([4], [9])]), 20, seed=0, epoch=0)
    assert [0] in [b.tolist() for b in plan]


def test_batches_shift_the_target_by_one(tokenizer):
    examples = Examples.of([([4, 5, 2], [7, 8]), ([4, 2], [9])])
    batch = make_batch(examples, np.array([0, 1]), tokenizer)
    assert batch.source.tolist() == [[4, 5, 2], [4, 2, 0]]
    assert batch.inputs.tolist() == [[1, 7, 8], [1, 9, 0]]
    assert batch.outputs.tolist() == [[7, 8, 2], [9, 2, 0]]
    assert batch.tokens == 5


def test_processes_share_a_batch_without_overlap(tokenizer, examples):
    rows = np.arange(7)
    shares = [make_batch(examples, rows, tokenizer, rank=rank, world_size=3) for rank in range(3)]
    assert [len(s.source) for s in shares] == [3, 2, 2]
    real = sum(int((s.outputs != 0).sum()) for s in shares)
    assert all(s.tokens == real for s in shares)  # each knows the size of the whole


def test_pad():
    assert torch.equal(pad([[5, 6], [7]], 3), torch.tensor([[5, 6], [7, 3]]))
    assert pad([], 0).shape == (0, 0)


def test_long_pairs_are_left_out(tokenizer):
    pairs = [("Hund", "dog"), ("Hund " * 50, "dog"), ("Hund", "dog " * 50)]
    assert len(Examples.encode(pairs, tokenizer, "en", max_length=20).source) == 1


# The corpora that the programs read


def options(**changes) -> Namespace:
    nothing = {name: [] for name in ("pair", "dev_pair", "test_pair", "synthetic")}
    return Namespace(**{"data": Path("absent"), **nothing, **changes})


@pytest.fixture()
def data_folder(tmp_path, tatoeba) -> Path:
    raw = tmp_path / "multi30k/data/task1/raw"
    for split, sentences in {"train": 6, "val": 2, "test_2016_flickr": 2}.items():
        for language in ("de", "en"):
            write_gz(raw / f"{split}.{language}.gz", [f"{split} {language} {i}" for i in range(sentences)])
    rows = [f"{e}\t{g}" for g, e in tatoeba.pairs]
    write_tatoeba(tmp_path / "tatoeba/deu-eng.zip", [*rows, "leak\tval de 0", "test_2016_flickr en 1\tleck"])
    return tmp_path


def test_both_corpora_are_found_and_neither_leaks_into_the_other(data_folder):
    captions, everyday = corpora.find(options(data=data_folder), ["de-en"])
    assert (len(captions.train.pairs), len(captions.dev.pairs), len(captions.test.pairs)) == (6, 2, 2)
    assert everyday.dev.pairs and everyday.test.pairs
    sides = {side for pair in everyday.train.pairs for side in pair}
    assert "val de 0" not in sides and "test_2016_flickr en 1" not in sides


def drawn(found: list, config: TrainConfig, tokenizer) -> tuple[Examples, list]:
    mixture, dev = CORPORA.examples(found, config, tokenizer, 64)
    return mixture.epoch(0), dev


def test_an_epoch_repeats_each_corpus_as_configured(data_folder, tokenizer):
    corpora_read = corpora.find(options(data=data_folder), ["de-en"])
    once, dev = drawn(corpora_read, TrainConfig(), tokenizer)
    twice, _ = drawn(corpora_read, TrainConfig(repeats=(("multi30k", 2),)), tokenizer)
    assert len(twice.source) == len(once.source) + 6
    assert [(d, c.name) for d, c in dev] == [("de-en", "multi30k"), ("de-en", "tatoeba")]
    both, _ = drawn(corpora_read, TrainConfig(directions=("de-en", "en-de")), tokenizer)
    assert len(both.source) == 2 * len(once.source)
    assert {s[0] for s in both.source} == {tokenizer.language_ids["en"], tokenizer.language_ids["de"]}


def test_a_pair_of_files_replaces_the_folder(tmp_path):
    files = [tmp_path / name for name in ("train.de", "train.en", "dev.de", "dev.en")]
    for file in files:
        file.write_text(f"{file.name}\n{file.name} zwei\n")
    corpora_read = corpora.find(options(pair=[["de-en", *files[:2]]], dev_pair=[["de-en", *files[2:]]]), ["de-en"])
    assert [len(s.train.pairs) for s in corpora_read] == [2, 0] and [len(s.dev.pairs) for s in corpora_read] == [0, 2]


def test_training_pairs_that_share_a_side_with_held_out_files_are_left_out(tmp_path):
    rows = {}
    for name, german, english in (
        ("pair", "eins\nzwei\ndrei\n", "one\ntwo\nthree\n"),
        ("dev_pair", "eins\n", "first\n"),
        ("test_pair", "noch eins\n", "Two\n"),
    ):
        rows[name] = [["de-en", tmp_path / f"{name}.de", tmp_path / f"{name}.en"]]
        for file, text in zip(rows[name][0][1:], (german, english)):
            file.write_text(text)
    corpora_read = corpora.find(options(**rows), ["de-en"])
    assert [pair for splits in corpora_read for pair in splits.train.pairs] == [("drei", "three")]
    assert [(len(s.dev.pairs), len(s.test.pairs)) for s in corpora_read] == [(0, 0), (1, 0), (0, 1)]


def test_synthetic_sources_are_tagged_and_used_in_one_direction(data_folder, tokenizer, tmp_path):
    (tmp_path / "made.de").write_text("ein Hund\nval de 1\ntrain de 3\n")
    (tmp_path / "real.en").write_text("A dog.\nUnheard.\nval en 0\n")
    directions, made = ("de-en", "en-de"), ["de-en", tmp_path / "made.de", tmp_path / "real.en"]
    corpora_read = corpora.find(options(data=data_folder, synthetic=[made]), directions)
    assert corpora_read[-1].train.oriented("de-en") == [(f"{TAG} ein Hund", "A dog.")]  # the others would leak
    assert corpora_read[-1].train.oriented("en-de") == [] and not corpora_read[-1].dev.pairs
    without, _ = drawn(corpora_read[:-1], TrainConfig(directions=directions), tokenizer)
    once, _ = drawn(corpora_read, TrainConfig(directions=directions), tokenizer)
    assert len(once.source) == len(without.source) + 1
    with_tag = tokenizer.encode_source(f"{TAG} ein Hund", "en")
    assert with_tag in map(list, once.source) and with_tag[-2:] == tokenizer.encode_source("ein Hund", "en")[-2:]
    twice, _ = drawn(corpora_read, TrainConfig(directions=directions, repeats=(("synthetic", 2),)), tokenizer)
    assert len(twice.source) == len(once.source) + 1


def test_a_missing_corpus_raises_an_error_that_names_it():
    with pytest.raises(ValueError, match="no corpus for the direction de-en in the folder absent"):
        corpora.find(options(), ["de-en"])
