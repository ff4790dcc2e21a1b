"""The panel "Does it hold?": curves of one sentence, results over many sentences, and the order of methods."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from attention_atlas.model.analysis.why import faithfulness
from attention_atlas.model.analysis.why.attribution import attribute
from attention_atlas.model.analysis.why.methods import METHODS, attention, occlusion
from attention_atlas.model.files import write_json
from attention_atlas.model.trace.why.evidence import Evidence
from attention_atlas.model.trace.why.faithfulness import (
    Faithfulness,
    Interval,
    MethodFaithfulness,
    best_method,
    from_dict,
)
from attention_atlas.viz.panels import rankings
from attention_atlas.viz.panels.why import holds
from tests.viz.panels.panels import block_of, blocks_of


@pytest.mark.parametrize(("how", "judge"), [(holds.MEAN, occlusion.MEAN), (holds.MASK, occlusion.MASK)])
def test_curves_have_the_right_ends_and_no_method_judges_itself(scene, how, judge) -> None:
    trials = [trial for batch in faithfulness.run_trials(scene.case, judge) for trial in batch]
    assert trials[0].method is None and {trial.method for trial in trials[1:]} == set(METHODS) - {judge.slug}
    words = int((~scene.case.columns.special).sum())
    for trial in trials:
        assert trial.counts[0] == 0 and trial.counts[-1] == words and len(trial.counts) <= faithfulness.MAX_POINTS + 1
        assert trial.without[0] == pytest.approx(scene.case.metric()) == pytest.approx(trial.alone[-1], abs=1e-4)
        assert trial.without[-1] == pytest.approx(trial.alone[0], abs=1e-4)
    measured = next(trial for trial in trials if trial.method and METHODS[trial.method].evidence is Evidence.MEASURED)
    best = attribute(scene.translator, scene.trace, step=3, methods=[measured.method])
    column = int(np.where(best.columns.special, -np.inf, best.rows[0].values).argmax())
    effect = attribute(scene.translator, scene.trace, step=3, methods=[judge.slug]).rows[0].values[column]
    assert measured.without[1] == pytest.approx(best.metric - effect, abs=1e-4), "without the best word"
    content = list(holds.holds(scene, how))[-1]
    assert len(block_of(content, "table")["rows"]) == len(METHODS)


def table(**agreements: float | None) -> Faithfulness:
    def method(name: str) -> MethodFaithfulness:
        value = agreements.get(name.replace(" ", "_").replace("-", "_"))
        interval = None if value is None else Interval(value, value - 0.1, value + 0.1, 200)
        return MethodFaithfulness(
            name,
            METHODS[name].evidence.value,
            METHODS[name].class_agnostic,
            interval,
            Interval(1, 0, 2, 200),
            Interval(-1, -2, 0, 200),
            {"decoder layer 3": 0.6, "everything": 0.1},
        )

    return Faithfulness("tiny", "0" * 16, ("de-en",), "some dev", 200, "mean", tuple(map(method, METHODS)))


@pytest.mark.parametrize(
    ("agreements", "expected"),
    [
        ({"occlusion_by_mask": 0.7, "gradient_x_input": 0.4, "cross_attention": 0.3}, occlusion.MASK.slug),
        ({"occlusion_by_mask": 0.7, "integrated_gradients": 0.8, "cross_attention": 0.3}, "integrated_gradients"),
        ({"occlusion_by_mask": 0.7, "occlusion_by_mean": 0.7, "cross_attention": 0.3}, occlusion.MASK.slug),
        ({"occlusion_by_mask": 0.49, "cross_attention": 0.1}, None),  # below the threshold
        ({"occlusion_by_mask": 0.7, "cross_attention": 0.6}, None),  # not enough above raw attention
        ({"cross_attention": 0.9}, None),
        ({}, None),
    ],
)
def test_the_first_method_is_the_most_faithful_measured_one(
    tiny_translator, tmp_path, monkeypatch, agreements, expected
) -> None:
    stored = table(**agreements)
    best = best_method(stored, raw=attention.RAW.slug)
    assert (best and best.method) == expected
    assert from_dict(json.loads(json.dumps(asdict(stored)))) == stored
    monkeypatch.setattr(tiny_translator, "folder", tmp_path)
    write_json(tmp_path / faithfulness.FILE, asdict(replace(stored, digest=tiny_translator.digest)))
    ranking = rankings.ranking_of(tiny_translator)
    assert sorted(ranking.order) == sorted(METHODS) and "200 sentences" in ranking.reason
    if expected:
        ranked = [name for name in ranking.order if agreements.get(name.replace(" ", "_").replace("-", "_"))]
        assert ranking.order[0] == expected and not ranking.folded and list(ranking.order[: len(ranked)]) == ranked
        values = [agreements[name.replace(" ", "_").replace("-", "_")] for name in ranked]
        assert values == sorted(values, reverse=True), "the rows are ordered by agreement"
    else:
        assert (
            ranking.order[:2] == (occlusion.MASK.slug, occlusion.MEAN.slug) and len(ranking.folded) == len(METHODS) - 2
        )


def test_without_results_for_these_weights_the_page_says_so(
    tiny_translator, scene, tmp_path, monkeypatch, caplog
) -> None:
    monkeypatch.setattr(tiny_translator, "folder", tmp_path)
    assert "has not been measured" in rankings.ranking_of(tiny_translator).reason
    write_json(tmp_path / faithfulness.FILE, asdict(table(occlusion_by_mask=0.9)))
    ranking = rankings.ranking_of(tiny_translator)
    assert "other weights (0000000000000000)" in ranking.reason and not ranking.folded
    assert ranking.order[0] == occlusion.MASK.slug
    assert "other weights" in list(holds.holds(scene, holds.MEAN))[-1][-1]["text"]
    for damaged in ("{", "[]", '{"methods": [{"method": "x"}]}'):
        (tmp_path / faithfulness.FILE).write_text(damaged)
        assert (
            "has not been measured" in rankings.ranking_of(tiny_translator).reason and faithfulness.FILE in caplog.text
        )
    write_json(
        tmp_path / faithfulness.FILE, asdict(replace(table(occlusion_by_mask=0.9), digest=tiny_translator.digest))
    )
    tables = blocks_of(list(holds.holds(scene, holds.MEAN))[-1], "table")
    assert len(tables) == 2 and tables[1]["rows"][0][2] == "0.90 [0.80, 1.00]" and tables[1]["marked"] == [0]


def test_results_are_drawn_with_the_same_styles_in_all_pictures(tiny_translator, scene, tmp_path, monkeypatch) -> None:
    changed = replace(
        table(occlusion_by_mask=0.9, integrated_gradients=0.4, gradient_x_input=0.6), digest=tiny_translator.digest
    )
    monkeypatch.setattr(tiny_translator, "folder", tmp_path)
    write_json(tmp_path / faithfulness.FILE, asdict(changed))
    agreements, cascade = next(
        block["blocks"]
        for block in blocks_of(list(holds.holds(scene, holds.MEAN))[-1], "row")
        if "agrees with occlusion" in block["blocks"][0]["label"]
    )
    points = {
        y: (name["name"], x, high)
        for name in agreements["figure"]["data"]
        for x, y, high in zip(name["x"], name["y"], name["error_x"]["array"])
    }
    assert [str(row) for row in agreements["rows"]] == ["occlusion by mask", "gradient x input", "integrated gradients"]
    assert [points[i][1] for i in range(3)] == [0.9, 0.6, 0.4] and points[0][2] == pytest.approx(0.1)
    lines = {line["name"]["say"]: line for line in cascade["figure"]["data"]}
    assert len(lines) == len(METHODS) and all(line["y"] == [1.0, 0.6, 0.1] for line in lines.values())
    dashed = {METHODS[method.method].title for method in changed.methods if method.class_agnostic}
    assert {name for name, line in lines.items() if line["line"]["dash"] != "solid"} == dashed
    looks = {name: line["line"] for name, line in lines.items()}
    assert len({json.dumps(look) for look in looks.values()}) == len(METHODS), "each has its own line style"
    content = list(holds.holds(scene, holds.MEAN))[-1]
    for curve in block_of(content, "row")["blocks"]:
        drawn = {line["name"]["say"]: line["line"] for line in curve["figure"]["data"]}
        assert curve["figure"]["layout"].get("showlegend", True) and len(drawn) == len(METHODS)
        assert all(look == looks.get(name, look) for name, look in drawn.items()), "the same style in all pictures"
    monkeypatch.setattr(tiny_translator, "folder", tmp_path / "none")
    assert "has not been measured" in list(holds.holds(scene, holds.MEAN))[-1][-1]["text"]
