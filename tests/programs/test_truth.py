"""attention-atlas truth: every kind of benchmark on a tiny model; results without sentences; resumed runs."""

from __future__ import annotations

import gzip
import json
import shutil

import numpy as np
import pytest

from attention_atlas.model.analysis.trust import load_trust
from attention_atlas.model.checkpoint import load
from attention_atlas.model.trace.alignment import parse_links, pool_scores, score_links
from attention_atlas.model.trace.trust import Trust
from attention_atlas.model.truth import __main__ as truth
from attention_atlas.model.truth import alignment, benchmark, calibration, contrastive, detection
from attention_atlas.model.truth.benchmark import Benchmark, read_benchmarks
from attention_atlas.model.truth.report import HEADING
from tests.model.families import theirs

PAIRS = [
    ("Der kleine Hund schläft heute .", "The little dog sleeps today ."),
    ("Die Sonne scheint heute auf das Haus .", "Today the sun shines on the house ."),
    ("Eine Frau liest ein Buch im Park .", "A woman reads a book in the park ."),
    ("Der Mann trinkt einen Kaffee .", "The man drinks a coffee ."),
]
# Links made by hand (p: possible), links of an aligner, and counts: links, sure links by hand, correct ones among the
# sure links, correct ones among the possible links.
BY_HAND = [
    ("1-1 2-2", "1-1 2-2", (2, 2, 2, 2)),
    ("1-1 2-2 3-3", "1-1 2-3", (2, 3, 1, 1)),
    ("1-1 2p2 3p2", "1-1 2-2", (2, 1, 1, 2)),
    ("1-2 2-1", "1-1 2-2", (2, 2, 0, 0)),
    ("1-1", "", (0, 1, 0, 0)),
    ("1-1 2-4 3-2 4-3 5-5", "1-1 2-4 3-2 4-2 5-5", (5, 5, 4, 4)),
    ("1p1 1p2 2-3", "1-1 1-2 2-3 2-2", (4, 1, 1, 3)),
    ("1-1 2-2 3-3 4p3", "1-1 2-2 4-3", (3, 3, 2, 3)),
    ("3-1 1-2 2-3", "3-1 1-2 2-3", (3, 3, 3, 3)),
    ("1-1 2-2 2p3", "1-1 2-3 3-3", (3, 2, 1, 2)),
]
TOTAL = (26, 23, 15, 20)  # AER 1 - 35 / 49


def test_scores_of_ten_sentences_agree_with_counts_by_hand():
    scores = [
        score_links(parse_links(links, first=1).possible, parse_links(gold, first=1)) for gold, links, _ in BY_HAND
    ]
    for score, (_, _, counts) in zip(scores, BY_HAND, strict=True):
        assert (score.links, score.sure, score.right_sure, score.right_possible) == counts
    total = pool_scores(scores)
    assert (total.links, total.sure, total.right_sure, total.right_possible) == TOTAL
    assert total.error_rate == pytest.approx(1 - 35 / 49)


def test_links_are_reversed_with_the_direction_and_external_links_are_scored(tmp_path):
    (tmp_path / "gold.de").write_text("Der Hund schläft .\nDie Sonne scheint heute .\n")
    (tmp_path / "gold.en").write_text("The dog sleeps .\nToday the sun shines .\n")
    (tmp_path / "gold.talp").write_text("1-1 2-2 3-3 4-4\n1-2 2-3 3-4 4-1 5p5\n")
    (tmp_path / "back.talp").write_text("0-0 1-1 2-2 3-3\n1-0 2-1 3-2 1-3\n")
    forward, backward = (alignment.sentences(tmp_path, languages) for languages in (("de", "en"), ("en", "de")))
    assert forward[1][1].sure == {(0, 1), (1, 2), (2, 3), (3, 0)} and forward[1][1].possible >= {(4, 4)}
    assert backward[1][1].sure == {(1, 0), (2, 1), (3, 2), (0, 3)} and backward[1][0] == forward[1][0][::-1]
    others = {"back": {"file": "back.talp", "reversed": True}}
    external = Benchmark("b", "alignment", "", "", ("de-en",), "", {"others": others})
    assert alignment.external_rates(external, tmp_path) == {"back": 12.5}
    (tmp_path / "gold.talp").write_text("1-1\n")
    with pytest.raises(ValueError, match="2 sentences and 1 lines"):
        alignment.sentences(tmp_path, ("de", "en"))


def test_the_diagonal_links_first_and_last_words():
    for sources, targets in ((5, 9), (9, 5), (1, 3), (3, 1)):
        source_by_target = {target: source for source, target in alignment.diagonal(sources, targets)}
        assert source_by_target[0] == 0 and len(source_by_target) == targets
        assert targets == 1 or source_by_target[targets - 1] == sources - 1


def test_calibration_error_follows_its_definition():
    tokens = np.array([[0.05, 0.15, 0.15, 0.95, 0.95, 1.0], [0, 0, 1, 1, 1, 0]])
    bins = calibration.bin_tokens(tokens, 10)
    assert bins[0] == [1, 0.05, 0.0] and bins[1] == [2, 0.15, 0.5] and bins[9][0] == 3
    expected = (1 * 0.05 + 2 * 0.35 + 3 * abs(2.9 / 3 - 2 / 3)) / 6
    assert calibration.calibration_error(bins) == pytest.approx(expected, abs=1e-4)
    assert calibration.pool_bins([bins, bins])[1] == [4, 0.15, 0.5]


def test_rules_detect_hallucinations_and_repetitions():
    rules = {"pairs": 3, "beginning": 4, "chrf": 25}
    reference = "The committee adopted the report."
    assert detection.judge("A man plays guitar on a bench.", reference, rules) == {"hallucination"}
    assert detection.judge("The committees took the report.", reference, rules) == frozenset()
    assert detection.judge("of the of the of the of", reference, rules) == {"hallucination", "repetition"}
    random = np.random.default_rng(0)
    assert detection.swap_letters("Der Hund", [], random) == "Der Hnud"
    assert detection.insert_word("Der Hund", ["Fenster"], random) == "Fenster Der Hund"


def test_a_signal_is_compared_with_its_baseline():
    labels = np.arange(200) % 4 == 0
    random = np.random.default_rng(1)
    clear, noise = labels + random.normal(0, 0.3, 200), {"length": random.normal(size=200)}
    good = detection.compare_with_baselines("unsure", "here", "hallucination", clear, noise, labels)
    assert good.passed and good.auroc > 0.95 and good.low <= good.gain <= good.high and good.positives == 50
    same = detection.compare_with_baselines("unsure", "here", "hallucination", noise["length"], noise, labels)
    assert same.gain == same.low == same.high == 0 and not same.passed


@pytest.fixture()
def where(tiny_checkpoint, tmp_path, monkeypatch):
    """A folder with a checkpoint, its card, and data of four sentences, on which BENCHES are measured.

    PAIRS are the held-out pairs and the good translations.
    """
    shutil.copytree(tiny_checkpoint, tmp_path / "tiny")
    (tmp_path / "tiny" / "README.md").write_text(f"Before.\n\n{HEADING}\n\nOld.\n\n## After\n")
    data = tmp_path / "data"
    (data / "links").mkdir(parents=True)
    for side, language in enumerate(("de", "en")):
        (data / "links" / f"gold.{language}").write_text("\n".join(pair[side] for pair in PAIRS) + "\n")
    (data / "links" / "gold.talp").write_text("1-1 2-2 3-3\n1-2 2-3\n1-1 2-2\n1-1 2-2 5-5\n")
    header = ["source", "translation", "bad"]
    rows = [[*PAIRS[at % 4], str(at % 2)] for at in range(8)]
    for name, lines in (("judged", [header, *rows]), ("pairs", [[a, b, b[::-1]] for a, b in PAIRS])):
        with gzip.open(data / f"{name}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join("\t".join(line) for line in lines) + "\n")
    monkeypatch.setattr(truth, "read_benchmarks", lambda: BENCHES)
    monkeypatch.setattr("attention_atlas.model.truth.report.read_benchmarks", lambda: BENCHES)
    monkeypatch.setattr(benchmark.Bench, "held_out", lambda self, part: {"tatoeba": PAIRS, "formal": PAIRS})
    good = [detection.Row(*pair, frozenset()) for pair in PAIRS]
    monkeypatch.setattr(detection, "good_translations", lambda *_: good)
    return tmp_path


BENCHES = [
    Benchmark("links", "alignment", "Links", "By hand.", ("de-en",), "links", {"published": {"another": 5.0}}),
    Benchmark("pairs", "contrastive", "Pairs", "Two.", ("de-en",), ".", {"phenomena": {"all": ["pairs.tsv.gz"]}}),
    Benchmark("alarms", "quiet", "Alarms", "Few.", ("de-en",), ".", {"sentences": 3, "corpora": ["tatoeba"]}),
    Benchmark(
        "judged",
        "labelled",
        "Judged",
        "By people.",
        ("de-en",),
        "judged.tsv.gz",
        {"labels": {"bad": ["hallucination"]}},
    ),
    Benchmark("calibrated", "calibration", "Right?", "How often.", ("de-en",), ".", {"bins": 5, "sentences": 4}),
    Benchmark("elsewhere", "calibration", "No", "No.", ("en-cs",), ".", {}),
]


def test_every_kind_is_measured_and_a_stopped_run_continues(where, monkeypatch, capsys):
    options = ["--checkpoint", str(where / "tiny"), "--data", str(where / "data")]
    monkeypatch.setitem(truth.KINDS, "contrastive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        truth.main(options)
    assert not (where / "tiny" / "truth.json").exists()
    monkeypatch.setitem(truth.KINDS, "contrastive", contrastive.measure)
    for kind in ("alignment", "quiet", "labelled", "calibration"):
        monkeypatch.setitem(truth.KINDS, kind, interrupted)  # their results are stored
    truth.main(options)
    values = json.loads((where / "tiny" / "truth.json").read_text())
    assert values["digest"] == load(where / "tiny").digest
    by_name = {result["benchmark"]: result["found"] for result in values["results"]}
    assert set(by_name) == {"links", "pairs", "alarms", "judged", "calibrated"}
    assert np.shape(by_name["links"]["heads"]["read"]) == (3, 4)
    assert set(by_name["links"]["chosen"]) == {*alignment.MODES}
    assert by_name["pairs"]["phenomena"]["all"]["pairs"] == 4 and by_name["judged"]["labels"]["hallucination"] == 4
    assert sum(row[0] for row in by_name["calibrated"]["bins"]["all"]) > 0
    trust = Trust.from_json(values["trust"]["de-en"])
    assert Trust.from_json(json.loads(json.dumps(trust.to_json()))) == trust
    assert {result.signal for result in trust.scores} == {"unsure", "unmoved", "detached"}
    card = (where / "tiny" / "README.md").read_text()
    assert card.startswith("Before.") and card.endswith("\n## After\n") and "Old." not in card
    assert "another, published on the whole set | 5.0" in card and not any(w in card for w in ("Hund", "woman"))
    with pytest.raises(ValueError, match=r"truth\.json is there already: use --replace"):
        truth.main(options)
    monkeypatch.setitem(truth.KINDS, "alignment", alignment.measure)
    truth.main([*options, "--only", "links", "--replace"])  # the other results remain
    remeasured = json.loads((where / "tiny" / "truth.json").read_text())
    assert [result["benchmark"] for result in remeasured["results"]] == [
        result["benchmark"] for result in values["results"]
    ]
    before = (where / "tiny" / "truth.json").read_text()
    for wrong in (["--data", str(where / "nowhere")], ["--data", str(where / "nowhere"), "--only", "links"]):
        with pytest.raises(ValueError, match="nowhere has no data of the benchmarks for de-en, en-fr"):
            truth.main([*options, *wrong, "--replace"])
    assert (where / "tiny" / "truth.json").read_text() == before and (where / "tiny" / "README.md").read_text() == card
    capsys.readouterr()
    truth.main(["--list"])
    assert "elsewhere" in capsys.readouterr().out


def test_an_imported_model_is_measured(where, tmp_path):
    theirs.FAMILIES["marian"](tmp_path / "marian").save_pretrained(tmp_path / "marian")
    truth.main(["--checkpoint", str(tmp_path / "marian"), "--data", str(where / "data")])
    values = json.loads((tmp_path / "marian" / "truth.json").read_text())
    assert {result["benchmark"] for result in values["results"]} == {"links", "pairs", "alarms", "judged", "calibrated"}
    assert load_trust(tmp_path / "marian", values["digest"])["de-en"].thresholds


def interrupted(*_) -> dict:
    raise KeyboardInterrupt


def test_shipped_benchmarks_cover_every_kind_and_have_different_definitions():
    shipped = read_benchmarks()
    assert {bench.kind for bench in shipped} == set(truth.KINDS)
    assert len({bench.definition for bench in shipped}) == len(shipped)
