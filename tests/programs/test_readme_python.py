"""README.md's "Use it from Python", run as it stands in one go in the environment that README.md makes; what stands
behind an arrow is what is printed. The programs that README.md names start there, too."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from attention_atlas.__main__ import COMMANDS
from tests import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
SECTION = README[README.index("## Use it from Python") : README.index("## API")]
BLOCKS = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)


@pytest.fixture(scope="module")
def printed(shipped_checkpoints, readme_bin) -> list[str]:
    return run(readme_bin, "\n".join(BLOCKS))


def run(where: Path, code: str) -> list[str]:
    done = subprocess.run([where / "python", "-"], input=code, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.long
def test_every_print_says_what_it_prints_and_prints_it(printed):
    lines = [line for block in BLOCKS for line in block.splitlines() if "print(" in line]
    expected = [line.rsplit("-> ", 1)[1] for line in lines]
    assert len(expected) >= 6 and printed == expected


@pytest.mark.long
def test_every_program_that_it_names_starts_there(readme_bin):
    """All in one process, for speed: imports are what may be missing."""
    programs = sorted(set(re.findall(r"attention-atlas (\w+)", README)) & set(COMMANDS))
    assert {"train", "evaluate", "survey", "curves"} <= set(programs)
    others = sorted(set(re.findall(r" -m ((?:attention_atlas|bench)\.[\w.]+\w)", README)))
    names = [*(COMMANDS[name][0] for name in programs), *others]
    code = (
        "import importlib\n"
        f"for name in {names}:\n"
        "    try:\n        importlib.import_module(name).main(['--help'])\n"
        "    except SystemExit as ended:\n        assert not ended.code, name\n"
    )
    shown = re.findall(r"usage: (.*?)\s+\[", "\n".join(run(readme_bin, code)))
    expected = [*(f"attention-atlas {name}" for name in programs), *(f"python -m {name}" for name in others)]
    assert shown == expected


@pytest.mark.long
def test_what_it_does_not_ask_for_is_not_there(readme_bin):
    """Else the tests above would show nothing."""
    lacking = subprocess.run([readme_bin / "python", "-c", "import sacremoses"], capture_output=True, text=True)
    assert "No module named 'sacremoses'" in lacking.stderr
