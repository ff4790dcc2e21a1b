"""Our own page components: a gr.HTML whose JavaScript and CSS are files under viz/web/."""

from __future__ import annotations

import json
from pathlib import Path

import gradio as gr

from viz import assets
from viz.words import for_page


class Component(gr.HTML):
    """A component drawn by the scripts that viz/assets.py names for it, and styled by the sheet beside the last one.

    The script registers itself: `AttentionAtlas.components.NAME = (root, api) => ...`, where api has value(),
    onValue(callback) and trigger(event, data). Values are data, never markup: the script builds the page's
    elements itself with textContent, so that nothing a person typed is ever read as HTML. Custom events arrive in
    Python as `component.EVENT(handler)` with a gr.EventData.
    """

    def __init__(
        self,
        name: str,
        value: object = None,
        *,
        plotly: bool = False,
        events: tuple[str, ...] = (),
        options: object = None,
        elem_id: str | None = None,
        visible: bool = True,
    ) -> None:
        """plotly: load Plotly.js, too. events: names that the script triggers; Gradio offers an event only if its name
        stands in the script it is given. options: what the script is told once, as api.options. Each of the rest is an
        option of gr.HTML's own. Seven parameters, therefore."""
        head = "" if name in assets.EARLY else f'<link rel="stylesheet" href="{url(assets.style(name))}">'
        head += "".join(f'<script src="{url(path)}"></script>' for path in assets.scripts(name))
        # Plotly.js is most of all that is loaded: not before the scripts, which draw what they can without it.
        late = url(assets.PLOTLY) if plotly else None
        super().__init__(
            value,
            html_template=f'<div class="atlas-root atlas-{name}"></div>',
            css_template="",
            head=head,
            js_on_load=f"AttentionAtlas.mount({name!r}, element, props, trigger, watch, "
            f"typeof server === 'undefined' ? null : server, {json.dumps(events)}, "
            f"{json.dumps(for_page(options))}, {json.dumps(late)});",
            elem_id=elem_id,
            apply_default_css=False,
            visible=visible,
        )

    def get_block_name(self) -> str:
        return "html"  # the front end knows gr.HTML, not our subclass

    def preprocess(self, payload: object) -> object:
        return payload

    def postprocess(self, value: object) -> object:
        return for_page(value)

    def api_info(self) -> dict:
        return {}


def serve_web_files() -> None:
    """Let Gradio serve viz/web/ and the installed Plotly.js; nothing else beside them."""
    gr.set_static_paths([assets.WEB, assets.PLOTLY])


def fetched(script: Path) -> dict[str, str]:
    """A script that the page asks for itself, with the style sheet beside it: atlas.fetched in core/shared.js."""
    return {"script": url(script), "style": url(script.with_suffix(".css"))}


def url(path: Path) -> str:
    """A served file's address. Relative, so that it holds behind any prefix; the time stamp keeps browsers from using a
    stale copy."""
    return f"gradio_api/file={path}?v={int(path.stat().st_mtime)}"
