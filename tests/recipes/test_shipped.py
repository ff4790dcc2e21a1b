"""Derived files and cards of the shipped checkpoints match their weights and recipes."""

from __future__ import annotations

import json

import pytest

from attention_atlas.model import checkpoint, program
from recipes import checkpoints, derived, names_kept


def test_scores_of_an_installed_checkpoint_are_not_recorded(tiny_checkpoint, monkeypatch):
    monkeypatch.setattr(program, "SHIPPED_FOLDER", tiny_checkpoint.parent)
    monkeypatch.setattr(program, "IS_INSTALLED", True)
    with pytest.raises(ValueError, match=r"was installed .* leave out --record"):
        names_kept.main(["--checkpoint", str(tiny_checkpoint), "--record"])


def test_derived_files_match_the_weights(shipped_checkpoints):
    """Each derived file has the digest of its weights. `make derived` rebuilds outdated files."""
    for folder in (path.parent for path in shipped_checkpoints.glob("*/config.json")):
        weights = checkpoint.load(folder).digest
        assert not [path.name for path in folder.iterdir() if derived.digest_of(path) not in (None, weights)]
        assert derived.digest_of(folder / "history.npz") == weights


def test_cards_have_the_commands_of_their_recipes(shipped_checkpoints, capsys):
    for name in checkpoints.SHIPPED:
        checkpoints.main(["--commands", name])
        assert capsys.readouterr().out.strip() in (shipped_checkpoints / name / "README.md").read_text(encoding="utf-8")


def test_cards_quote_the_results_of_typed_sentences(shipped_checkpoints):
    for name in checkpoints.SHIPPED:
        metrics = json.loads((shipped_checkpoints / name / "metrics.json").read_text(encoding="utf-8"))
        card = (shipped_checkpoints / name / "README.md").read_text(encoding="utf-8")
        sealed = [result for result in metrics["typed"] if result["frames"] == "sealed"]
        assert {result["fillers"] for result in sealed} == {"seen", "unseen"}
        for result in sealed:
            share = result["all"]["kept"] / result["all"]["of"]
            assert result["all"]["of"] >= 300 and f"| {result['all']['of']} | **{share:.2f}** |" in card
