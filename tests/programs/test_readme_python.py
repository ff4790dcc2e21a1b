"""README.md's "Use it from Python", run as it stands in one go; what stands behind an arrow is what is printed."""

from __future__ import annotations

import contextlib
import io
import re

import pytest

from tests import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
SECTION = README[README.index("## Use it from Python") : README.index("## API")]
BLOCKS = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)


@pytest.fixture(scope="module")
def printed(shipped_checkpoints) -> list[str]:
    output = io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(output):
        exec("\n".join(BLOCKS), {})
    return output.getvalue().splitlines()


def test_every_print_says_what_it_prints_and_prints_it(printed):
    lines = [line for block in BLOCKS for line in block.splitlines() if "print(" in line]
    expected = [line.rsplit("-> ", 1)[1] for line in lines]
    assert len(expected) >= 6 and printed == expected
