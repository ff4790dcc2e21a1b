"""What is done to every text before a tokenizer sees it."""

from __future__ import annotations

import re
import unicodedata

from model.trace.language import Refusal

MAX_CHARACTERS = 10_000
LINE_ENDS = re.compile(r"\s*[\n\r\v\f\x85\u2028\u2029]\s*")


def tidy(text: str) -> str:
    """What is translated: composed (NFC), on one line and without outer white space. The training data is so too: lines
    that were pasted are one sentence, and no piece stands for a line's end. ValueError for more characters than the
    limit: neither this nor the tokenizer is for megabytes; and for what is no text."""
    if not isinstance(text, str):
        raise ValueError(f"a text is a string, found {text!r:.80}")
    if len(text) > MAX_CHARACTERS:
        raise Refusal("The text has {n} characters; the limit is {limit}.", n=len(text), limit=MAX_CHARACTERS)
    return LINE_ENDS.sub(" ", unicodedata.normalize("NFC", text).strip())
