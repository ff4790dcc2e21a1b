"""Measurements of the other tabs: their panels, the checks, and the stepper."""

from __future__ import annotations

from collections.abc import Iterator

from playwright.sync_api import Page

from attention_atlas.viz.panels import registry
from bench.common import Measurement
from bench.page.stage import RUNS, SENTENCE, TEXT_FIELD, WARM_UP, Stage, measure_median, medians, timed

STEPPER = "document.querySelector('.atlas-stepper')"
LONG_TARGET = (
    "A small dog runs across the green meadow, and two children in red jackets are playing with a ball "
    "while their mother is reading a book, and then they go home again."
)  # more than 30 tokens


def lab_positions(stage: Stage) -> Iterator[Measurement]:
    """The panels on positions of the tab More."""
    yield from lab_panels(stage, "more", "positions")


def lab_inside(stage: Stage) -> Iterator[Measurement]:
    """The panels of the tab Inside."""
    yield from lab_panels(stage, "inside")


def lab_heads(stage: Stage) -> Iterator[Measurement]:
    """The panels on heads of the tab More, and filtering all heads by name in each view."""
    yield from lab_panels(stage, "more", "heads")
    page = tab_page(stage, "more")
    page.wait_for_selector("#panel-heads-survey .head-cell")
    for view in ("grid", "scatter", "table"):
        page.locator("#panel-heads-survey select").first.select_option(view)
        yield measure_median(f"filter_heads_{view}", lambda _: filter_heads(page))
    page.context.close()


def filter_heads(page: Page) -> float:
    """Show only the heads without a name, or all again, and wait until the count of heads has changed."""
    count = "document.querySelector('#panel-heads-survey .count').textContent"
    menu = """[...document.querySelectorAll('#panel-heads-survey select')].find(
        menu => [...menu.options].some(option => option.value === 'none'))"""
    return timed(
        page,
        f"const menu = {menu}; menu.value = menu.value ? '' : 'none';menu.dispatchEvent(new Event('change'))",
        f"{count} !== before",
        watched=count,
    )


def lab_checks(stage: Stage) -> Iterator[Measurement]:
    """The panels that verify, of the tab More, and all checks: from the click on their button to the last verdict."""
    yield from (m for m in lab_panels(stage, "more", "verify") if m.name != "panel_verify")
    page = tab_page(stage, "more")
    page.locator("#more-verify-button").click()
    page.wait_for_selector("#panel-verify .text.good")
    yield measure_median("verify", lambda _: verify_again(page))
    page.context.close()


def tab_page(stage: Stage, tab: str) -> Page:
    """Open the app with a sentence of about 30 tokens and a tab."""
    page = stage.app_page()
    page.locator(TEXT_FIELD).first.fill(SENTENCE)
    page.locator("#translate").click()
    page.wait_for_function("document.querySelectorAll('.atlas-translation .chip').length > 40")
    page.locator(f"#tab-{tab}-button").click()
    return page


def lab_panels(stage: Stage, tab: str, group: str | None = None) -> Iterator[Measurement]:
    """The panels of a tab, or of a group in it, opened in turn: from the click to the painted content, which is
    computed each time."""
    page = tab_page(stage, tab)
    strip = page.locator(f"#{tab}-tabs .strip")
    strip.wait_for()  # the content of a tab is loaded when it is opened
    panels = dict((named.name, panels) for named, panels in next(t for t in registry.TABS if t.name == tab).grouped())
    names = [panel.name for name, members in panels.items() if group in (None, name) for panel in members]
    shown = strip.locator("[role=tab]:visible").evaluate_all("tabs => tabs.map((tab) => tab.dataset.tabId)")
    clicks = {name: f"document.getElementById('{tab}-{name}-button').click()" for name in names if name in shown}
    times: dict[str, list[float]] = {name: [] for name in clicks}
    first, *others = clicks
    for _ in range(WARM_UP + RUNS):
        for name in (*others, first):  # the first panel may be open already, and is asked again only after another
            times[name].append(open_panel(page, name, clicks[name]))
    yield from medians({f"panel_{name.replace('-', '_')}": values for name, values in times.items()})
    page.context.close()


def open_panel(page: Page, name: str, click: str) -> float:
    """Open a closed panel, and wait until its content was asked for again and painted."""
    panel = f"document.querySelector('#panel-{name} .atlas-panel')"
    return timed(
        page,
        click,
        f"{panel}?.dataset.drawn && {panel}.dataset.drawn !== before && "
        f"{panel}.ariaBusy === 'false' && "
        f"[...{panel}.querySelectorAll('.figure')].every(figure => figure.querySelector('.main-svg'))",
        watched=f"{panel}?.dataset.drawn",
    )


def verify_again(page: Page) -> float:
    """Run the checks again, and wait until every check has its verdict."""
    panel = "document.querySelector('#panel-verify .atlas-panel')"
    return timed(
        page,
        "document.querySelector('#verify-again').click()",
        f"{panel}.dataset.drawn !== before && {panel}.querySelector('.text.good, .text.bad')",
        watched=f"{panel}.dataset.drawn",
    )


def stepper(stage: Stage) -> Iterator[Measurement]:
    """A step forward, a step back and a forced token after 30 target tokens."""
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
        times["force_30"].append(
            timed(
                page,
                f"{STEPPER}.querySelectorAll('.candidate:not(.taken)')[{i % 9}].click()",
                f"{STEPPER}.dataset.opened !== before && {STEPPER}.dataset.step === '31'",
                watched=f"{STEPPER}.dataset.opened",
            )
        )
        branches.click()
        page.wait_for_function(f"{STEPPER}.ariaBusy !== 'true'")
        page.wait_for_timeout(400)  # until the other tabs show the new branch
    yield from medians(times)
    page.context.close()
