"""attention-atlas align: links for each line of two files, and scores against links made by hand."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from attention_atlas.model import align
from attention_atlas.model.analysis.alignment.links import AligningHeads
from attention_atlas.model.trace.alignment import RowToken, Voter
from tests import run
from tests.conftest import SENTENCES
from tests.programs.train.runs import TORCHRUN


def write(path, lines) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_links_do_not_depend_on_the_batches(tiny_checkpoint, tmp_path, capsys, monkeypatch):
    source = write(tmp_path / "s", [*SENTENCES[0:10:2], "", SENTENCES[0]])
    target = write(tmp_path / "t", [*SENTENCES[1:10:2], "Nothing.", SENTENCES[1]])
    options = ["--checkpoint", str(tiny_checkpoint), "--direction", "de-en", "--symmetrise", "forward"]
    align.main([source, target, *options])
    printed = capsys.readouterr()
    lines = printed.out.split("\n")
    assert len(lines) == 8 and lines[5] == "" and lines[0] == lines[6] and "agreement" in printed.err
    for line, target in zip(lines[:5], SENTENCES[1:10:2]):  # one source word for each target word
        assert sorted(int(link.split("-")[1]) for link in line.split()) == list(range(len(target.split())))
    monkeypatch.setattr(align, "BATCH", 2)
    align.main([source, str(tmp_path / "t"), *options])
    assert capsys.readouterr().out.split("\n") == lines


@pytest.mark.long
def test_two_processes_continue_a_stopped_run_to_the_same_links(tiny_checkpoint, tmp_path, monkeypatch):
    source = write(tmp_path / "s", [*SENTENCES[0:10:2]] * 30)
    target = write(tmp_path / "t", [*SENTENCES[1:10:2]] * 30)
    options = [source, target, "--checkpoint", str(tiny_checkpoint), "--direction", "de-en", "--symmetrise", "jumps"]
    align.main([*options, "--out", str(tmp_path / "whole")])
    expected, batches, align_batch = (tmp_path / "whole").read_text(), [], align.Aligner.align
    with pytest.raises(ValueError, match="whole is there already: use --replace"):
        align.main([*options, "--out", str(tmp_path / "whole")])

    def stop_at_second_batch(self, pairs, *rest):
        batches.append(len(pairs))
        if len(batches) == 2:
            raise KeyboardInterrupt
        return align_batch(self, pairs, *rest)

    monkeypatch.setattr(align.Aligner, "align", stop_at_second_batch)
    with pytest.raises(KeyboardInterrupt):
        align.main([*options, "--out", str(tmp_path / "links")])
    (left,) = tmp_path.glob("links.*.partial")
    assert left.read_text() == "".join(expected.splitlines(keepends=True)[: align.BATCH])
    with left.open("a") as file:
        file.write("0-0 1-")
    run([*TORCHRUN, "attention_atlas.model.align", *options, "--out", tmp_path / "links"], timeout=300)
    assert (tmp_path / "links").read_text() == expected and not left.exists()


def test_a_run_continues_only_with_the_same_files(tmp_path):
    files = [Path(write(tmp_path / name, ["ein Hund"])) for name in "st"]
    args = SimpleNamespace(files=files, symmetrise="union")
    aligner, heads = align.Aligner(SimpleNamespace(digest="1"), "de-en", None), AligningHeads((), (), 1.0)
    key = align.run_key(args, aligner, heads)
    assert align.run_key(args, aligner, heads) == key
    write(files[0], ["kein Hut"])  # of the same size
    os.utime(files[0], ns=(0, 0))
    assert align.run_key(args, aligner, heads) != key


def test_the_more_certain_model_decides(monkeypatch):
    def planted(scores) -> dict:
        """Return maps of one layer and head."""
        return {(RowToken.READ, False): np.array(scores)[None, None]}

    maps = {"ours": planted([[0.49, 0.51], [0.1, 0.9]]), "theirs": planted([[1.0, 0.0], [0.3, 0.7]])}
    monkeypatch.setattr(align, "encode_words", lambda *text: text)
    monkeypatch.setattr(align, "score_maps", lambda translator, sentences: [maps[translator]] * len(sentences))
    head, pairs = (Voter(0, 0, RowToken.READ, False),), [(("ein", "Hund"), ("a", "dog"))]
    aligner, heads = align.Aligner("ours", "de-en", "theirs"), AligningHeads(head, head, 1.0)
    right, wrong = frozenset({(0, 0), (1, 1)}), frozenset({(1, 0), (1, 1)})
    assert aligner.align(pairs, heads, "forward") == [wrong]
    assert aligner.align(pairs, heads, "backward") == aligner.align(pairs, heads, "union") == [right]
    alone = align.Aligner("ours", "de-en", None)
    assert alone.align(pairs, heads, "union") == [right | wrong]


def test_links_are_scored_against_links_made_by_hand(tmp_path, capsys):
    gold = write(tmp_path / "gold", ["1-1 2-2 3p2", "1-2 2-1"])
    links = write(tmp_path / "links", ["0-0 2-1", "1-0 0-1"])
    align.main(["--score", gold, links])
    assert capsys.readouterr().out == "precision 100.00  recall 75.00  AER 12.50  links 4\n"
    reverse = write(tmp_path / "reverse", ["0-0 1-2", "0-1 1-0"])
    align.main(["--score", gold, reverse, "--reversed"])
    assert "AER 12.50" in capsys.readouterr().out
    with pytest.raises(ValueError, match="differ in length"):
        align.main(["--score", gold, write(tmp_path / "short", ["0-0"])])
    with pytest.raises(ValueError, match="line 2: 'x' is no link"):
        align.main(["--score", gold, write(tmp_path / "bad", ["0-0", "x"])])


def test_files_of_unequal_length_and_a_model_without_the_direction_are_refused(tiny_checkpoint, tmp_path):
    source, target = write(tmp_path / "s", ["Ein Hund."]), write(tmp_path / "t", ["A dog.", "A cat."])
    with pytest.raises(ValueError, match="differ in length: line 2"):
        align.main([source, target, "--checkpoint", str(tiny_checkpoint)])
    with pytest.raises(ValueError, match="en-de"):
        align.main([source, target, "--checkpoint", str(tiny_checkpoint), "--reverse", str(tiny_checkpoint)])
