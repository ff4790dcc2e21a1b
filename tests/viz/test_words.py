"""Translations of the page's texts: complete in every language, with the same placeholders, and used for all texts."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
import re
from collections.abc import Iterator
from itertools import chain

import pytest

from attention_atlas.model.analysis import ablation, bleu
from attention_atlas.model.analysis.ablation import shuffle_words
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal, error_message
from attention_atlas.model.translators import Translators
from attention_atlas.viz import assets, shell
from attention_atlas.viz.component import translations
from attention_atlas.viz.panels.scene import Scene, Selection
from attention_atlas.viz.words import files, for_page, join, read, say, say_plural
from tests.page.browser import PAIR
from tests.viz.panels import panels
from tests.words import (
    DEFINITIONS,
    ROOT,
    all_sentences,
    from_javascript,
    from_python,
    page_sentences,
    read_catalog,
    texts_of,
    update,
)

FIELD = re.compile(r"\{(\w+)\}")
# Texts that Chinese or Korean writes with Latin letters, too.
SAME = {
    "BLEU",
    "AttnLRP",
    "Logits",
    "softmax",
    "rollout",
    "{n}-grams",
    "Adam",
    "{table}; base {base}",
    "{first} and {second}",
    "Shift + t",
    "chrF",
    "logit x",
    "Transformers|Transformer",
}
WORDS = re.compile(r"[A-Za-z]{2,}(?![^{<]*[}>])")  # words in a figure's text, outside Plotly's tags and fields
JOINED = re.compile(r"(?:\{part\d+\}[ ,]*)+")  # a text made by join(), whose parts may be words or not
LANGUAGES = {language: read(path) for language, path in files().items()}
PAGE = page_sentences()
KEYS = {sentence if isinstance(sentence, str) else sentence[1] for sentence in PAGE}
CALL = re.compile(r'(?:(?<![\w.])|(?<=\.\.\.))(t|say|sayPlural)\(\s*("(?:[^"\\]|\\.)*"(,\s*"(?:[^"\\]|\\.)*")?)?')
LETTERS = {"zh": "[\u4e00-\u9fff]", "ko": "[\uac00-\ud7a3]"}  # languages with another script


def translations_of(language: str) -> Iterator[tuple[str, str]]:
    """Yield the English and the translation of each sentence, and of each form of a plural."""
    for english, texts in chain.from_iterable(
        read(folder / f"{language}.json").items() for folder, _, _ in all_sentences()
    ):
        yield from ((english, text) for text in (texts.values() if isinstance(texts, dict) else [texts]))


def test_translatable_texts_are_extracted_from_python_and_javascript(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tests.words.ROOT", tmp_path)
    (tmp_path / "viz").mkdir()
    (tmp_path / "model").mkdir()
    script, module = tmp_path / "viz" / "one.js", tmp_path / "model" / "one.py"
    script.write_text(
        """a(t("A {b}", { b: c ?? t("b") }), `it's ${d || t("c {d}", { d: {} })}`, ...parts(say('e' + 1)))"""
    )
    with pytest.raises(ValueError, match=r"viz/one\.js:1: a sentence must be a string"):
        page_sentences()
    script.write_text(
        """a(t("A {b}", { b: c ?? t("b") }), `it's ${d || t("c {d}", { d: {} })}`, ...parts(say("e")), own.say(f),
           sayPlural("{n} x", "{n} xs", { n }))"""
    )
    module.write_text(
        'blocks.note("f {n}", n=blocks.headings("h"))\nraise Refusal("g" "h", i=say_plural("{n} i", "{n} is", n=2))\n'
        'PANEL = Panel("name", "j", "k", compute)\n'
    )
    sentences = page_sentences()
    singular = sorted(s for s in sentences if isinstance(s, str))
    assert singular == ["A {b}", "b", "c {d}", "e", "f {n}", "gh", "h", "j", "k"]
    assert {s for s in sentences if isinstance(s, tuple)} == {("{n} x", "{n} xs"), ("{n} i", "{n} is")}
    module.write_text('say(f"{x}")\n')
    with pytest.raises(ValueError, match=r"model/one\.py:1"):
        page_sentences()


def test_a_changed_sentence_keeps_its_translation_while_the_placeholders_agree(tmp_path) -> None:
    po = tmp_path / "nl.po"
    catalog = update(po, "nl", ["Layer", "The head {n} of this layer", ("{n} token", "{n} tokens")])
    assert texts_of(catalog) == {}
    po.write_text(
        po.read_text()
        .replace(
            'msgid "The head {n} of this layer"\nmsgstr ""', 'msgid "The head {n} of this layer"\nmsgstr "Kop {n}"'
        )
        .replace('msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "{n} token"\nmsgstr[1] "{n} tokens"')
    )
    plural = {"{n} tokens": {"one": "{n} token", "other": "{n} tokens"}}
    changed = update(po, "nl", ["The head {n} of that layer", ("{n} token", "{n} tokens")])
    assert texts_of(changed) == {"The head {n} of that layer": "Kop {n}"} | plural
    assert [message.id for message in changed if message.fuzzy and message.id] == ["The head {n} of that layer"]
    assert texts_of(update(po, "nl", ["The head {head} of that layer", ("{n} token", "{n} tokens")])) == plural


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_pages_files_are_fresh(language) -> None:
    """`make words` writes them; every sentence is translated."""
    for folder, catalogs, sentences in all_sentences():
        catalog, texts = read_catalog(catalogs / f"{language}.po", language), read(folder / f"{language}.json")
        assert {message.id for message in catalog if message.id} == set(sentences)
        assert not [message.id for message in catalog if message.id and message.fuzzy]
        assert texts == texts_of(catalog) and len(texts) == len(sentences)


def test_a_plural_is_chosen_by_its_number() -> None:
    assert [say_plural("{n} token", "{n} tokens", n=n) for n in (0, 1, 1200)] == ["0 tokens", "1 token", "1,200 tokens"]
    words = say_plural("{n} token", "{n} tokens", n=1)
    assert for_page(words) == {"say": "{n} tokens", "one": "{n} token", "with": {"n": 1}}
    assert pickle.loads(pickle.dumps(words)) == words == copy.copy(words)
    assert str(Refusal.of(words)) == "1 token" and error_message(pickle.loads(pickle.dumps(Refusal.of(words)))) == words


def test_each_pair_of_wordings_is_a_title_that_the_page_has() -> None:
    """A title that was renamed loses its plain wording without notice."""
    wording = ROOT / "viz/web/core/wording.js"
    said = {
        english
        for suffix, extract in (("js", from_javascript), ("py", from_python))
        for folder in ("viz", "model")
        for path in {*(ROOT / folder).rglob(f"*.{suffix}")} - {*DEFINITIONS, wording}
        for english in extract(path)
    }
    pairs = PAIR.findall(wording.read_text(encoding="utf-8"))
    assert 30 < len(pairs) <= 40
    assert [technical for technical, _ in pairs if technical not in said] == []
    assert len(dict(pairs)) == len(pairs)


def test_tours_and_glossary_have_the_languages_of_the_page() -> None:
    for folder, _, _ in all_sentences():
        assert {path.stem for path in folder.glob("*.json")} == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_translations_have_the_placeholders_and_the_script_of_their_language(language) -> None:
    """In all languages, decimals have a point and percentages no space, as in the page's tables and formulas."""
    for english, text in translations_of(language):
        assert text.strip(), f"{english!r} is blank in {language}"
        assert sorted(set(FIELD.findall(text))) == sorted(set(FIELD.findall(english))), f"{language}: {text}"
        assert text.count("{") == len(FIELD.findall(text)), f"{language}: {text}"
        assert not re.search(r"\d,\d|[\d}]\s%", text), f"{english!r}: {text!r}"
        if language in LETTERS and re.search("[a-z]{3}", FIELD.sub("", english)) and english not in SAME:
            assert re.search(LETTERS[language], text), f"{english!r} is not in {language}: {text!r}"


def every_panel(translator) -> Iterator[object]:
    """Yield the content of every panel with each of its settings, as it is sent to the page."""
    scene = Scene(
        translator.translate("Der kleine Hund schläft."), Selection(AttentionKind.DECODER_SELF, 2, 3, 1), translator
    )
    for panel in panels.EVERY:
        if panel.unmet_needs(scene):
            continue
        for values in panels.settings(panel, scene):
            with contextlib.suppress(Refusal):  # a typed text may be refused
                yield for_page(panels.contents(panel, scene, *values))


def strings(content: object) -> Iterator[tuple[str, bool]]:
    """Yield the strings that the page shows of these blocks, each with whether it is to be translated."""
    if isinstance(content, str):
        yield content, False
    elif isinstance(content, dict) and "say" in content:
        yield content["say"], True
        for value in content["with"].values():
            yield from strings(value) if isinstance(value, dict) else ()
    elif isinstance(content, dict):
        if content.get("cell") in ("token", "strip") and isinstance(content.get("name", ""), str):
            return  # a token of the sentence
        if content.get("type") == "inside":
            return  # names and tokens of the picture, which its scripts put into words
        if content.get("type") == "cards":  # title, a sentence, a note
            content = {
                "items": [(title, note) for title, sentence, note in content["items"]]
                + [sentence for _, sentence, _ in content["items"] if isinstance(sentence, dict)]
            }
        if content.get("type") == "action":  # its data are sent back to the server
            content = {"text": content["text"]}
        if content.get("type") == "take":  # its key is sent back to the server
            content = {"begin": content["begin"], "about": content["about"]}
        if content.get("type") == "words":  # of the sentence, and a hint
            content = {"hint": content["hint"]}
        if content.get("type") == "marked":  # sentences, word by word
            content = {"texts": [(text["title"], text["note"]) for text in content["texts"]]}
        for key, value in content.items():
            if key not in (
                "type",
                "cell",
                "tone",
                "link",
                "figure",
                "source",
                "kind",
                "slot",
                "act",
                "key",
                "look",
                "about",
                "marks",
                "joint",
                "event",
                "data",
            ):
                yield from strings(value)
    elif isinstance(content, list | tuple):
        for value in content:
            yield from strings(value)


def figure_texts(content: object) -> Iterator[object]:
    """Figures' own texts: titles, names of lines, what the pointer shows; of joined ones the parts."""
    if isinstance(content, dict) and "figure" in content:
        layout, lines = content["figure"]["layout"], content["figure"]["data"]
        for text in [layout[axis]["title"].get("text", "") for axis in ("xaxis", "yaxis")] + [
            line.get(key) or "" for line in lines for key in ("name", "hovertemplate")
        ]:
            yield from text["with"].values() if isinstance(text, dict) and JOINED.fullmatch(text["say"]) else [text]
    for value in (
        content.values() if isinstance(content, dict) else content if isinstance(content, list | tuple) else ()
    ):
        yield from figure_texts(value)


@pytest.mark.long
def test_what_the_panels_say_is_in_the_table(tiny_translator, monkeypatch) -> None:
    # Results of long work that other tests have left would show sentences of corpora.
    monkeypatch.delattr(tiny_translator, "_results_of_work", raising=False)
    # Not words: formulas, tokens of a row, times, references to literature, sacreBLEU's signature, the paper's symbols.
    silent = re.compile(
        r"[=·√Σ]|^\S+ → \S+$|[a-z]\(|\d ms$|[a-z.] \d{4}|^nrefs:|^cos [\d.]|^\w+(, \w+){3}$|^(id|logit|d_model|d_ff"
        r"|d_feedforward|pre-norm|post-norm|softmax|FFN|ReLU|sin, cos|pos|bit i of pos|pos / .length − 1.)$"
    )
    count = 0
    for found in every_panel(tiny_translator):
        for text, ours in strings(found):
            if ours:
                assert text in KEYS or JOINED.fullmatch(text), text
                count += 1
            elif re.search("[A-Za-z]{2}", text) and text not in tiny_translator.tokenizer.pieces:
                assert silent.search(text), f"English that goes round the table: {text!r}"
        for text in figure_texts(found):
            assert text["say"] in KEYS if isinstance(text, dict) else not WORDS.search(text), text
    assert count > 500


def test_a_mistake_arrives_with_its_words(tiny_translator) -> None:
    trace = tiny_translator.translate("ich bin dein Vater")
    limit, end = tiny_translator.config.max_length, tiny_translator.tokenizer.end_id
    mistakes = (
        lambda: tiny_translator.translate("  "),
        lambda: tiny_translator.translate("Hund " * limit),
        lambda: tiny_translator.translate("x" * 200_000),
        lambda: tiny_translator.translate("a\ud800"),
        lambda: Translators([tiny_translator])["xx"],
        lambda: bleu.lay_out("a", ""),
        lambda: shuffle_words("ich ich", seed=1),
        lambda: ablation.compare(tiny_translator, trace, Interventions(), text="ich bin dein Onkel"),
        lambda: ablation.compare(tiny_translator, trace, Interventions(), text="ich bin dein"),
        lambda: tiny_translator.encode_typed("", joined=False),
        lambda: tiny_translator.trace("ich", trace.direction, prefix=[end, end]),
        lambda: tiny_translator.trace("ich", trace.direction, prefix=[5] * (limit + 1)),
    )
    for mistake in mistakes:
        with pytest.raises(Refusal) as caught:
            mistake()
        sent = for_page(error_message(caught.value))
        assert sent["say"] in KEYS and str(caught.value) == say(sent["say"], **sent["with"])
        copy = pickle.loads(pickle.dumps(caught.value))  # ZeroGPU sends it between processes
        assert (type(copy), str(copy), for_page(error_message(copy))) == (
            type(caught.value),
            str(caught.value),
            sent,
        )


def test_no_value_of_a_control_is_a_label(tiny_translator) -> None:
    """Gradio would send the translation of the label in its place."""
    seen, config = 0, shell.build(Translators([tiny_translator])).demo.config
    labels = translations(shell.LABELS).translations["en"]
    assert {"Translate", "Attention", "Your toy"} <= labels.keys() <= KEYS
    for component in config["components"]:
        values = [value for _, value in component["props"].get("choices") or ()] + [component["props"].get("value")]
        assert (
            not any(isinstance(value, str) and value in labels for value in values) or component["type"] == "button"
        ), values
        seen += len(values) > 1
    assert seen >= 1


def test_texts_are_english_in_python_and_are_sent_with_their_values() -> None:
    words = say("mostly {name} ({share} of its weight)", name=say("diagonal"), share="40%")
    assert words == "mostly diagonal (40% of its weight)"
    sent = for_page([words, say("count"), "plain", {"rows": [1, 2]}])
    assert sent == [
        {
            "say": "mostly {name} ({share} of its weight)",
            "with": {"name": {"say": "diagonal", "with": {}}, "share": "40%"},
        },
        {"say": "count", "with": {}},
        "plain",
        {"rows": [1, 2]},
    ]
    assert for_page([3, say("count")]) == [3, {"say": "count", "with": {}}], "beside a number, too"
    count = say("{n} of {all}", n=15400, all="8000")
    assert count == "15,400 of 8000", "the page groups numbers in its own way"
    assert for_page(count)["with"] == {"n": 15400, "all": "8000"}
    row = join((say("diagonal"), "{x}"), ", ")
    assert row == "diagonal, {x}" and copy.deepcopy(row).values == row.values
    assert for_page(row)["with"]["part0"] == {"say": "diagonal", "with": {}}


def test_scripts_have_no_untranslated_text() -> None:
    """Every string in viz/web with a capitalised word or a phrase must be an argument of t() or say()."""
    silent = {"use strict", "noopener noreferrer", "px px", "http://www.w3.org/1998/Math/MathML"} | {
        "Escape",
        "Home",
        "End",
        "Enter",
        "Esc",
        "Enter, r, k",
        "middle left",
        "onmouseenter onfocus",
        "onmouseleave onblur",
        "onpointerenter onfocus",
    }
    classes = {
        name
        for path in (ROOT / "viz").glob("web/**/*.css")
        for name in re.findall(r"\.([a-z][\w-]*)", path.read_text(encoding="utf-8"))
    }
    literal = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
    seen = 0
    drawings = ROOT / "viz/web/glossary/entries.js"  # with names from papers, and examples
    for path in {*(ROOT / "viz").glob("web/**/*.js")} - {drawings}:
        text = re.sub(r"(?s)/\*.*?\*/", "", path.read_text(encoding="utf-8"))
        text = re.sub(r"(?m)(^|(?<=[;{}(]) )\s*//.*", "", text)
        text = assets.IMPORT.sub("", re.sub(r'class: ("[^"]*"|`[^`]*`)', "", text))
        text = re.sub(r"new \w*Error\((?:\"[^\"]*\"|[^()]*)\)", "", text)  # errors appear only in the console
        for match in literal.finditer(CALL.sub("(", text)):
            words = re.sub(r"\$\{(?:[^{}]|\{[^{}]*\})*\}", "", match[1] if match[2] is None else match[2])
            seen += 1
            if words in silent or set(words.split()) <= classes or words.startswith(("<", "Arrow", "background:")):
                continue
            assert not re.search(r"\b[A-Z][a-z]{2,}|[a-z]{2,} [a-z]{2,}", words), f"{path.name}: {words!r}"
    assert seen > 500


def test_no_text_of_the_page_contains_a_shell_command():
    for path in sorted((ROOT / "viz/web/words").rglob("*.json")):
        assert not [english for english in json.loads(path.read_text(encoding="utf-8")) if "python -m" in english], path
