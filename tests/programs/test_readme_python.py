"""The Python code and the programs of README.md and docs/ run in the environment of docs/start/page.md.

The code of a page runs as one program. The text after `->` in a line is its expected output.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attention_atlas.__main__ import COMMANDS
from tests import run
from tests.pages import GUIDES, PAGES, blocks, read

TEXT = "\n".join(read(page) for page in GUIDES)
RUN = (
    "README.md",
    "docs/start/library.md",
    "docs/start/notebook.md",
    "docs/coming-from.md",
    "docs/explanation/courses.md",
)
ELSEWHERE = {  # other tests run the code of these pages
    "docs/how-to/api.md",
    "docs/how-to/own-model.md",
    "docs/contributing/extend.md",  # sketches of code to be written
}


def test_every_page_with_python_is_run():
    assert {page for page in PAGES if blocks(page, "python")} == {*RUN} | ELSEWHERE


def run_code(where: Path, code: str) -> list[str]:
    return run([where / "python", "-"], input=code, timeout=300).splitlines()


@pytest.mark.long
@pytest.mark.parametrize("page", RUN)
def test_the_code_of_a_page_prints_its_documented_output(page, shipped_checkpoints, readme_bin):
    code = "\n".join(blocks(page, "python"))
    expected = [line.rsplit("-> ", 1)[1] for line in code.splitlines() if "print(" in line]
    assert run_code(readme_bin, code) == expected


@pytest.mark.long
def test_documented_programs_start(readme_bin):
    """--help of all programs runs in one process, which imports them."""
    programs = sorted(set(re.findall(r"attention-atlas (\w+)", TEXT)) & set(COMMANDS))
    assert {"train", "evaluate", "survey", "curves"} <= set(programs)
    others = sorted(set(re.findall(r" -m ((?:attention_atlas|bench)\.[\w.]+\w)", TEXT)))
    names = [*(COMMANDS[name][0] for name in programs), *others]
    code = (
        "import importlib\n"
        f"for name in {names}:\n"
        "    try:\n        importlib.import_module(name).main(['--help'])\n"
        "    except SystemExit as ended:\n        assert not ended.code, name\n"
    )
    usages = re.findall(r"usage: (.*?)\s+\[", "\n".join(run_code(readme_bin, code)))
    expected = [*(f"attention-atlas {name}" for name in programs), *(f"python -m {name}" for name in others)]
    assert usages == expected
