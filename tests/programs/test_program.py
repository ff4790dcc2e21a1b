"""The shared parts of programs: options, errors and exit codes."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from attention_atlas.__main__ import COMMANDS
from attention_atlas.model.program import CommandLine, integer, parse_args, run_program
from tests import ROOT
from tests.pages import GUIDES, read

MODULES = sorted(
    ("" if folder in ("bench", "notebooks", "recipes") else "attention_atlas.")
    + str(path.relative_to(ROOT).with_suffix("")).replace("/", ".")
    for folder in ("model", "viz", "bench", "notebooks", "recipes")
    for path in (ROOT / folder).rglob("*.py")
    if "__main__" in path.read_text(encoding="utf-8")
)


def raiser(error: BaseException):
    def main() -> None:
        raise error

    return main


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("no such direction: 'xx'"), "error: no such direction: 'xx'"),
        (FileNotFoundError(2, "No such file or directory", "a.txt"), "error: a.txt: No such file or directory"),
        (OSError("no space left"), "error: no space left"),
        (
            ModuleNotFoundError("", name="sacremoses"),
            "error: sacremoses is not installed: pip install '.[train]' -c constraints.txt",
        ),
        (ModuleNotFoundError("", name="other.part"), "error: other is not installed: pip install other"),
        (ModuleNotFoundError("x"), "error: x"),
        (KeyboardInterrupt(), 130),
    ],
)
def test_errors_of_the_user_end_a_program_with_a_message(error, message):
    with pytest.raises(SystemExit) as exit_info:
        run_program(raiser(error))
    assert exit_info.value.code == message or str(exit_info.value.code).startswith(str(message))


def test_unexpected_errors_are_raised():
    for error in (KeyError("x"), AssertionError(), ModuleNotFoundError("", name="attention_atlas.model.absent")):
        with pytest.raises(type(error)):
            run_program(raiser(error))


@pytest.mark.parametrize("code", [None, 0, 3])
def test_the_exit_code_is_what_main_returns(code):
    with pytest.raises(SystemExit) as exit_info:
        run_program(lambda: code)
    assert exit_info.value.code == code


def test_an_integer_option_has_bounds(capsys):
    parser = CommandLine("attention-atlas test", "About.")
    parser.add_argument("--port", type=integer(1, 65535))
    parser.add_argument("--limit", type=integer())
    assert vars(parser.parse_args(["--port", "80", "--limit", "1"])) == {"port": 80, "limit": 1}
    for option, text, words in (
        ("--port", "65536", "from 1 to 65535, found '65536'"),
        ("--port", "-1", "from 1"),
        ("--limit", "0", "of at least 1, found '0'"),
        ("--limit", "2.5", "of at least 1, found '2.5'"),
    ):
        with pytest.raises(SystemExit) as exit_info:
            parser.parse_args([f"{option}={text}"])
        assert exit_info.value.code == 2 and f"expected a whole number {words}" in capsys.readouterr().err


PACKAGED = [name for name in MODULES if name.startswith("attention_atlas.")]


def test_a_program_ends_silently_when_its_pipe_is_closed():
    writes = (
        "from attention_atlas.model.program import run_program\n"
        "def main():\n    for i in range(100000): print(i)\nrun_program(main)"
    )
    command = f"{sys.executable} -c '{writes}' | head -n 1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "0\n" and done.stderr == ""


RUN_WITHOUT_PACKAGE = """
import runpy, sys
package, name, *sys.argv[1:] = sys.argv[1:]
sys.modules[package] = None
runpy.run_module(name, run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    ("package", "extra", "name", "arguments"),
    [
        pytest.param(
            "sacremoses", "train", "attention_atlas.model.evaluate", ["--protocol", "wu2021"], marks=pytest.mark.long
        ),
        ("sacrebleu", "train", "attention_atlas.model.truth", []),
        (
            "matplotlib",
            "plots",
            "attention_atlas.viz.learning_curves",
            ["checkpoints/de-en", "--out", "{tmp_path}/curves.png"],
        ),
    ],
)
def test_a_missing_package_is_named_when_it_is_needed(package, extra, name, arguments, tmp_path):
    command = [sys.executable, "-c", RUN_WITHOUT_PACKAGE, package, name]
    command += [argument.format(tmp_path=tmp_path) for argument in arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {package} is not installed: pip install '.[{extra}]'"), done.stderr


def test_help_needs_no_extra():
    """With the packages of `pip install attention-atlas`; huggingface_hub depends on tqdm."""
    program = f"""
import importlib, sys
sys.modules |= dict.fromkeys(("sacrebleu", "sacremoses", "matplotlib", "gradio"))
for name in {PACKAGED}:
    try:
        importlib.import_module(name).main(["--help"])
    except SystemExit:
        continue
    except ModuleNotFoundError as error:
        print("MISSING", name, error.name)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "MISSING" not in done.stdout, done.stdout.partition("MISSING")[2] + done.stderr
    programs = {module: f"attention-atlas {name}" for name, (module, _) in COMMANDS.items()}
    names = [programs.get(name, f"python -m {name.removesuffix('.__main__')}") for name in PACKAGED]
    assert re.findall(r"(?m)^usage: (.*?)\s+\[-h\]", done.stdout) == names


def source_of(name: str) -> str:
    path = ROOT / (name.removeprefix("attention_atlas.").replace(".", "/") + ".py")
    return path.read_text(encoding="utf-8")


BENCHMARKS = sorted(name for name in MODULES if "add_json(" in source_of(name))
MEASUREMENTS = sorted(name for name in MODULES if "measurement_path(" in source_of(name))


OUTPUTS = [
    *((name, ("--json", "out.json")) for name in BENCHMARKS),
    *((name, ("--checkpoint", "tiny", "--out", "out.json")) for name in MEASUREMENTS),
    ("bench.compare", ("--png", "out.png")),
    ("attention_atlas.viz.learning_curves", ("none", "--out", "out.png")),
]


@pytest.mark.parametrize(("name", "arguments"), OUTPUTS)
def test_programs_do_not_overwrite_files(name, arguments, tiny_checkpoint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").symlink_to(tiny_checkpoint)
    (tmp_path / arguments[-1]).write_text("{}")
    with pytest.raises(ValueError, match=rf"{re.escape(arguments[-1])} is there already: use --replace"):
        importlib.import_module(name).main([*arguments])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--json", "absent/figures.json"], "the folder absent is missing"),
        (["--json", ".", "--replace"], "is a folder"),
        (["--png", "absent/figure.png"], "the folder absent is missing"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_at_once(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parser = CommandLine("attention-atlas none", "About.")
    parser.add_json()
    parser.add_argument("--png", type=Path)
    with pytest.raises(ValueError, match=words):
        parse_args(parser, arguments, "png")
    assert parse_args(parser, ["--json", "figures.json"], "png").json == Path("figures.json")


def test_documented_commands_are_not_refused_because_of_existing_files(tmp_path, monkeypatch):
    """They reach the loading of the model, with the shipped checkpoints in the current folder."""
    (tmp_path / "checkpoints").symlink_to(ROOT / "checkpoints")
    monkeypatch.chdir(tmp_path)
    pages, pace = "\n".join(map(read, GUIDES)), "attention_atlas.model.training.pace.measure"
    lines = re.findall(r"`attention-atlas\s+([^`]+)`", pages)
    commands = [(COMMANDS[name][0], *rest) for name, *rest in map(str.split, lines) if name in COMMANDS]
    commands += [tuple(line.split()) for line in re.findall(r"`python\s+-m\s+([^`]+)`", pages)]
    measuring = [command for command in commands if command[0] in (*MEASUREMENTS, pace)]
    assert len(measuring) >= 6

    def stop(*_: object, **options: object) -> None:
        raise InterruptedError

    monkeypatch.setattr("attention_atlas.model.translator.Translator.load", stop)
    monkeypatch.setattr("attention_atlas.model.training.pace.measure.measure", stop)
    for name, *arguments in measuring:
        with pytest.raises(InterruptedError):
            importlib.import_module(name).main(arguments)
