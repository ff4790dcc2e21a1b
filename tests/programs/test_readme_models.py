"""The commands of docs/how-to/own-model.md run against a local hub; then the page serves the models without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gradio_client import Client

from attention_atlas.model.checkpoint import load
from bench.load import running_server
from tests import ROOT, run
from tests.model.families import theirs
from tests.model.families.test_hub import FakeHub, fake  # noqa: F401 (fixture)
from tests.pages import block, blocks

PAGE = "docs/how-to/own-model.md"
OPUS, NLLB = "Helsinki-NLP/opus-mt-en-de", "facebook/nllb-200-distilled-600M"
FLAN = "google/flan-t5-base"


@pytest.fixture()
def environment(fake: FakeHub, readme_bin: Path, tmp_path: Path) -> dict[str, str]:  # noqa: F811
    """Variables that select the environment of docs/start/page.md and a hub that has these models."""
    for name, make in ((OPUS, theirs.marian), (NLLB, theirs.nllb), (FLAN, theirs.t5)):
        folder = tmp_path / "hub" / name
        make(folder).save_pretrained(folder)
        (folder / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n", encoding="utf-8")
        fake.repositories[name] = folder
    theirs.write(tmp_path / "hub" / OPUS / "tokenizer_config.json", {"source_lang": "en", "target_lang": "de"})
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("HF_")},
        "HF_ENDPOINT": fake.url,
        "HF_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
        "PATH": f"{readme_bin}:{os.environ['PATH']}",
    }


@pytest.mark.long
def test_the_commands_run_and_the_page_serves_the_models_offline(environment, fake, readme_bin, tmp_path):  # noqa: F811
    lines = [line for line in blocks(PAGE, "sh")[0].splitlines() if "app.py" not in line]
    assert len(lines) == 4
    printed = run(["sh", "-euc", "\n".join(lines)], cwd=tmp_path, env=environment, timeout=300)
    assert "licence cc-by-4.0" in printed
    assert load(tmp_path / "checkpoints" / OPUS.replace("/", "--")).directions == ("en-de",)
    both = load(tmp_path / "checkpoints" / NLLB.replace("/", "--"))
    assert both.directions == ("eng_Latn-deu_Latn", "deu_Latn-eng_Latn") and both.languages is None

    flan = load(tmp_path / "checkpoints" / FLAN.replace("/", "--"))
    assert flan.directions[0] == "text-summary"
    assert dict(flan.tokenizer.symbols.prefixes)["text-summary"] == "summarize: "

    preloaded = block(PAGE, "yaml").split()[-1].split(",")
    present = {path.name for path in (tmp_path / "hub" / OPUS).iterdir()}
    assert set(preloaded) - {"pytorch_model.bin"} <= present  # the test models have safetensors
    fake.file_requests.clear()
    space = {
        **environment,
        "HF_HUB_OFFLINE": "1",
        "ATTENTION_ATLAS_MODELS": f"{OPUS} {NLLB}",
        "ATTENTION_ATLAS_CHECKPOINTS": str(tmp_path / "none"),
    }
    python = str(readme_bin / "python")
    with running_server(str(ROOT / "app.py"), python=python, cwd=tmp_path, env=space) as (port, _):
        client = Client(f"http://127.0.0.1:{port}/", verbose=False, analytics_enabled=False)
        answer = client.predict("Good morning.", "eng_Latn-zul_Latn", api_name="/translate")
        assert (answer["status"], answer["checkpoint"]) == ("ok", NLLB)
        assert answer["target_tokens"][0] == "zul_Latn"
        assert client.predict("Good morning.", api_name="/translate")["checkpoint"] == OPUS
    assert fake.file_requests == [], "the hub was off"
