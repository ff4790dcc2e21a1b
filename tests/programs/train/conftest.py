"""A generated corpus for tests of training."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="session")
def corpus(tmp_path_factory, tokenizer) -> list[str]:
    """Options that name a tokenizer and a pair of aligned files with sixty generated lists of animals."""
    folder = tmp_path_factory.mktemp("corpus")
    random = np.random.default_rng(4)
    german, english = ("Hund", "Vogel", "Fisch", "Pferd"), ("dog", "bird", "fish", "horse")
    rows = [[int(i) for i in random.integers(0, 4, random.integers(1, 6))] for _ in range(60)]
    (folder / "train.de").write_text("".join(" ".join(f"Ein {german[i]}" for i in row) + ".\n" for row in rows))
    (folder / "train.en").write_text("".join(" ".join(f"A {english[i]}" for i in row) + ".\n" for row in rows))
    (folder / "dev.de").write_text("Ein Hund Ein Wal.\nEin Wal.\n")
    (folder / "dev.en").write_text("A dog A whale.\nA whale.\n")
    (folder / "tokenizer.model").write_bytes(tokenizer.model)
    pair = [str(folder / "train.de"), str(folder / "train.en")]
    return ["--tokenizer", str(folder / "tokenizer.model"), "--pair", "de-en", *pair]
