"""Places of Gradio's scripts that are sent otherwise: where there is no other way to do without what they do.

Gradio 6.31 leaves the timer of its loading sign running when the page has been built and the sign is gone: a frame is
asked for sixty times a second as long as the page is open, 4 to 7 % of a core. At the beginning and at the end of each
event, of whatever part of the page, it tells every component that was ever answered how it stands with its last event,
for which it copies all that the component holds: of a page whose tabs have been opened, 100 ms each time. What comes
with an answer it builds whole, with all that stands behind tabs which are not open, though of the page itself it leaves
that until they are. Answers come over a stream that both ends close when nothing is under way. Where an answer is there
before the page has heard the number of its event, the page opens a stream for it all the same, on which nothing comes;
and where the stream's end is there later than the number of another event, that event has none. And its page on the API
asks how often each endpoint was called, which the guard refuses to say, and for tools of the Model Context Protocol,
whether or not there are any: what is refused is an error in the browser's console.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from viz.ui.gradio6 import tool_answers
from viz.ui.gradio6.part import FRONT_END, Part


@dataclass(frozen=True)
class Edit:
    """script: the file's name, as a pattern. hinges: what else stands there, on which the meaning of `was` hangs."""

    script: str
    was: str
    sent: str
    hinges: tuple[str, ...] = ()


TIMER_ENDS = Edit(
    "statustracker-*.js",
    "W&&ze()})}",  # the next frame, as long as time is taken
    "W&&U&&ze()})}",  # U: the sign's element, null once it is gone
    ("e=>U=e,()=>U", "W=!0,ze()"),  # where the element is kept, and where the time begins to be taken
)
TOLD_ONCE = Edit(
    "Blocks-*.js",
    "Object.entries(this.loading_stati.current).map(",
    "Object.entries(this.loading_stati.current).filter(([e,t])=>(this.told??=new Map).get(e)!==(t=JSON.stringify(t))&&"
    "this.told.set(e,t)).map(",  # those whom something else was told the last time
    ("([e,t])=>this.update_state_cb(Number(e),{loading_status:t},!1)",),
)
UNSEEN_LATER = Edit(
    "core-*.js",
    "i=this.traverse(r,e=>Pe(e,this.initial_tabs))",
    "i=this.traverse(r,e=>(e=Pe(e,this.initial_tabs),e.type===`tabs`?Ne(e,new Set,this.#d):e))",
    # as of the page itself: what stands behind a tab that is not open waits until it is
    ("e=>Ne(e,this.components_to_register,this.#d)", "function Ne(e,t,n){return e.type===`accordion`"),
)
SUBMITTED = (  # by these names the place below knows the streams
    "event_callbacks:v",
    "unclosed_events:y",
    "pending_stream_messages:g",
    "stream_status:h",
)
NO_STREAM_FOR_NOTHING = Edit(
    "index-*.js",
    "E in g&&(g[E].forEach(e=>t(e)),delete g[E]),v[E]=t,y.add(E),h.open||await this.open_stream()",
    "((e=[])=>(delete g[E],e.forEach(e=>t(e)),e.some(e=>e.msg===`process_completed`)))(g[E])||"  # all has come
    "(v[E]=t,y.add(E),h.open||await this.open_stream())",
    SUBMITTED,
)
STREAM_GOES_ON = Edit(
    "index-*.js",
    "if(s.msg===`close_stream`){wt(r,o.abort_controller);return}",
    "if(s.msg===`close_stream`){wt(r,o.abort_controller),[...t].some(t=>e[t])&&o.open_stream();return}",  # one waits
    ("let{event_callbacks:e,unclosed_events:t,pending_stream_messages:n,stream_status:r",),
)
NO_COUNTS = Edit(
    "ApiDocs-*.js",
    "fetch(c().replace(/\\/$/,``)+`/monitoring/summary`)",
    "{ok:!1}",
    ("e.ok?await e.json():{functions:{}}",),
)
NO_TOOLS = Edit(
    "ApiDocs-*.js",
    "fetch(r,{signal:t})",
    "Promise.resolve({ok:!1})",
    ("gradio_api/mcp/schema`;return", ".then(t=>{I(H,t.ok,!0)"),
)
EDITS = (
    *(TIMER_ENDS, TOLD_ONCE, UNSEEN_LATER, NO_STREAM_FOR_NOTHING, STREAM_GOES_ON, NO_COUNTS),
    *(() if tool_answers.OFFERED else (NO_TOOLS,)),
)


def scripts(edit: Edit) -> list[Path]:
    """The files that it is about: of several of such a name, those in which the place stands."""
    found = list((FRONT_END / "assets").glob(edit.script))
    return [path for path in found if edit.was.encode() in path.read_bytes()] if len(found) > 1 else found


def edited(path: Path, text: bytes) -> bytes:
    """A file of Gradio's front end as it is sent."""
    for edit in EDITS if PART.usable else ():
        if path.match(edit.script):
            text = text.replace(edit.was.encode(), edit.sent.encode())
    return text


def _missing() -> Iterator[str]:
    for edit in EDITS:
        texts = [path.read_text(encoding="utf-8") for path in scripts(edit)]
        if len(texts) != 1 or any(texts[0].count(one) != 1 for one in (edit.was, *edit.hinges)):
            yield f"one {edit.script} as it was read"


PART = Part(
    "edited scripts",
    _missing,
    "an open page that nobody uses takes some 5 % of a core, a tab takes longer to open, and each panel the longer the "
    "more was opened before, an answer may come half a minute late, and its page on the API asks for what there is not",
)
