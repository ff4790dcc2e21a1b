"""Tests of the named endpoints, called by gradio_client and by raw HTTP; test_readme_api.py calls one by curl."""

from __future__ import annotations

import base64
import io
import json

import numpy as np
import pytest
from gradio_client import Client

from attention_atlas.model.serve.limits import Busy
from attention_atlas.model.trace import interventions_file, storage
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.translators import Translators
from attention_atlas.viz.export import table
from attention_atlas.viz.export.formats import FORMATS, Format, Scope
from attention_atlas.viz.maps import labels
from attention_atlas.viz.questions.registry import QUESTIONS
from attention_atlas.viz.server import api
from attention_atlas.viz.server.endpoints import EndpointContext, answer_or_refusal, endpoint
from bench.load import Caller
from tests.conftest import SENTENCES

TEXT = SENTENCES[0]


def ask(client: Client, endpoint: str, *args, **options) -> dict:
    answer = client.predict(*args, api_name=f"/{endpoint}", **options)
    assert answer.pop("api_version") == 1
    assert answer.pop("status") == "ok", answer
    return answer


def refused(client: Client, endpoint: str, *args, **options) -> str:
    answer = client.predict(*args, api_name=f"/{endpoint}", **options)
    assert answer.keys() == {"api_version", "status", "error", "message"}, answer
    assert (answer["status"], answer["error"]) == ("error", "invalid")
    return answer["message"]


def test_these_endpoints_and_no_others_are_public(client):
    public = client.view_api(return_format="dict", print_info=False)
    assert set(public["named_endpoints"]) == {f"/{name}" for name in api.ENDPOINTS}
    assert not public["unnamed_endpoints"]


CHANGED = {
    "heads_off": [["cross", 0, 1], ["cross", 1, 2]],
    "edits": [{"place": "decoder.0.ffn.out", "kind": "scale", "by": 0.1}],
}
FIELDS = {
    "step": {"prefix": [9]},
    "score": {"target": "A boat."},
    "why": {"methods": ["cross_attention"]},
    "why_patch": {"second": SENTENCES[2]},
}
WITHOUT_INTERVENTIONS = {"why_circuit"}


@pytest.mark.parametrize("name", [name for name in api.ENDPOINTS if name not in WITHOUT_INTERVENTIONS])
def test_every_endpoint_takes_interventions(tiny_translator, name):
    """Empty ones are the plain model; experiments that cannot apply edits refuse them."""
    call = api.ENDPOINTS[name].bind(EndpointContext(Translators([tiny_translator])))
    fields = {"text": TEXT, **FIELDS.get(name, {})}
    changed = CHANGED if not name.startswith("why") else {"heads_off": CHANGED["heads_off"]}
    plain, empty, other = (call(**fields, interventions=value) for value in (None, {}, changed))
    for answer in (plain, empty, other):
        assert answer["status"] == "ok", answer
        answer.pop("seconds", None)
        answer.get("trace", {}).pop("seconds", None)
    assert plain == empty != other
    if name.startswith("why"):
        refusal = call(**fields, interventions=CHANGED)
        assert refusal["error"] == "invalid" and "edits of named places" in refusal["message"]


def test_a_circuit_is_refused_under_interventions(client):
    refusal = refused(client, "why_circuit", TEXT, SENTENCES[2], interventions={"heads_off": CHANGED["heads_off"]})
    assert "changed model" in refusal


def test_interventions_act_as_in_the_library(client, tiny_translator):
    expected = tiny_translator.translate(TEXT, interventions=interventions_file.from_plain(CHANGED))
    answer = ask(client, "translate", TEXT, interventions=CHANGED)
    assert answer["translation"] == expected.translation
    assert interventions_file.from_plain(answer["interventions"]) == expected.interventions
    score = ask(client, "score", TEXT, "A boat.", interventions=CHANGED)
    forced = tiny_translator.trace(TEXT, target="A boat.", interventions=expected.interventions)
    np.testing.assert_allclose(score["log_probability"], float(forced.log_probability.sum()), atol=1e-4)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"heads_off": [["cross", 9, 9]]}, "layers 0 to"),
        ({"heads_off": [["crossing", 0, 0]]}, "'crossing' is"),
        ({"heads": []}, "interventions are an object of"),
        ([1], "interventions are an object of"),
        ([], "interventions are an object of"),
        (False, "interventions are an object of"),
        ("{", "not JSON"),
        ({"in_words": "something"}, "are edits"),
        ({"heads_off": [["cross", 0, i] for i in range(1001)]}, "at most 1,000 at once, found 1,001"),
        ({"edits": [{"place": "decoder.0.ffn.out", "kind": "scale", "by": float("nan")}]}, "a finite number"),
        ({"edits": [{"place": "decoder.0.fnn.out", "kind": "ablate"}]}, "decoder.0.ffn.out"),
        ({"edits": [{"place": "encoder.final", "kind": "ablate", "positions": [63]}]}, "at position 63"),
    ],
)
def test_invalid_interventions_are_refused_in_words(tiny_translator, wrong, words):
    call = api.ENDPOINTS["translate"].bind(EndpointContext(Translators([tiny_translator])))
    answer = call(TEXT, interventions=wrong)
    assert answer["status"] == "error" and answer["error"] == "invalid" and words in answer["message"], answer


@pytest.mark.parametrize("interventions", [CHANGED, json.dumps(CHANGED), {}, "", None])
def test_interventions_may_be_sent_as_json_text(tiny_translator, interventions):
    translate = api.ENDPOINTS["translate"]
    body = translate.check_call({"text": TEXT, "interventions": interventions}, by_field=True)
    answer = translate.bind(EndpointContext(Translators([tiny_translator])))(**body)
    assert answer["status"] == "ok", answer
    assert bool(answer["interventions"]) is bool(interventions)


@pytest.mark.parametrize(
    ("fields", "words"), [({}, "missing a required argument: 'text'"), ({"text": TEXT, "txet": ""}, "'txet'")]
)
def test_a_call_past_the_guard_with_unknown_or_missing_fields_is_invalid(tiny_translator, fields, words):
    answer = api.ENDPOINTS["translate"].bind(EndpointContext(Translators([tiny_translator])))(**fields)
    assert answer["error"] == "invalid" and words in answer["message"] and "text, direction" in answer["message"]


def test_an_endpoint_has_a_name_of_its_own_and_documents_its_answer():
    def translate(context: EndpointContext) -> dict:
        """Return nothing.

        Returns:
            nothing
        """

    def undocumented(context: EndpointContext) -> dict:
        """Return nothing."""

    for function, words in ((translate, "endpoint translate already"), (undocumented, "Returns:")):
        with pytest.raises(ValueError, match=words):
            endpoint(lane="model")(function)
    described = api.ENDPOINTS["translate"].bind(None).__doc__
    assert described.index("\n    beam: ") < described.index("\n    interventions: ") < described.index("\nReturns:")


def test_the_stream_of_an_unknown_session_is_a_404(port):
    for query in ("?session_hash=unknown", "?session_hash=", ""):
        status, body = Caller(port).get(f"/gradio_api/queue/data{query}")
        assert status == 404 and "no such event" in json.loads(body)["message"]


def test_listeners_and_questions_of_the_page_are_not_endpoints(port):
    config = json.loads(Caller(port).get("/config")[1])
    hidden = {d["api_name"] for d in config["dependencies"]} - {None, False, *api.ENDPOINTS}
    assert hidden
    for name in (*hidden, *QUESTIONS):
        for route in ("call", "call/v2", "run", "api"):
            assert Caller(port).post(f"/gradio_api/{route}/{name}", {"data": []})[0] == 404, f"{route}/{name}"


def test_translate(client, tiny_translator):
    for direction in ("", "de-en", "en-fr"):
        trace = tiny_translator.translate(TEXT, direction or None)
        answer = ask(client, "translate", TEXT, direction)
        assert answer["translation"] == trace.translation and answer["direction"] == trace.direction
        assert answer["target_ids"] == list(trace.target_ids) and answer["source_ids"] == list(trace.source_ids)
        assert answer["target_tokens"] == list(trace.target_tokens)
        assert answer["finished"] is trace.finished and answer["digest"] == tiny_translator.digest
        np.testing.assert_allclose(answer["probabilities"], np.exp(trace.log_probability), rtol=1e-5)
        np.testing.assert_allclose(answer["log_probability"], trace.log_probability.sum(), rtol=1e-5)
        assert answer["ranks"] == trace.chosen_rank.tolist()
        np.testing.assert_allclose(answer["entropies"], trace.entropy, rtol=1e-4)


@pytest.mark.parametrize("kind", TRANSFORMER_KINDS)
def test_one_map(client, tiny_translator, kind):
    maps = tiny_translator.translate(TEXT).maps(kind)
    layer, head = maps.num_layers - 1, 2
    answer = ask(client, "attention", TEXT, kind.value, layer, head)["map"]
    assert answer["query_tokens"] == list(maps.query_tokens) and answer["key_tokens"] == list(maps.key_tokens)
    assert np.array_equal(np.array(answer["weights"], np.float32), maps.weights[layer, head])
    packed = base64.b64decode(ask(client, "attention", TEXT, kind.value, layer, head, "npz")["npz"])
    with np.load(io.BytesIO(packed), allow_pickle=False) as stored:
        assert np.array_equal(stored["weights"], maps.weights[layer, head])
        assert tuple(stored["key_tokens"]) == maps.key_tokens and tuple(stored["query_tokens"]) == maps.query_tokens
        assert (str(stored["kind"]), int(stored["layer"]), int(stored["head"])) == (kind.value, layer, head)


def test_all_maps_in_the_schema_of_trace_files(client, tiny_translator):
    expected = tiny_translator.translate(TEXT)
    as_json = storage.from_json(json.dumps(ask(client, "attention", TEXT)["trace"]))
    as_npz = storage.from_npz(base64.b64decode(ask(client, "attention", TEXT, format="npz")["npz"]))
    for trace in (as_json, as_npz):
        assert trace.target_ids == expected.target_ids
        for kind in TRANSFORMER_KINDS:
            assert np.array_equal(trace.maps(kind).weights, expected.maps(kind).weights)


def test_every_registered_format_is_offered(client, tiny_translator, monkeypatch):
    trace = tiny_translator.translate(TEXT)
    length = Format("text/plain", "", Scope(lambda trace, selection: trace.translation.encode(), bytes.decode))
    raw = Format("application/x-raw", "", None, Scope(lambda trace, view, shown: shown.values.tobytes(), np.frombuffer))
    monkeypatch.setitem(FORMATS, "words", length)
    monkeypatch.setitem(FORMATS, "raw", raw)
    assert ask(client, "attention", TEXT, format="words")["words"] == trace.translation
    packed = ask(client, "attention", TEXT, "cross", 1, 2, "raw")["raw"]
    assert base64.b64decode(packed) == trace.cross.weights[1, 2].tobytes()
    assert "there are json, npz, html, words" in refused(client, "attention", TEXT, format="raw")
    assert "there are csv, json, npz, raw" in refused(client, "attention", TEXT, "cross", 1, 2, "html")
    rows, _, values = table.from_csv(ask(client, "attention", TEXT, "cross", 1, 2, "csv")["csv"])
    assert list(rows) == labels.row_names(trace, AttentionKind.CROSS), "what each row reads and writes"
    assert np.array_equal(values, trace.cross.weights[1, 2])


def test_step_by_step_along_the_best_candidates_is_the_translation(client, tiny_translator):
    trace = tiny_translator.translate(TEXT)
    prefix: list[int] = []
    for step, token_id in enumerate(trace.target_ids[:6]):
        answer = ask(client, "step", TEXT, prefix, 4)
        assert [c["id"] for c in answer["candidates"]] == trace.top_ids[step, :4].tolist()
        np.testing.assert_allclose(
            [c["probability"] for c in answer["candidates"]], trace.top_probabilities[step, :4], atol=1e-5
        )
        assert answer["prefix"] == prefix and len(answer["prefix_tokens"]) == step
        assert answer["end_id"] == tiny_translator.tokenizer.end_id
        np.testing.assert_allclose(answer["entropy"], trace.entropy[step], rtol=1e-3)
        prefix.append(token_id)


def test_a_score_is_the_sum_of_its_steps(client):
    answer = ask(client, "score", TEXT, "The small dog sleeps.")
    assert answer["translation"] == "The small dog sleeps." and answer["finished"]
    total, prefix = 0.0, []
    for token_id, probability in zip(answer["target_ids"], answer["probabilities"]):
        total += np.log(probability)
        candidates = {c["id"]: c["probability"] for c in ask(client, "step", TEXT, prefix)["candidates"]}
        if token_id in candidates:
            np.testing.assert_allclose(candidates[token_id], probability, atol=1e-5)
        prefix.append(token_id)
    np.testing.assert_allclose(answer["log_probability"], total, rtol=1e-4)


@pytest.mark.parametrize(
    ("endpoint", "arguments", "words"),
    [
        ("translate", ("",), "The text is empty"),
        ("translate", (" \n\t ",), "The text is empty"),
        ("translate", ("x" * 1_000_000,), "The text has 1,000,000 characters; the limit is 10,000."),
        ("translate", ("Hund " * 200,), "the limit is 64 tokens"),
        ("translate", ("Hund", "de-xx"), "Unknown direction 'de-xx'"),
        ("translate", (5,), "text must be a string, found int"),
        ("translate", (None,), "text must be a string, found NoneType"),
        ("translate", ("Hund", ["de-en"]), "direction must be a string, found list"),
        ("attention", ("Hund", "crossed"), "Unknown kind 'crossed'"),
        ("attention", ("Hund", "cross", 3, 0), "cross has layers 0 to 2, found 3"),
        ("attention", ("Hund", "encoder_self", 2, 0), "encoder_self has layers 0 to 1, found 2"),
        ("attention", ("Hund", "cross", -1, 0), "cross has layers 0 to 2, found -1"),
        ("attention", ("Hund", "cross", 0, 4), "cross has heads 0 to 3, found 4"),
        ("attention", ("Hund", "cross", "0", 0), "layer must be a whole number, found '0'"),
        ("attention", ("Hund", "all", 0, 0, "pickle"), "Unknown format 'pickle'"),
        ("step", ("Hund", [1.5]), "an id of prefix must be a whole number, found 1.5"),
        ("step", ("Hund", "abc"), "prefix must be a list of token ids, found str"),
        ("step", ("Hund", [10**9]), "There is no token 1000000000"),
        ("step", ("Hund", [-1]), "There is no token -1"),
        ("step", ("Hund", [2]), "Nothing can follow the end of the sentence"),
        ("step", ("Hund", [40] * 500), "The target is 501 tokens long; the limit is 63 tokens"),
        ("step", ("Hund", [], 11), "candidates must be 1 to 10, found 11"),
        ("score", ("Hund", ""), "There is no text"),
        ("score", ("Hund", "dog " * 300), "the limit is 63 tokens"),
    ],
)
def test_invalid_fields_are_refused_in_words(client, endpoint, arguments, words):
    assert words in refused(client, endpoint, *arguments)


def test_the_length_of_a_target_is_checked_before_it_is_tokenized(client):
    assert "the limit is 10,000" in refused(client, "score", "Hund", "x" * 1_000_000)


def test_large_answers_are_npz_only(tiny_translator, monkeypatch):
    monkeypatch.setattr(api, "MAX_JSON_NUMBERS", 100)
    trace = tiny_translator.translate(TEXT)
    with pytest.raises(ValueError, match="JSON is limited to 100"):
        api._all_maps(trace, "json")
    assert storage.from_npz(base64.b64decode(api._all_maps(trace, "npz")["npz"])).target_ids == trace.target_ids


def test_errors_are_answers_and_logged_without_text(caplog):
    def answer_to(error: Exception) -> dict:
        def fail() -> dict:
            raise error

        return answer_or_refusal(fail)

    assert answer_to(Busy("come back")) == {
        "api_version": 1,
        "status": "error",
        "error": "busy",
        "message": "come back",
    }
    answer = answer_to(RuntimeError("it was about: secret"))
    assert answer["error"] == "internal" and "RuntimeError" in answer["message"] and "secret" not in answer["message"]
    assert "RuntimeError" in caplog.text and "test_api.py" in caplog.text and "secret" not in caplog.text


def test_a_failed_request_does_not_affect_the_next_one(client, tiny_url, tiny_translator, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("injected")

    expected = ask(client, "translate", TEXT)["translation"]
    with monkeypatch.context() as patch:
        patch.setattr(tiny_translator.model, "encode", broken)
        answer = client.predict(TEXT, api_name="/translate")
        assert (answer["status"], answer["error"]) == ("error", "internal")
    assert ask(client, "translate", TEXT)["translation"] == expected


def test_calls_by_the_names_of_fields(port, tiny_translator):
    expected = tiny_translator.translate(TEXT).translation
    for fields in ({"text": TEXT}, {"text": TEXT, "direction": "de-en"}):
        assert Caller(port).call("translate", fields)["translation"] == expected
    answer = Caller(port).call("translate", {"text": "half a pair: \ud800"})
    assert answer["status"] == "error" and "half of a surrogate pair at character 14" in answer["message"]


@pytest.mark.parametrize("route", ["call/v2", "call", "run"])
@pytest.mark.parametrize(
    ("fields", "values", "words"),
    [
        (
            {"txet": "Hund"},
            ["Hund", "", 1, {}, 1],
            ("There is no field 'txet'", "translate takes 4 values, found 5: "),
        ),
        ({"direction": "de-en"}, [], 2 * ("The field 'text' is missing: the fields of translate are text, ",)),
    ],
)
def test_a_call_with_unknown_or_missing_fields_is_a_422(port, route, fields, values, words):
    body = fields if route == "call/v2" else {"data": values}
    status, answer = Caller(port).post(f"/gradio_api/{route}/translate", body)
    answer = json.loads(answer)
    assert status == 422 and (answer["status"], answer["error"]) == ("error", "invalid")
    assert words[route != "call/v2"] in answer["message"]


def test_missing_last_fields_take_their_defaults(port, tiny_translator):
    answer = Caller(port).call("translate", ["Ein Hund."])
    assert answer["translation"] == tiny_translator.translate("Ein Hund.").translation
