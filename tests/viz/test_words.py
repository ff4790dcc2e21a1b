"""The page's words in all its languages: none missing, none left over, no visible English that goes round them."""

from __future__ import annotations

import ast
import contextlib
import copy
import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from attention_atlas.model.analysis import ablation, bleu
from attention_atlas.model.analysis.order import shuffled
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal, error_message
from attention_atlas.model.translators import Translators
from attention_atlas.viz import assets, shell
from attention_atlas.viz.component import translations
from attention_atlas.viz.panels.scene import Scene, Selection
from attention_atlas.viz.tours.tour import WORDS as TOURS
from attention_atlas.viz.words import files, for_page, join, read, say
from tests.viz.panels import panels
from tests.words import ROOT, update, used, used_by_tours

FIELD = re.compile(r"\{(\w+)\}")
# Of these Chinese or Korean has no words of its own.
SAME = {"BLEU", "AttnLRP", "Logits", "softmax", "rollout", "{n}-grams", "{table}; base {base}", "{first} and {second}"}
WORDS = re.compile(r"[A-Za-z]{2,}(?![^{<]*[}>])")  # in a figure's text, but for Plotly's tags and fields
JOINED = re.compile(r"(?:\{part\d+\}[ ,]*)+")  # of join(): parts, each in words or not, one after another
# Whatever these do is done for a visitor, so a mistake of theirs is a Refusal, which has words in every language. Plain
# ValueErrors are left where no visitor gets: at the start of the program; in the API, which answers in English; inside
# a check, whose failure the page shows as such; and where no control of the page leads, but a caller's slip or a forged
# request does.
FOR_VISITORS = (
    "model/translator",
    "model/translators.py",
    "model/decode",
    "model/serve",
    "model/text/interface.py",
    "model/analysis",
    "viz/questions",
    "model/checks",
    "viz/server",
    "viz/panels",
    "viz/explorer",
    "viz/tours",
    "viz/directions.py",
    "viz/maps",
    "viz/wire",
)
AT_THE_START = {
    ("model/translators.py", "__init__"),
    ("model/translators.py", "load"),
    ("model/serve/processes.py", "__init__"),  # of training
    ("model/serve/device.py", "choose_device"),
    ("model/serve/limits.py", "__post_init__"),
    ("model/serve/limits.py", "longest"),
    ("viz/server/options.py", "check_port"),
}
TO_PROGRAMS = {f"viz/server/{name}.py" for name in ("api", "endpoints")}
TO_PROGRAMS |= {"viz/server/guard.py"}
IN_A_CHECK = {("model/checks/claims.py", "difference"), ("model/checks/verify.py", "measure")}
NO_CONTROL = {
    ("viz/maps/branches.py", "from_plain"),
    ("viz/questions/registry.py", "ask"),
    ("viz/questions/train.py", "page_train"),
    ("viz/maps/reduce.py", "__post_init__"),
    ("viz/wire/address.py", "link"),
    ("model/analysis/trust.py", "stored"),
    ("model/analysis/units/fitted.py", "load"),
    ("model/analysis/lenses/fit.py", "__post_init__"),
    ("model/analysis/lenses/measure.py", "found_words"),
    ("model/analysis/lenses/fitted.py", "load"),
    ("model/analysis/circuits/pairs.py", "make_batch"),
    ("model/analysis/circuits/graph.py", "edges_between"),
    ("model/analysis/circuits/circuit.py", "split"),
    ("model/analysis/units/sparse.py", "train"),
    ("model/decode/recipes.py", "check_place"),
    ("model/decode/beam.py", "beam_search"),
    ("model/decode/beam.py", "prefix_of"),
    ("model/translator/translator.py", "trace"),
    ("model/analysis/why/attribution.py", "_named"),
    ("model/analysis/why/case.py", "baseline_rows"),
    ("model/decode/runs.py", "__getitem__"),
    ("model/decode/runs.py", "to_frame"),
    ("model/decode/runs.py", "paired"),
    ("model/text/interface.py", "normalize_text"),
    ("model/translator/translator.py", "inspect"),
    ("model/translator/translator.py", "run"),
    ("model/translator/translator.py", "runs"),
    ("model/translator/translator.py", "log_probabilities"),
    ("model/analysis/again.py", "check_plain"),
    ("model/analysis/circuits/pairs.py", "_encode_words"),
    ("model/analysis/circuits/pairs.py", "make_pairs"),
    ("model/analysis/why/experiments/patching.py", "grid_of"),
    ("model/analysis/again.py", "check_again"),
    ("model/analysis/dissection.py", "dissect"),
    ("model/analysis/formulas/projections.py", "join_heads"),
    ("model/analysis/positions/criteria.py", "judge"),
    ("model/analysis/positions/geometry.py", "waves"),
    ("model/analysis/positions/geometry.py", "rotation_residual"),
    ("model/analysis/positions/schemes.py", "table"),
    ("model/analysis/stations.py", "next_token"),
    ("model/analysis/why/attribution.py", "check_methods"),
    ("model/analysis/why/case.py", "open_case"),
    ("model/checks/verify.py", "verify"),
    ("model/analysis/why/experiments/cutting.py", "effects_if_cut"),
    ("model/analysis/why/experiments/removal.py", "without"),
    ("model/analysis/survey/run.py", "__post_init__"),
    ("model/analysis/survey/run.py", "result"),
    ("model/analysis/survey/corpus.py", "look"),
    ("model/analysis/alignment/choose.py", "encode_words"),
    ("model/analysis/alignment/choose.py", "choose_heads"),
    ("viz/panels/heads/alignment.py", "link"),
    ("viz/panels/heads/survey.py", "head_of"),
    ("viz/panels/why/smallest.py", "as_file"),
    ("viz/panels/why/parts.py", "_head"),
    ("model/analysis/why/faithful.py", "read"),
    ("model/analysis/again.py", "check_again"),
    ("model/analysis/why/experiments/heads.py", "other_voices"),
    ("model/analysis/why/averages.py", "load"),
    ("model/analysis/why/averages.py", "asked_sentences"),
    ("viz/explorer/cut.py", "changes"),
    ("viz/panels/why/heads.py", "named"),
    ("model/analysis/why/averages.py", "collecting"),
    ("model/analysis/why/means_cache.py", "make"),
    ("model/analysis/sentences/__init__.py", "sentences"),
    ("viz/panels/panel.py", "fitted"),
    ("viz/maps/reduce.py", "of"),
    ("viz/wire/codecs.py", "_quantised"),
    ("viz/wire/codecs.py", "_signed_codes"),
    ("viz/explorer/overlays.py", "shown"),
    ("viz/panels/positions/breaking.py", "interventions_for"),
    ("viz/questions/steps.py", "_step"),
    ("viz/questions/steps.py", "rows"),
    ("viz/maps/reduce.py", "_check"),
    ("viz/wire/payload.py", "block"),
    ("viz/wire/readback.py", "grid_maps"),
}
LANGUAGES = {language: read(path) for language, path in files().items()}
TOURS_LANGUAGES = {path.stem: read(path) for path in TOURS.glob("*.json")}
KEYS = set(used())
CALL = re.compile(r'(?:(?<![\w.])|(?<=\.\.\.))(t|say)\(\s*("(?:[^"\\]|\\.)*")?')
LETTERS = {"zh": "[\u4e00-\u9fff]", "ko": "[\uac00-\ud7a3]"}  # of languages in a script of their own


def test_a_sentence_is_found_wherever_it_is_said(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tests.words.ROOT", tmp_path)
    (tmp_path / "viz").mkdir()
    (tmp_path / "model").mkdir()
    script, module = tmp_path / "viz" / "one.js", tmp_path / "model" / "one.py"
    script.write_text(
        """a(t("A {b}", { b: c ?? t("b") }), `it's ${d || t("c {d}", { d: {} })}`, ...parts(say('e' + 1)))"""
    )
    with pytest.raises(ValueError, match=r"viz/one\.js:1: words that are not a string"):
        used()
    script.write_text(
        """a(t("A {b}", { b: c ?? t("b") }), `it's ${d || t("c {d}", { d: {} })}`, ...parts(say("e")), own.say(f))"""
    )
    module.write_text('blocks.note("f {n}", n=blocks.headings("h"))\nraise Refusal("g" "h", i=say("i"))\n')
    assert sorted(used()) == ["A {b}", "b", "c {d}", "e", "f {n}", "gh", "h", "i"]
    module.write_text('say(f"{x}")\n')
    with pytest.raises(ValueError, match=r"model/one\.py:1"):
        used()


def test_a_file_is_kept_up_with_what_is_said(tmp_path, monkeypatch) -> None:
    path = tmp_path / "nl.json"
    monkeypatch.setattr("attention_atlas.viz.words.FOLDER", tmp_path)
    assert update(path, ["Layer", "Head"]) == ["Layer", "Head"]
    path.write_text(path.read_text().replace('"Layer": ""', '"Layer": "Laag"'))
    assert update(path, ["Token", "Layer"]) == ["Token"]
    assert list(read(path).items()) == [("Layer", "Laag"), ("Token", "")]


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_every_sentence_and_no_other(language) -> None:
    """make words enters what is missing, and drops the rest."""
    assert len(KEYS) > 1000
    for there, wanted in ((LANGUAGES, KEYS), (TOURS_LANGUAGES, set(used_by_tours()))):
        texts = {english for english, text in there[language].items() if text}
        assert wanted - texts == set(), f"{language} lacks these"
        assert there[language].keys() - wanted == set(), f"nothing says these of {language}"


def test_tours_are_told_in_the_languages_of_the_page() -> None:
    assert set(TOURS_LANGUAGES) == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_translated_is_in_its_language(language) -> None:
    for english, text in (LANGUAGES[language] | TOURS_LANGUAGES[language]).items():
        if not text:
            continue  # shown in English
        assert text.strip(), f"{english!r} is blank in {language}"
        assert sorted(set(FIELD.findall(text))) == sorted(set(FIELD.findall(english))), f"{language}: {text}"
        assert text.count("{") == len(FIELD.findall(text)), f"{language}: {text}"
        if language in LETTERS and re.search("[a-z]{3}", FIELD.sub("", english)) and english not in SAME:
            assert re.search(LETTERS[language], text), f"{english!r} is not in {language}: {text!r}"


def errors_without_words(within: Path) -> set[tuple[str, str]]:
    """(file, innermost function) of every plain ValueError that is raised in a file or folder."""
    found = set()

    def visit(node: ast.AST, path: str, scope: str) -> None:
        if isinstance(node, ast.FunctionDef):
            scope = node.name
        elif (
            isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and ast.unparse(node.exc.func) == "ValueError"
        ):
            found.add((path, scope))
        for child in ast.iter_child_nodes(node):
            visit(child, path, scope)

    for path in [within] if within.is_file() else within.rglob("*.py"):
        visit(ast.parse(path.read_text(encoding="utf-8")), path.relative_to(ROOT).as_posix(), "")
    return found


def test_what_a_visitor_can_do_wrong_is_said_in_words() -> None:
    plain = set().union(*(errors_without_words(ROOT / part) for part in FOR_VISITORS))
    plain = {(path, scope) for path, scope in plain if path not in TO_PROGRAMS}
    assert plain - AT_THE_START - IN_A_CHECK - NO_CONTROL == set(), "a ValueError without words: raise a Refusal"
    assert (AT_THE_START | IN_A_CHECK | NO_CONTROL) - plain == set(), "named here, but gone"


def test_nothing_matches_english_back() -> None:
    """A sentence is looked up by its template, never found by its looks; an error's text is shown, never read."""
    root, uses = ROOT / "viz/web", {}
    for path in root.glob("**/*.js"):
        text = path.read_text(encoding="utf-8")
        uses[path.relative_to(root).as_posix()] = re.findall(r".*\bwords\?\.\[.*", text)
        if path.name != "glossary.js":  # which looks for terms, in the page's own language
            assert "new RegExp(" not in text, path.name
        assert not re.search(
            r"message\.(match|search|replace|split|includes|startsWith)|"
            r"\.(test|exec)\([^)]*(message|error|say)",
            text,
        ), path.name
    assert {name: len(found) for name, found in uses.items() if found} == {"core/language.js": 1}
    assert "(words?.[english] || english)" in uses["core/language.js"][0]
    for path in (*(ROOT / "viz").rglob("*.py"), *(ROOT / "model").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert not re.search(
            r"\bin str\(error\)|(match|search|split|partition|startswith)\([^\n]*str\(error\)|"
            r"str\(error\)\.(startswith|endswith|find|index|replace|r?partition)\b",
            text,
        ), path


# Names of our own that happen to be words of the page, too.
SLUGS = {"all", "attention", "bias", "open", "rollout", "share", "source", "target", "norm"}
READING = ("startswith", "endswith", "find", "index", "removeprefix", "removesuffix", "split", "partition", "replace")


def texts(nodes: list[ast.expr]) -> list[str]:
    """The strings among expressions."""
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def read_back(tree: ast.AST) -> Iterator[str]:
    """Words of the page that a text is compared with, or a part of which is looked for in one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            compared = [e for s in sides for e in (s.elts if isinstance(s, ast.Tuple | ast.List | ast.Set) else [s])]
            yield from (text for text in texts(compared) if text in KEYS - SLUGS)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READING:
            for text in texts(node.args):
                if (
                    re.search("[A-Za-z]{3}", text)
                    and text not in SLUGS
                    and any(re.search(rf"\b{re.escape(text)}\b", k) for k in KEYS)
                ):
                    yield text


def test_no_python_reads_a_word_of_the_page_back() -> None:
    """What a pattern, a scheme or a curve is, its key says, never the words that it is shown with."""
    for path in (path for folder in ("viz", "model") for path in (ROOT / folder).rglob("*.py")):
        found = list(read_back(ast.parse(path.read_text(encoding="utf-8"))))
        assert not found, f"{path}: {found}"
    planted = 'name.endswith("sink") or name == "diagonal" or scheme.name in ("a tutorial\'s exponents",)'
    assert sorted(read_back(ast.parse(planted))) == ["a tutorial's exponents", "diagonal", "sink"]


def every_panel(translator) -> Iterator[object]:
    """The content of every panel of the lab with every choice, as it is sent to the page."""
    scene = Scene(
        translator.translate("Der kleine Hund schläft."), Selection(AttentionKind.DECODER_SELF, 2, 3, 1), translator
    )
    for panel in panels.EVERY:
        if panel.unmet_needs(scene):
            continue
        for values in panels.settings(panel, scene):
            with contextlib.suppress(Refusal):  # of what was typed: said in words, as another test sees
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
            found = {
                "items": [(title, note) for title, sentence, note in found["items"]]
                + [sentence for _, sentence, _ in found["items"] if isinstance(sentence, dict)]
            }
        if found.get("type") == "action":  # its data go back to the server
            found = {"text": found["text"]}
        if found.get("type") == "take":  # a key of the work goes back to the server
            found = {"begin": found["begin"], "about": found["about"]}
        if found.get("type") == "words":  # of the sentence, and a hint
            found = {"hint": found["hint"]}
        if found.get("type") == "marked":  # sentences, word by word
            found = {"texts": [(text["title"], text["note"]) for text in found["texts"]]}
        for key, value in found.items():
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
    elif isinstance(found, list | tuple):
        for value in found:
            yield from strings(value)


def figure_texts(found: object) -> Iterator[object]:
    """Figures' own texts: titles, names of lines, what the pointer shows; of joined ones the parts."""
    if isinstance(found, dict) and "figure" in found:
        layout, lines = found["figure"]["layout"], found["figure"]["data"]
        for text in [layout[axis]["title"].get("text", "") for axis in ("xaxis", "yaxis")] + [
            line.get(key) or "" for line in lines for key in ("name", "hovertemplate")
        ]:
            yield from text["with"].values() if isinstance(text, dict) and JOINED.fullmatch(text["say"]) else [text]
    for value in found.values() if isinstance(found, dict) else found if isinstance(found, list | tuple) else ():
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
    said = 0
    for found in every_panel(tiny_translator):
        for text, ours in strings(found):
            if ours:
                assert text in KEYS or JOINED.fullmatch(text), text
                said += 1
            elif re.search("[A-Za-z]{2}", text) and text not in tiny_translator.tokenizer.pieces:
                assert silent.search(text), f"English that goes round the table: {text!r}"
        for text in figure_texts(found):
            assert text["say"] in KEYS if isinstance(text, dict) else not WORDS.search(text), text
    assert said > 500


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
        lambda: shuffled("ich ich", seed=1),
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
        again = pickle.loads(pickle.dumps(caught.value))  # as it crosses processes on a ZeroGPU Space
        assert (type(again), str(again), for_page(error_message(again))) == (
            type(caught.value),
            str(caught.value),
            sent,
        )


def test_no_value_of_a_control_is_a_label(tiny_translator) -> None:
    """Gradio would send its translation in its place."""
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


@pytest.mark.parametrize("language", files())
def test_numbers_are_written_in_one_way(language) -> None:
    """Points for decimals, as in tables and formulas; per cent without a space, as in what is measured."""
    for english, text in (LANGUAGES[language] | TOURS_LANGUAGES[language]).items():
        assert not re.search(r"\d,\d|[\d}]\s%", text), f"{english!r}: {text!r}"


def test_words_stay_english_for_python_and_travel_with_their_values() -> None:
    words = say("{name}: {share} of its mass", name=say("diagonal"), share="40%")
    assert words == "diagonal: 40% of its mass"
    sent = for_page([words, say("count"), "plain", {"rows": [1, 2]}])
    assert sent == [
        {"say": "{name}: {share} of its mass", "with": {"name": {"say": "diagonal", "with": {}}, "share": "40%"}},
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


def test_no_script_shows_english_of_its_own() -> None:
    """A string of viz/web/*.js with a capitalised word or a phrase is an argument of t(), or is none to be read."""
    silent = {"use strict", "noopener noreferrer", "px px", "http://www.w3.org/1998/Math/MathML"} | {
        "Escape",
        "Home",
        "End",
        "Enter",
        "Esc",
        "Enter, r, k",
        "middle left",
    }
    classes = {
        name
        for path in (ROOT / "viz").glob("web/**/*.css")
        for name in re.findall(r"\.([a-z][\w-]*)", path.read_text(encoding="utf-8"))
    }
    literal = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
    seen = 0
    for path in (ROOT / "viz").glob("web/**/*.js"):
        text = re.sub(r"(?m)(^|(?<=[;{}(]) )\s*//.*", "", path.read_text(encoding="utf-8"))
        text = assets.IMPORT.sub("", re.sub(r'class: ("[^"]*"|`[^`]*`)', "", text))
        for found in literal.finditer(CALL.sub("(", text)):
            words = re.sub(r"\$\{(?:[^{}]|\{[^{}]*\})*\}", "", found[1] if found[2] is None else found[2])
            seen += 1
            if words in silent or set(words.split()) <= classes or words.startswith(("<", "Arrow", "background:")):
                continue
            assert not re.search(r"\b[A-Z][a-z]{2,}|[a-z]{2,} [a-z]{2,}", words), f"{path.name}: {words!r}"
    assert seen > 500


def test_no_visitor_is_shown_a_shell_command():
    for path in sorted((ROOT / "viz/web/words").rglob("*.json")):
        assert not [english for english in json.loads(path.read_text(encoding="utf-8")) if "python -m" in english], path
