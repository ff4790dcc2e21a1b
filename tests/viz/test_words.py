"""The page's words in all its languages: none missing, none left over, no visible English that goes round them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

import app
from model.analysis import ablation, paths
from model.analysis.order import shuffled
from model.evaluation import bleu
from model.trace.interventions import Interventions
from model.trace.kinds import AttentionKind
from model.translator import Translators
from tests.viz import label_scan, panels
from viz.ui.lab.panel import Scene
from viz.ui.session import Selection
from viz.ui.stepper import _words as stepper_error
from viz.words import files, for_page, known, read, say

FIELD = re.compile(r"\{(\w+)\}")
# Of these Chinese or Korean has no words of its own.
SAME = {"BLEU", "Logits", "rollout", "{n}-grams", "{table}; base {base}", "{first} and {second}"}
WORDS = re.compile(r"[A-Za-z]{2,}(?: [a-z]+)*(?![^{<]*[}>])")  # as inWords() of viz/web/lab/blocks.js
LANGUAGES = {language: read(path) for language, path in files().items()}
TABLE = {section: set().union(*(given.get(section, {}) for given in LANGUAGES.values()))
         for section in ("controls", "page", "sentences")}
LETTERS = {"zh": "[\u4e00-\u9fff]", "ko": "[\uac00-\ud7a3]"}  # of languages in a script of their own


def pattern(english: str) -> re.Pattern:
    """What the English says with any values."""
    return re.compile("(.+)".join(re.escape(part) for part in FIELD.split(english)[::2]), re.DOTALL)


def is_translated(english: str) -> bool:
    """Whether the page has other words for this: as they stand, or as a sentence with values."""
    return any(english in rows for rows in TABLE.values()) or any(
        pattern(sentence).fullmatch(english) for sentence in TABLE["sentences"])


def used() -> dict[str, set[str]]:
    return {"controls": set(label_scan.python("label")),
            "page": set(label_scan.python("say")) | set(label_scan.javascript())}


@pytest.mark.parametrize("section", ["controls", "page"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_every_label_and_no_other(language, section) -> None:
    wanted, there = used()[section], set(LANGUAGES[language][section])
    assert len(wanted) > 50
    assert wanted - there == set(), f"missing in {files()[language].name}, section {section!r}"
    assert there - wanted == set(), f"nothing uses these of {files()[language].name}, section {section!r}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_label_is_in_its_language(language) -> None:
    assert list(LANGUAGES[language]) == list(TABLE), "the sections"
    assert set(LANGUAGES[language]["sentences"]) == TABLE["sentences"]
    merged = {}
    for english, text in (item for rows in LANGUAGES[language].values() for item in rows.items()):
        assert text.strip(), f"{english!r} is empty in {language}"
        assert sorted(set(FIELD.findall(text))) == sorted(set(FIELD.findall(english))), f"{language}: {text}"
        assert text.count("{") == len(FIELD.findall(text)), f"{language}: {text}"
        assert merged.setdefault(english, text) == text, f"{english!r} is said in two ways: the page knows no sections"
        if language in LETTERS and re.search("[a-z]{3}", FIELD.sub("", english)) and english not in SAME:
            assert re.search(LETTERS[language], text), f"{english!r} is not in {language}: {text!r}"


def templates() -> Iterator[str]:
    """Every string of model/ and viz/, with {} for what it fills in."""
    root = label_scan.VIZ.parent
    for path in (*root.glob("model/**/*.py"), *root.glob("viz/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_every_sentence_is_one_that_the_program_says(tiny_translator) -> None:
    written, said = set(templates()), set()
    for found in every_panel(tiny_translator):
        said |= {text for text, _ in strings(found)} | set(figure_words(found))
    for sentence in TABLE["sentences"]:
        assert FIELD.sub("{}", sentence) in written or any(pattern(sentence).fullmatch(text) for text in said), (
            f"nothing says {sentence!r}")


def every_panel(translator) -> Iterator[object]:
    """The content of every panel of the lab with every choice, as it is sent to the page."""
    scene = Scene(translator.translate("Der kleine Hund schläft."), Selection(AttentionKind.DECODER_SELF, 2, 3, 1),
                  translator)
    for panel in panels.EVERY:
        for values in panels.settings(panel, scene):
            yield for_page(panels.contents(panel, scene, *values))


def strings(found: object) -> Iterator[tuple[str, bool]]:
    """The strings that the page shows of these blocks, and whether it is to say them in its own language."""
    if isinstance(found, str):
        yield found, False
    elif isinstance(found, dict) and "say" in found:
        yield found["say"], True
        for value in found["with"].values():
            yield from strings(value) if isinstance(value, dict) else ()
    elif isinstance(found, dict):
        if found.get("cell") in ("token", "strip") and isinstance(found.get("name", ""), str):
            return  # a token of the sentence
        if found.get("type") == "cards":  # title, a sentence, a note
            found = {"items": [(title, note) for title, sentence, note in found["items"]
                               ] + [sentence for _, sentence, _ in found["items"] if isinstance(sentence, dict)]}
        for key, value in found.items():
            if key not in ("type", "cell", "tone", "panel", "figure", "source"):
                yield from strings(value)
    elif isinstance(found, list | tuple):
        for value in found:
            yield from strings(value)


def figure_words(found: object) -> Iterator[str]:
    """The runs of words of figures' own texts: titles, names of lines, what the pointer shows."""
    if isinstance(found, dict) and "figure" in found:
        layout, lines = found["figure"]["layout"], found["figure"]["data"]
        for text in [layout[axis]["title"].get("text", "") for axis in ("xaxis", "yaxis")] + [
                line.get(key) or "" for line in lines for key in ("name", "hovertemplate")]:
            yield from WORDS.findall(text)
    for value in found.values() if isinstance(found, dict) else found if isinstance(found, list | tuple) else ():
        yield from figure_words(value)


def test_what_the_panels_say_is_in_the_table(tiny_translator) -> None:
    # Not words: formulas, times, references to literature, sacreBLEU's signature, the paper's symbols.
    silent = re.compile(r"[=·√Σ]|[a-z]\(|\d ms$|[a-z.] \d{4}|^nrefs:|^cos [\d.]|^(id|logit|d_model|pre-norm|post-norm"
                        r"|softmax|pos|bit i of pos|pos / .length − 1.)$")
    said = 0
    for found in every_panel(tiny_translator):
        for text, ours in strings(found):
            if ours:
                assert is_translated(text) or text in ("d_model", "d_feedforward", "softmax"), text
                said += 1
            elif re.search("[A-Za-z]{2}", text) and text not in tiny_translator.tokenizer.pieces:
                assert silent.search(text), f"English that goes round the table: {text!r}"
        for words in figure_words(found):
            assert is_translated(words), words
    assert said > 500


def test_what_a_visitor_can_do_wrong_is_in_the_table(tiny_translator) -> None:
    trace = tiny_translator.translate("ich bin dein Vater")
    limit, end = tiny_translator.config.max_length, tiny_translator.tokenizer.end_id
    mistakes = (
        lambda: tiny_translator.translate("  "), lambda: tiny_translator.translate("Hund " * limit),
        lambda: tiny_translator.translate("x" * 200_000), lambda: tiny_translator.translate("a\ud800"),
        lambda: Translators([tiny_translator])["xx"], lambda: bleu.lay_out("a", ""),
        lambda: shuffled("ich ich", seed=1),
        lambda: ablation.compare(tiny_translator, trace, Interventions(), text="ich bin dein Onkel"),
        lambda: ablation.compare(tiny_translator, trace, Interventions(), text="ich bin dein"),
        lambda: paths.typed_ids(tiny_translator, "", joined=False),
        lambda: paths.complete(tiny_translator, "ich", [end, end], trace.direction),
        lambda: paths.complete(tiny_translator, "ich", [5] * (limit + 1), trace.direction))
    for mistake in mistakes:
        with pytest.raises(ValueError) as caught:
            mistake()
        assert is_translated(str(caught.value)), str(caught.value)
    assert is_translated(stepper_error(KeyError("x")))


def test_no_value_of_a_control_is_a_label(tiny_translator) -> None:
    """Gradio would send its translation in its place."""
    seen = 0
    for component in app.build_demo(Translators([tiny_translator])).config["components"]:
        values = [value for _, value in component["props"].get("choices") or ()] + [component["props"].get("value")]
        assert not any(isinstance(value, str) and value in TABLE["controls"] for value in values
                       ) or component["type"] == "button", values
        seen += len(values) > 1
    assert seen > 5


def test_words_stay_english_for_python_and_travel_with_their_values() -> None:
    words = say("{name}: {share} of its mass", name=say("diagonal"), share="40%")
    assert words == "diagonal: 40% of its mass"
    sent = for_page([words, known("count"), "plain", {"rows": [1, 2]}])
    assert sent == [{"say": "{name}: {share} of its mass", "with": {"name": {"say": "diagonal", "with": {}},
                                                                   "share": "40%"}},
                    {"say": "count", "with": {}}, "plain", {"rows": [1, 2]}]


def test_no_script_shows_english_of_its_own() -> None:
    """A string of viz/web/*.js with a capitalised word or a phrase is an argument of t(), or is none to be read."""
    silent = {"use strict", "noopener noreferrer", "px px"} | {"Escape", "Home", "End", "Enter", "Esc", "Enter, r, k"}
    classes = {name for path in label_scan.VIZ.glob("web/**/*.css")
               for name in re.findall(r"\.([a-z][\w-]*)", path.read_text(encoding="utf-8"))}
    literal = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
    seen = 0
    for path in label_scan.VIZ.glob("web/**/*.js"):
        text = re.sub(r"(?m)(^|(?<=[;{}(]) )\s*//.*", "", path.read_text(encoding="utf-8"))
        text = re.sub(r'class: ("[^"]*"|`[^`]*`)', "", text)
        for found in literal.finditer(label_scan.CALL.sub("(", text)):
            words = re.sub(r"\$\{(?:[^{}]|\{[^{}]*\})*\}", "", found[1] if found[2] is None else found[2])
            seen += 1
            if words in silent or set(words.split()) <= classes or words.startswith(("<", "Arrow", "background:")):
                continue
            assert not re.search(r"\b[A-Z][a-z]{2,}|[a-z]{2,} [a-z]{2,}", words), f"{path.name}: {words!r}"
    assert seen > 500
