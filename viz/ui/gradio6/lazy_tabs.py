"""Tabs whose content the page is given when they are first opened.

Gradio describes every component and every listener of a page in the page itself, and its front end goes through all of
them, each component with each listener, before it draws the first. Here everything is built and served as ever; only
the description of a tab's content comes when the tab is opened, as the answer to that, in the form of what gr.render
makes. A tab not yet opened is its name and one listener.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import gradio as gr
from gradio.blocks import Block, BlockContext, BlocksConfig
from gradio.context import get_blocks_context

from viz.ui.gradio6.part import Part, lacking, unlike, unsaid


@dataclass(frozen=True, eq=False)
class Opening:
    """What Gradio takes for one of its renderables: the first opening of a tab. fn: its handler."""

    _id: int
    container_id: int
    fn: object


def postpone(tabs: Sequence[gr.Tab]) -> None:
    """Describe what these tabs hold when they are first opened. Inside gr.Blocks, when they have all they will hold."""
    if not PART.usable:
        return
    root = get_blocks_context().root_block
    openings = []
    for tab in tabs:
        tab.select(nothing, queue=False, trigger_mode="once", show_progress="hidden", api_visibility="private")
        function = next(reversed(root.fns.values()))
        function.renderable = Opening(len(root.renderables), tab._id, nothing)
        root.renderables.append(function.renderable)
        openings.append(function.renderable)
    root.default_config = Later.of(root.default_config, tuple(openings))


def nothing() -> None:
    """The handler of an opening: its answer is the description, which Gradio adds."""


class Later(BlocksConfig):
    """The description of a page without what its tabs hold, and of that, tab by tab."""

    openings: tuple[Opening, ...] = ()

    @classmethod
    def of(cls, whole: BlocksConfig, openings: tuple[Opening, ...]) -> Later:
        found = cls(whole.root_block)
        found.blocks, found.fns, found.fn_id = whole.blocks, whole.fns, whole.fn_id
        found.openings = openings
        return found

    def __copy__(self) -> Later:
        copied = super().__copy__()
        return Later.of(copied, self.openings)

    def get_config(self, renderable: Opening | None = None) -> dict:
        """The page's, or what an opening is answered with."""
        homes = self._homes()
        if renderable is None:
            return self._without(super().get_config(), homes)
        layout = self._layout(self.blocks[renderable.container_id])
        ids = [layout["id"], *self._inside(renderable)]
        # Of components that were changed since, as they are now.
        components = [self.config_for_block(i, ids, self.blocks[i], renderable) for i in ids]
        read = {block._id for function in self.fns.values() for block in function.inputs}
        for one in components:
            if one["id"] in read:  # the page finds out by itself of what it begins with alone
                one["props"].setdefault("interactive", True)
        return {"layout": layout, "components": components, "dependencies": self._listeners(renderable, homes)}

    def _layout(self, block: Block) -> dict:
        children = [self._layout(child) for child in getattr(block, "children", ())]
        return {"id": block._id, **({"children": children} if isinstance(block, BlockContext) else {})}

    def _without(self, config: dict, homes: dict[int, Opening]) -> dict:
        """The whole is what programs ask for; a page is sent those of its parts that are listed for it: none of what
        only an endpoint reads."""
        inside = {i for opening in self.openings for i in self._inside(opening)}
        inside |= {i for i, block in self.blocks.items() if block.get_block_name() == "api"}

        def pruned(layout: dict) -> dict:
            children = [pruned(child) for child in layout.get("children", ()) if child["id"] not in inside]
            return {**layout, **({"children": children} if "children" in layout else {})}

        pages = {
            name: {
                "layout": pruned(page["layout"]),
                "components": [i for i in page["components"] if i not in inside],
                "dependencies": [i for i in page["dependencies"] if i not in homes],
            }
            for name, page in config["page"].items()
        }
        return {
            **config,
            "page": pages,
            "dependencies": [_brief(one) if self.fns[one["id"]].renderable else one for one in config["dependencies"]],
        }

    def _listeners(self, opening: Opening, homes: dict[int, Opening]) -> list[dict]:
        """Those of the tab, and all others to the same events of other parts of the page: what comes with a tab takes
        the place of whoever listened to an event before (read in Gradio 6.31's front end). So does, at last, the
        opening's own without a handler: the tab is not asked for again."""
        inside = self._inside(opening)
        shared = {
            key
            for i, function in self.fns.items()
            if homes.get(i) is opening
            for key in function.targets
            if key[0] not in inside and key[1] != "load"
        }
        found = [function.get_config() for i, function in self.fns.items() if homes.get(i) is opening]
        found += [
            {**config, "targets": [key for key in config["targets"] if key[1] != "load"]}
            for config in (
                function.get_config()
                for i, function in self.fns.items()
                if homes.get(i) is not opening and shared.intersection(function.targets)
            )
        ]
        own = next(function for function in self.fns.values() if function.renderable is opening)
        return [*found, {**own.get_config(), "backend_fn": False}]

    def _homes(self) -> dict[int, Opening]:
        """The listeners that come with a tab, by id: what listens to a part of it, or is answered in it alone."""
        parts = {i: opening for opening in self.openings for i in self._inside(opening)}
        found = {}
        for i, function in self.fns.items():
            listens = {parts[target] for target, _ in function.targets if target in parts}
            answers = {parts.get(block._id) for block in function.outputs}
            if home := next(iter(listens or (answers if len(answers) == 1 else ())), None):
                found[i] = home
        return found

    def _inside(self, opening: Opening) -> set[int]:
        """The ids of all that a tab holds."""
        found, waiting = set(), list(self.blocks[opening.container_id].children)
        while waiting:
            block = waiting.pop()
            found.add(block._id)
            waiting += getattr(block, "children", ())
        return found


def _brief(listener: dict) -> dict:
    """Without what is so where nothing is said; of "queue" that would be true."""
    return {
        name: value for name, value in listener.items() if (value is not None and value is not False) or name == "queue"
    }


def _missing() -> Iterator[str]:
    yield from lacking(BlocksConfig, "__copy__", "get_config", "config_for_block")
    yield from unlike(BlocksConfig.get_config, "renderable")
    yield from unlike(BlocksConfig.config_for_block, "rendered_ids", "renderable")
    yield from unsaid("blocks.py", "renderables", "block_fn.renderable", '["render_id"]', "root_block.default_config")
    yield from unsaid("templates/frontend/assets/Blocks-*.js", "type===`render`", "rerender_cb", "render_id_deps")


PART = Part("lazy tabs", _missing, "all tabs are described at once, and the page opens later")
