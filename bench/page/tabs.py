"""The other tabs' part of the benchmark: the lab's panels and its checks, and the stepper."""

from __future__ import annotations

from collections.abc import Iterator

from playwright.sync_api import Page

from attention_atlas.viz.panels import registry
from bench.page.stage import RUNS, WARM_UP, Measurement, Stage, median_of, medians, timed

STEPPER = "document.querySelector('.atlas-stepper')"
SENTENCE = (
    "Ein kleiner Hund rennt über die grüne Wiese, und zwei Kinder in roten Jacken spielen mit einem Ball, "
    "während ihre Mutter liest."
)  # about 30 tokens
LONG_TARGET = (
    "A small dog runs across the green meadow, and two children in red jackets are playing with a ball "
    "while their mother is reading a book, and then they go home again."
)  # more than 30 tokens


def lab_positions(stage: Stage) -> Iterator[Measurement]:
    """The panels on positional encoding."""
    yield from lab_panels(stage, "positions")


def lab_inside(stage: Stage) -> Iterator[Measurement]:
    """The panels on the way through the model."""
    yield from lab_panels(stage, "inside")


def lab_heads(stage: Stage) -> Iterator[Measurement]:
    """The panels on what heads do; all heads filtered by name, in each view."""
    yield from lab_panels(stage, "heads")
    page = tab_page(stage, "heads")
    page.wait_for_selector("#panel-heads-survey .head-cell")
    for view in ("grid", "scatter", "table"):
        page.locator("#panel-heads-survey select").first.select_option(view)
        yield Measurement(f"filter_heads_{view}", round(median_of(lambda _: filter_heads(page)), 1), "ms")
    page.context.close()


def filter_heads(page: Page) -> float:
    """Ask for the heads without a name, or for all of them again; done when they are counted."""
    page.evaluate("window.__count = document.querySelector('#panel-heads-survey .count').textContent")
    menu = """[...document.querySelectorAll('#panel-heads-survey select')].find(
        menu => [...menu.options].some(option => option.value === 'none'))"""
    return timed(
        page,
        f"const menu = {menu}; menu.value = menu.value ? '' : 'none';menu.dispatchEvent(new Event('change'))",
        "document.querySelector('#panel-heads-survey .count').textContent !== window.__count",
    )


def lab_checks(stage: Stage) -> Iterator[Measurement]:
    """All checks, from the click on their button to the last verdict; BLEU."""
    yield from (found for found in lab_panels(stage, "verify") if found.name != "panel_verify")
    page = tab_page(stage, "verify")
    page.wait_for_selector("#panel-verify .text.good")
    yield Measurement("verify", round(median_of(lambda _: verify_again(page)), 1), "ms")
    page.context.close()


def tab_page(stage: Stage, tab: str) -> Page:
    """The app with a sentence of about 30 tokens and a tab open."""
    page = stage.app_page()
    page.locator("#source-text textarea, #source-text input").first.fill(SENTENCE)
    page.locator("#translate").click()
    page.wait_for_function("document.querySelectorAll('.atlas-translation .chip').length > 40")
    page.locator(f"#tab-{tab}-button").click()
    return page


def lab_panels(stage: Stage, tab: str) -> Iterator[Measurement]:
    """The panels of a tab, opened in turn, round after round: from the click to its content, computed anew and
    painted."""
    page = tab_page(stage, tab)
    page.locator(f"#tab-{tab} [role=tab]").first.wait_for()  # what a tab holds comes when it is opened
    (declared,) = (one for one in registry.TABS if one.name == tab)
    ways = {panel.name: clicks(tab, place.name, panel.name) for place, panels in declared.places() for panel in panels}
    times: dict[str, list[float]] = {name: [] for name in ways}
    first, *others = ways
    for _ in range(WARM_UP + RUNS):
        for name in (*others, first):  # the first is open: asked again only after another
            times[name].append(open_panel(page, name, ways[name]))
    yield from medians({f"panel_{name.replace('-', '_')}": values for name, values in times.items()})
    page.context.close()


def clicks(tab: str, place: str, name: str) -> str:
    """JavaScript that clicks on a panel's place in its tab, and on the panel where that is one of several there."""
    strips = {f"#{tab}-tabs": place, f"#{tab}-{place}-tabs": name}
    found = (f"'{strip} > .strip [role=tab][data-tab-id={one}]'" for strip, one in strips.items())
    return "; ".join(f"[...document.querySelectorAll({one})].pop()?.click()" for one in found)


def open_panel(page: Page, name: str, way: str) -> float:
    """Open a closed panel; done when it has been asked for its content again, and that is painted."""
    panel = f"document.querySelector('#panel-{name} .atlas-panel')"
    page.evaluate(f"window.__drawn = {panel}?.dataset.drawn")
    return timed(
        page,
        way,
        f"{panel}?.dataset.drawn && {panel}.dataset.drawn !== window.__drawn && "
        f"{panel}.ariaBusy === 'false' && "
        f"[...{panel}.querySelectorAll('.figure')].every(figure => figure.querySelector('.main-svg'))",
    )


def verify_again(page: Page) -> float:
    """Click the button; done when every check has its verdict."""
    panel = "document.querySelector('#panel-verify .atlas-panel')"
    page.evaluate(f"window.__drawn = {panel}.dataset.drawn")
    return timed(
        page,
        "document.querySelector('#verify-again').click()",
        f"{panel}.dataset.drawn !== window.__drawn && {panel}.querySelector('.text.good, .text.bad')",
    )


def stepper(stage: Stage) -> Iterator[Measurement]:
    """A step forward, a step back and a forced token at 30 tokens of the target."""
    page = tab_page(stage, "stepper")
    page.wait_for_function(f"{STEPPER}?.dataset.opened && {STEPPER}.ariaBusy !== 'true'")
    page.locator(".atlas-stepper [data-panel=own]").click()
    page.locator(".atlas-stepper .own textarea").fill(LONG_TARGET)
    page.locator(".atlas-stepper .own [type=submit]").click()
    page.wait_for_function(f"{STEPPER}.querySelectorAll('.sentences button.chip').length > 32")
    times: dict[str, list[float]] = {"step_30": [], "back_30": [], "force_30": []}
    branches = page.locator(".atlas-stepper [data-panel=branches]")
    for i in range(WARM_UP + RUNS):
        page.evaluate(f"{STEPPER}.querySelectorAll('.sentences button.chip')[30].click()")
        page.wait_for_function(f"{STEPPER}.dataset.step === '30'")
        times["step_30"].append(
            timed(page, f"{STEPPER}.querySelector('[data-move=next]').click()", f"{STEPPER}.dataset.step === '31'")
        )
        times["back_30"].append(
            timed(page, f"{STEPPER}.querySelector('[data-move=back]').click()", f"{STEPPER}.dataset.step === '30'")
        )
        page.evaluate(f"window.__opened = {STEPPER}.dataset.opened")
        times["force_30"].append(
            timed(
                page,
                f"{STEPPER}.querySelectorAll('.candidate:not(.taken)')[{i % 9}].click()",
                f"{STEPPER}.dataset.opened !== window.__opened && {STEPPER}.dataset.step === '31'",
            )
        )
        branches.click()
        page.wait_for_function(f"{STEPPER}.ariaBusy !== 'true'")
        page.wait_for_timeout(400)  # the other tabs have caught up with the new branch
    yield from medians(times)
    page.context.close()
