"""Questions of stops and worksheets: the right choices agree with the trace and the model, for any sentence."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model.trace.interventions import Interventions, positions_off
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.words import word_groups
from attention_atlas.viz.tours import guide
from attention_atlas.viz.tours.asks import ASKS, OTHER, SAME, TURNED, exchange_nouns, task_payload
from attention_atlas.viz.tours.measures import matters_most
from attention_atlas.viz.tours.scene import StopScene
from attention_atlas.viz.tours.tour import Pair, tours
from attention_atlas.viz.words import for_page

TEXTS = {
    "de-en": (
        "Der Hund beißt den Mann.",
        "Mein Bruder hat gestern einen roten Apfel gegessen.",
        "z. B. 😀 <s> &amp; |",
    ),
    "en-de": ("The dog bites the man.", "She has never seen the old bridge near our house before."),
    "en-fr": ("Two children are playing on the beach.", "Yes"),
}


def scene_of(translators, direction: str, text: str, checkpoint: str = "") -> StopScene:
    translator = translators[translators.find(direction, checkpoint).label]
    return StopScene(translator.translate(text, direction), made_by=translator)


@pytest.fixture(scope="module")
def scenes(shipped_translators, tiny_translator) -> list[StopScene]:
    """Return scenes of every model, for sentences in each of its directions."""
    values = [
        scene_of(shipped_translators, route.direction, text, route.checkpoint)
        for route in shipped_translators.routes
        for text in TEXTS[route.direction]
    ]
    return [*values, StopScene(tiny_translator.translate("Der kleine Hund schläft."), made_by=tiny_translator)]


def right_choices(task: dict) -> list[str]:
    return [str(task["choices"][i]) for i in task["right"]]


@pytest.mark.parametrize("name", ASKS)
def test_every_question_has_choices_or_says_why_not(scenes, name):
    answered = 0
    for scene in scenes:
        task = task_payload(scene, name)
        assert for_page(task)
        if "missing" in task:
            assert task["missing"].endswith((".", "parts.")) and len(task) == 1
            continue
        answered += 1
        choices = [str(choice) for choice in task["choices"]]
        assert len(set(choices)) == len(choices) >= 2 or name in ("read_most", "costs_most", "least_sure")
        assert 1 <= len(task["right"]) <= len(choices) and set(task["right"]) <= set(range(len(choices)))
        assert task["prompt"].endswith("?") and task["answer"]
        assert {"text", "direction", "checkpoint", "tab"} <= set(task["view"])
        if task["picture"] and task["picture"]["type"] == "bars":
            values = np.array(task["picture"]["values"])
            assert np.isfinite(values).all() and (values >= 0).all()
            assert int(values.argmax()) in task["right"] or name == "least_sure"
    assert answered >= (1 if name == "reordered" else 4), name  # "reordered" needs two German nouns with articles


def test_right_choices_agree_with_the_trace(shipped_translators):
    scene = scene_of(shipped_translators, "de-en", TEXTS["de-en"][1])
    trace, frame = scene.trace, scene.trace.to_frame()
    assert right_choices(task_payload(scene, "steps")) == [str(len(frame))]
    assert right_choices(task_payload(scene, "maps")) == [
        str(sum(np.prod(trace.maps(kind).weights.shape[:2]) for kind in trace.kinds))
    ]
    least = task_payload(scene, "least_sure")
    products = {
        "".join(trace.target_tokens[i] for i in group).strip("▁"): frame.probability.iloc[list(group)].prod()
        for group in word_groups(trace.target_tokens)
    }
    assert min((word for word in products if word.isalpha()), key=products.get) in right_choices(least)
    ids = scene.translator.tokenizer.encode("Apfel")
    apple = StopScene(trace, made_by=scene.translator, pair=Pair("Apfel", ("apple",)))
    assert right_choices(task_payload(apple, "pieces")) == [str(len(ids))]
    step = apple.target[0]
    assert right_choices(task_payload(apple, "may_read")) == [
        str(int((trace.maps(AttentionKind.DECODER_SELF).weights[:, :, step] > 0).any((0, 1)).sum()))
    ]
    following = task_payload(apple, "next_piece")
    assert right_choices(following) == [trace.top_tokens[step][0].strip("▁")] and following["hides"]
    read = task_payload(apple, "read_most")
    layer, head = int(read["view"]["layer"]) - 1, int(read["view"]["head"]) - 1
    row = trace.cross.weights[layer, head, step]
    assert trace.source_tokens[int(row.argmax())].strip("▁") in right_choices(read)
    words = [i for i, token in enumerate(trace.source_tokens) if token.strip("▁").isalpha()]
    assert row.max() == pytest.approx(trace.cross.weights[:, :, step, words].max(), abs=1e-6)


def test_right_choices_of_experiments_agree_with_the_model(shipped_translators):
    scene = scene_of(shipped_translators, "en-de", TEXTS["en-de"][0])

    def translate(text: str = scene.trace.source_text, **how: object) -> str:
        return scene.translator.translate(text, "en-de", **how).translation

    def outcome(after: str) -> str:
        plain = [text.lower().strip(".").split() for text in (scene.trace.translation, after)]
        return str(SAME if plain[0] == plain[1] else TURNED if sorted(plain[0]) == sorted(plain[1]) else OTHER)

    assert right_choices(task_payload(scene, "unordered")) == [outcome(translate(interventions=positions_off()))]
    off = task_payload(scene, "head_off")
    head = AttentionKind(off["view"]["kind"]), int(off["view"]["layer"]) - 1, int(off["view"]["head"]) - 1
    assert right_choices(off) == [outcome(translate(interventions=Interventions(heads_off=frozenset({head}))))]
    turned = StopScene(scene.trace, made_by=scene.translator, other="The man bites the dog.")
    task = task_payload(turned, "reordered")
    assert right_choices(task) == [str(TURNED)] and "“The man bites the dog”." in str(task["prompt"])
    about = StopScene(scene.trace, made_by=scene.translator, pair=Pair("", ("Hund",)))
    (word,) = right_choices(task_payload(about, "costs_most"))
    assert matters_most(StopScene(scene.trace, made_by=scene.translator, pair=Pair(word, ("Hund",)))).value > 0


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Der Hund beißt den Mann.", "Den Mann beißt der Hund."),
        ("Heute kauft die alte Frau ein rotes Auto!", "Heute kauft ein rotes Auto die alte Frau!"),
        ("Die Katze, die ein Fisch sieht, schläft.", "Ein Fisch, die die Katze sieht, schläft."),
    ],
)
def test_two_nouns_change_places_with_their_articles(text, other):
    assert exchange_nouns(text) == other


@pytest.mark.parametrize("text", ["Der Hund schläft.", "Ich möchte ein Bier.", "Guten Tag!", ""])
def test_a_sentence_without_two_such_nouns_is_refused(text):
    with pytest.raises(ValueError, match="no other order"):
        exchange_nouns(text)


def test_questions_that_cannot_be_asked_say_why(shipped_translators):
    gru = scene_of(shipped_translators, "de-en", TEXTS["de-en"][0], "gru-de-en")
    for name in ("may_read", "costs_most", "head_off", "unordered"):
        assert task_payload(gru, name)["missing"], name
    assert task_payload(gru, "read_most")["view"]["kind"] == "alignment"
    scene = scene_of(shipped_translators, "de-en", TEXTS["de-en"][0])
    absent = StopScene(scene.trace, made_by=scene.translator, pair=Pair("", ("zebra",)))
    assert "zebra" in task_payload(absent, "read_most")["missing"]


def test_a_question_of_a_worksheet_is_answered_or_refused(shipped_translators):
    good = {"text": "Der Hund schläft.", "direction": "de-en", "checkpoint": "", "ask": "read_most", "word": "dog"}
    task = guide.task(shipped_translators, good)
    assert "dog" in task["wrote"] and right_choices(task["ask"]) == ["Hund"]
    for change in ({"ask": "__class__"}, {"ask": None}, {"text": 3}, {"text": ""}, {"direction": "xx"}, {"word": []}):
        with pytest.raises(Refusal):
            guide.task(shipped_translators, good | change)
    for missing in ("text", "direction", "ask"):
        with pytest.raises(Refusal):
            guide.task(shipped_translators, {name: value for name, value in good.items() if name != missing})


def test_a_worksheet_can_be_made_of_every_tour_that_asks(shipped_translators):
    every = tours()
    options = guide.worksheet_options(shipped_translators, every)
    assert [tour["name"] for tour in options["tours"]] == [name for name, tour in every.items() if tour.asks]
    assert every["lesson"].minutes == 45 and every["lesson"].asks >= 10
    assert {question["name"] for question in options["asks"]} == set(ASKS)
