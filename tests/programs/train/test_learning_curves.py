"""attention-atlas curves: the pictures show the values of the logs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from attention_atlas.model.train import _scores
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.sources.readers import Corpus
from attention_atlas.viz import learning_curves


def scores(loss: float, bleu: float) -> dict:
    return {
        "loss": loss,
        "mean_bleu": bleu,
        "de-en multi30k": {"bleu": bleu, "chrf": 40.0},
        "en-fr news-2020": {"bleu": bleu + 1, "chrf": 40.0},
    }


def write_log(folder: Path, lines: list[dict]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture()
def run(tmp_path: Path) -> Path:
    return write_log(
        tmp_path / "first",
        [
            {"update": 50, "loss": 6.0, "tokens": 1000, "seconds": 1800.0},
            {"update": 50, "dev": {"weights": scores(5.0, 10.0), "average": scores(4.5, 12.0)}},
            {"update": 100, "loss": 4.0, "tokens": 3000, "seconds": 1800.0},
            {"update": 75, "dev": {"weights": scores(4.0, 20.0), "average": scores(3.5, 22.0)}},
        ],
    )


@pytest.mark.parametrize(
    "x, steps, evaluated",
    [("updates", [50, 100], [50, 75]), ("tokens", [1000, 4000], [1000, 2500]), ("hours", [0.5, 1.0], [0.5, 0.75])],
)
def test_curves_have_the_values_of_the_log(run, x, steps, evaluated):
    curves = learning_curves.read(run, x=x)
    assert curves.name == "first"
    np.testing.assert_allclose(curves.loss[0], steps)
    np.testing.assert_allclose(curves.loss[1], [6.0, 4.0])
    assert list(curves.dev) == ["loss", "de-en multi30k", "en-fr news-2020"]
    assert [*map(learning_curves.title, curves.dev)] == [
        "dev loss",
        "dev BLEU, de → en multi30k",
        "dev BLEU, en → fr news-2020",
    ]
    np.testing.assert_allclose(curves.dev["loss"]["average"][0], evaluated)
    np.testing.assert_allclose(curves.dev["loss"]["weights"][1], [5.0, 4.0])
    np.testing.assert_allclose(curves.dev["en-fr news-2020"]["average"][1], [13.0, 23.0])


def test_several_runs_share_panels_in_their_own_colours(run, tmp_path):
    raw = {"weights": {**scores(3.0, 30.0), "mean_bleu": 30.0}}
    other = write_log(
        tmp_path / "second", [{"update": 9, "loss": 5.0, "tokens": 10, "seconds": 1.0}, {"update": 9, "dev": raw}]
    )
    axes = learning_curves.draw([learning_curves.read(path) for path in (run, other / "metrics.jsonl")]).axes
    assert [a.get_title() for a in axes] == [
        learning_curves.SMOOTHED,
        *map(learning_curves.title, learning_curves.read(run).dev),
    ]
    assert [a.get_ylabel() for a in axes] == [learning_curves.NATS, learning_curves.NATS, "BLEU", "BLEU"]
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["first", "second"]
    first, second = (line.get_color() for line in axes[0].lines)
    assert first != second
    # An averaged line is solid and its raw one dotted; without an average the raw one is solid.
    assert [(line.get_color(), line.get_linestyle()) for line in axes[1].lines] == [
        (first, ":"),
        (first, "-"),
        (second, "-"),
    ]
    np.testing.assert_allclose(axes[2].lines[1].get_ydata(), [12.0, 22.0])


def test_the_program_writes_a_png(run, tmp_path):
    out = tmp_path / "curves.png"
    learning_curves.main([str(run), "--out", str(out), "--x", "updates"])
    with Image.open(out) as picture:
        assert picture.format == "PNG" and picture.width > 600
        assert len(np.unique(np.asarray(picture.convert("L")))) > 20  # something is drawn
    with pytest.raises(ValueError, match="cannot be written"):
        learning_curves.main([str(run), "--out", str(tmp_path / "absent" / "curves.png")])


@pytest.mark.parametrize(
    "text, message",
    [
        (None, "cannot be read"),
        ("", "holds no training loss"),
        ("{", "is not the log"),
        ("[1]\n", "is not the log"),
        ('{"update": 1, "loss": 2.0}\n', "is not the log"),
        ('{"update": 1, "dev": {}}\n', "holds no training loss"),
    ],
)
def test_an_invalid_log_is_named(tmp_path, text, message):
    if text is not None:
        (tmp_path / "metrics.jsonl").write_text(text)
    with pytest.raises(ValueError, match=message):
        learning_curves.read(tmp_path)


def test_it_reads_what_training_writes(tiny_model, tokenizer):
    """The evaluation of a real model has the fields that are drawn."""
    dev = [("de-en", Corpus("files", ("de", "en"), (("Heute scheint die Sonne.", "The sun shines today."),)))]
    curves = dict(learning_curves._values(_scores(tiny_model, tokenizer, dev, TrainConfig())))
    assert curves.keys() == {"loss", "de-en files"}
