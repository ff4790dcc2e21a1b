"""attention-atlas translate: its output, its files of traces, and its errors."""

from __future__ import annotations

import io
import json
import runpy
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from attention_atlas.model import translate
from attention_atlas.model.trace import storage
from attention_atlas.model.translator import Translator
from tests import ROOT
from tests import run as run_command
from tests.conftest import SENTENCES, TINY_LIMITS
from tests.programs.train.runs import TORCHRUN


@pytest.fixture()
def run(tiny_checkpoint, capsys, monkeypatch):
    """Return a function that runs the program on standard input and arguments and returns its output lines."""
    load = Translator.load
    monkeypatch.setattr(Translator, "load", lambda path, device: load(path, device, limits=TINY_LIMITS))

    def call(*arguments: str, stdin: bytes = b"") -> list[str]:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin), isatty=lambda: False))
        translate.main(["--checkpoint", str(tiny_checkpoint), "--device", "cpu", *arguments])
        return capsys.readouterr().out.split("\n")[:-1]

    return call


def test_lines_keep_their_order_and_empty_lines_stay_empty(run, tiny_translator, monkeypatch):
    monkeypatch.setattr(translate, "CHUNK", 4)
    lines = [SENTENCES[0], "", "Tee", "  ", *SENTENCES[2:9:2]]
    expected = [tiny_translator.translate(line).translation if line.strip() else "" for line in lines]
    assert run(stdin="\n".join(lines).encode()) == expected
    assert run(stdin="\r\n".join(lines).encode() + b"\r\n") == expected
    assert run(*lines[:1], lines[2]) == [expected[0], expected[2]]
    assert run(stdin=b"") == []


def test_attention_is_written_only_to_npz(run, tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.npz, found x\.pdf"):
        run("--attention", str(tmp_path / "x.pdf"), SENTENCES[0])
    assert not list(tmp_path.iterdir())


def test_the_length_of_translations_is_limited(run):
    (result,) = map(json.loads, run("--json", "--max-length", "2", SENTENCES[0]))
    assert len(result["tokens"]) == 2 and not result["finished"]


def test_only_newlines_end_a_line(run):
    assert len(run(stdin="eins\x85zwei\u2028drei\x0bvier\nzehn".encode())) == 2


def test_json_has_tokens_and_their_log_probabilities(run, tiny_translator):
    lines = [SENTENCES[0], "", SENTENCES[4]]
    results = [json.loads(line) for line in run("--json", stdin="\n".join(lines).encode())]
    assert [r["source"] for r in results] == lines
    assert results[1] == {"source": "", "translation": "", "tokens": [], "log_probabilities": [], "finished": True}
    for result in results[::2]:
        trace = tiny_translator.translate(result["source"])
        assert tuple(result["tokens"]) == trace.target_tokens and result["translation"] == trace.translation
        assert result["finished"] == trace.finished
        np.testing.assert_allclose(result["log_probabilities"], trace.log_probability, atol=1e-4)


def test_a_beam_of_one_is_greedy_and_a_wider_beam_is_no_less_probable(run):
    def totals(*options: str) -> list[float]:
        return [sum(json.loads(line)["log_probabilities"]) for line in run("--json", *options, *SENTENCES[:6:2])]

    assert run("--beam", "1", *SENTENCES[:6:2]) == run(*SENTENCES[:6:2])
    finished = [json.loads(line)["finished"] for line in run("--json", *SENTENCES[:6:2])]
    for greedy, wide, is_finished in zip(totals(), totals("--beam", "8"), finished):
        assert not is_finished or wide >= greedy - 1e-4


@pytest.mark.parametrize("beam", ["1", "4"])
def test_the_attention_file_belongs_to_the_printed_translation(run, tiny_translator, tmp_path, beam):
    path = tmp_path / "maps.npz"
    printed = json.loads(run("--json", "--beam", beam, "--attention", str(path), SENTENCES[0])[0])
    trace = storage.from_npz(path.read_bytes())
    assert trace.source_text == SENTENCES[0] and list(trace.target_tokens) == printed["tokens"]
    np.testing.assert_allclose(trace.log_probability, printed["log_probabilities"], atol=1e-4)
    if beam == "1":
        expected = tiny_translator.translate(SENTENCES[0])
        np.testing.assert_allclose(trace.cross.weights, expected.cross.weights, atol=1e-5)
    with pytest.raises(ValueError, match=r"maps.npz is there already: use --replace"):
        run("--attention", str(path), "Hund")
    run("--attention", str(path), "--replace", "Hund")
    assert storage.from_npz(path.read_bytes()).source_text == "Hund"
    with pytest.raises(ValueError, match="--attention takes one text, found 2"):
        run("--attention", str(tmp_path / "two.npz"), "Hund", "Katze")


def test_the_direction_option_selects_the_target_language(run, tiny_translator):
    expected = tiny_translator.translate(SENTENCES[1], "en-fr").translation
    assert run("--direction", "en-fr", SENTENCES[1]) == [expected]


@pytest.mark.parametrize(
    "arguments, stdin, message",
    [
        (["--direction", "xx-yy"], b"Hund", "Unknown direction 'xx-yy'"),
        (["--beam", "99"], b"Hund", "from 1 to 8"),
        ([], b"Hund\n" + b"x " * 200, "line 2: The text is .* tokens long"),
        ([], b"Hund\n\xff", "line 2 is not UTF-8"),
    ],
)
def test_an_invalid_line_is_named(run, arguments, stdin, message):
    with pytest.raises(ValueError, match=message):
        run(*arguments, stdin=stdin)


def test_the_program_reads_stdin_and_prints_errors(tiny_checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["translate", "--checkpoint", str(tmp_path), "Hund"])
    with pytest.raises(SystemExit, match=r"^error: .*missing"):
        runpy.run_path(translate.__file__, run_name="__main__")
    done = subprocess.run(
        [sys.executable, "-m", "attention_atlas.model.translate", "--checkpoint", str(tiny_checkpoint)],
        cwd=ROOT,
        input="Ein Hund 😀\n",
        capture_output=True,
        encoding="utf-8",
    )
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")


def test_traces_of_lines_agree_with_the_translator(run, tiny_translator, tmp_path):
    lines = [SENTENCES[0], "", SENTENCES[4], SENTENCES[6]]
    folder = tmp_path / "maps"
    assert run("--traces", str(folder), stdin="\n".join(lines).encode()) == [f"3 traces in {folder}"]
    names = ["000001.npz", "000003.npz", "000004.npz"]
    assert sorted(path.name for path in folder.iterdir()) == names
    for name, line in zip(names, filter(None, lines)):
        trace, expected = storage.from_npz((folder / name).read_bytes()), tiny_translator.translate(line)
        assert trace.source_text == line and trace.target_ids == expected.target_ids
        np.testing.assert_allclose(trace.cross.weights, expected.cross.weights, atol=1e-5)


def test_complete_traces_are_reused_and_others_replaced(run, tmp_path):
    lines = "\n".join(SENTENCES[:3]).encode()
    run("--traces", str(tmp_path), stdin=lines)
    first, second, third = (tmp_path / f"00000{number}.npz" for number in (1, 2, 3))
    modified, expected = first.stat().st_mtime_ns, second.read_bytes()
    second.write_bytes(b"half a file")
    third.write_bytes(expected)  # of another text
    run("--traces", str(tmp_path), stdin=lines)
    assert first.stat().st_mtime_ns == modified
    assert [storage.from_npz(path.read_bytes()).source_text for path in (second, third)] == list(SENTENCES[1:3])


@pytest.mark.long
def test_processes_under_torchrun_share_the_traces(tiny_checkpoint, tmp_path):
    command = [*TORCHRUN, "attention_atlas.model.translate", "--checkpoint", tiny_checkpoint, "--device", "cpu"]
    run_command([*command, "--traces", tmp_path / "maps"], input="\n".join(SENTENCES[:5]))
    texts = [storage.from_npz(path.read_bytes()).source_text for path in sorted((tmp_path / "maps").iterdir())]
    assert texts == list(SENTENCES[:5])


@pytest.mark.parametrize("option", [["--beam", "2"], ["--json"], ["--attention", "maps.npz"]])
def test_traces_exclude_other_outputs(run, tmp_path, option):
    with pytest.raises(ValueError, match="--traces"):
        run("--traces", str(tmp_path / "maps"), *option, stdin=b"eins")
    assert not (tmp_path / "maps").exists()
