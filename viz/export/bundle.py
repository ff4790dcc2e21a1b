"""What an explorer outside the app is made of, as one text: Plotly.js, the explorer's scripts and style, the words of
every language."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from viz import assets, theme, words


@dataclass(frozen=True)
class Bundle:
    """text   JSON of style, plotly, modules (name -> text) and languages, which viz/web/alone/alone.js reads
    name      under which several explorers in one notebook find it: of the same scripts the same
    words     of every language, by the English ones
    """

    text: str
    words: Mapping[str, Mapping[str, str]]

    @cached_property
    def name(self) -> str:
        return f"attention-atlas-{hashlib.sha256(self.text.encode()).hexdigest()[:16]}"

    @cached_property
    def packed(self) -> str:
        """base64(gzip(text)): 2 MB in place of 6."""
        return base64.b64encode(gzip.compress(self.text.encode(), compresslevel=6, mtime=0)).decode("ascii")

    @staticmethod
    def read() -> Bundle:
        """The one of the installed files, read and packed once: that takes a second. It speaks every language of the
        page: who will open it nobody knows, there is no server to ask, and beside Plotly.js the words are little."""
        return _of_files(assets.digest())


@lru_cache(maxsize=1)
def _of_files(digest: str) -> Bundle:
    modules = assets.modules(assets.module("explorer"))
    languages = {language: words.read(path) for language, path in words.files().items()}
    own = (assets.PICTURE_STYLE, *assets.styles("explorer"))
    return Bundle(
        json.dumps(
            {
                "style": theme.css_variables() + "".join(path.read_text(encoding="utf-8") for path in own),
                "plotly": assets.PLOTLY.read_text(encoding="utf-8"),
                "modules": {assets.name(path): assets.with_names(path) for path in modules},
                "languages": languages,
            },
            ensure_ascii=False,
        ),
        languages,
    )
