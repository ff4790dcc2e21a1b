"""The timer of Gradio's loading sign ends with the sign.

Gradio 6.31 leaves it running when the page has been built and the sign is gone: a frame is asked for sixty times a
second as long as the page is open, 4 to 7 % of a core. The one line of its script that goes on is sent with the
condition that it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from viz.ui.gradio6.part import FRONT_END, Part

SCRIPT = "statustracker-*.js"
GOES_ON = "W&&ze()})}"  # next frame, as long as time is taken
ENDS = "W&&U&&ze()})}"  # U: the sign's element, null once it is gone


def ending(path: Path, text: bytes) -> bytes:
    """A file of Gradio's front end as it is sent."""
    if PART.usable and path.match(SCRIPT):
        return text.replace(GOES_ON.encode(), ENDS.encode())
    return text


def _missing() -> Iterator[str]:
    texts = [path.read_text(encoding="utf-8") for path in (FRONT_END / "assets").glob(SCRIPT)]
    # What the line means hangs on two more: where the element is kept, and where the time begins to be taken.
    if not (len(texts) == 1 and all(texts[0].count(one) == 1 for one in (GOES_ON, "e=>U=e,()=>U", "W=!0,ze()"))):
        yield f"one {SCRIPT} with the timer as it was read"


PART = Part("the timer of the loading sign", _missing, "an open page that nobody uses takes some 5 % of a core")
