"""What is done to every text before a tokenizer sees it."""

from __future__ import annotations

import re
import unicodedata

from attention_atlas.model.trace.language import Refusal

MAX_CHARACTERS = 10_000
LINE_ENDS = re.compile(r"[\n\r\v\f\x85\u2028\u2029]")  # a pattern with the blanks around takes quadratic time


def tidy(text: str) -> str:
    """What is translated: composed (NFC), on one line and without outer white space. The training data is so too: lines
    that were pasted are one sentence, and no piece stands for a line's end. ValueError for more characters than the
    limit: neither this nor the tokenizer is for megabytes; and for what is no text."""
    if not isinstance(text, str):
        raise ValueError(f"a text is a string, found {text!r:.80}")
    if len(text) > MAX_CHARACTERS:
        raise Refusal("The text has {n} characters; the limit is {limit}.", n=len(text), limit=MAX_CHARACTERS)
    lines = (line.strip() for line in LINE_ENDS.split(unicodedata.normalize("NFC", text)))
    return " ".join(line for line in lines if line)
