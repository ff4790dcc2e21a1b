"""The program: error rates beside links by hand, whatever direction they were made in, and the card's table."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from model import curves
from model.analysis.alignment.curve import diagonal
from model.checkpoint import load


@pytest.fixture()
def folder(tiny_checkpoint, tmp_path):
    """A checkpoint with a card, and beside it links by hand of two sentences, German first."""
    shutil.copytree(tiny_checkpoint, tmp_path / "tiny")
    (tmp_path / "tiny" / "README.md").write_text(f"Before.\n\n{curves.HEADING}\n\nOld.\n\n## After\n")
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "gold.de").write_text("Der Hund schläft .\nDie Sonne scheint heute .\n")
    (tmp_path / "gold" / "gold.en").write_text("The dog sleeps .\nToday the sun shines .\n")
    (tmp_path / "gold" / "gold.talp").write_text("1-1 2-2 3-3 4-4\n1-2 2-3 3-4 4-1 5p5\n")
    return tmp_path


def test_figures_go_into_the_folder_and_into_the_cards_section(folder):
    curves.main(["--checkpoint", str(folder / "tiny"), "--gold", str(folder / "gold")])
    found = json.loads((folder / "tiny" / "alignment.json").read_text())
    assert found["digest"] == load(folder / "tiny").digest
    (one,) = found["directions"]  # nobody linked English and French
    assert (one["direction"], one["sentences"]) == ("de-en", 2)
    assert np.shape(one["heads"]["read"]) == (3, 4) and np.shape(one["means"]["predicted"]) == (3,)
    assert one["diagonal"] == pytest.approx(1 - (4 + 5) / (9 + 8), abs=1e-4)
    card = (folder / "tiny" / "README.md").read_text()
    assert card.startswith("Before.") and card.endswith("\n## After\n") and "Old." not in card
    assert f"| 1 | {100 * one['means']['read'][0]:.1f} | {100 * min(one['heads']['read'][0]):.1f} |" in card
    assert not any(word in card for word in ("Hund", "sun"))
    again = ["--checkpoint", str(folder / "tiny"), "--gold", str(folder / "nowhere")]
    with pytest.raises(ValueError, match=r"alignment\.json is there already: --replace"):
        curves.main(again)
    curves.main([*again, "--replace"])
    assert "Not measured" in (folder / "tiny" / "README.md").read_text()


def test_links_turn_with_the_direction(folder):
    forward, backward = (curves.sentences(folder / "gold", direction) for direction in ("de-en", "en-de"))
    assert forward[1][1].sure == {(0, 1), (1, 2), (2, 3), (3, 0)} and forward[1][1].possible - forward[1][1].sure == {
        (4, 4)
    }
    assert backward[1][1].sure == {(1, 0), (2, 1), (3, 2), (0, 3)} and backward[1][0] == forward[1][0][::-1]
    (folder / "gold" / "gold.talp").write_text("1-1\n")
    with pytest.raises(ValueError, match="2 sentences and 1 lines"):
        curves.sentences(folder / "gold", "de-en")


def test_the_diagonal_ends_at_both_ends():
    for sources, targets in ((5, 9), (9, 5), (1, 3), (3, 1)):
        found = dict((target, source) for source, target in diagonal(sources, targets))
        assert sorted(found) == list(range(targets)) and found[0] == 0
        assert targets == 1 or found[targets - 1] == sources - 1
