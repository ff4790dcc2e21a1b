"""How fast the page answers, in a real browser: `python -m bench.browser [--json FILE] [--only NAME ..]`

Every figure is the median of 20 after 3 for warming up, from the click (or key) to the frame in which the change has
been painted. The servers are processes of their own. A measurement is a function Stage -> iterable of Measurement;
MEASUREMENTS lists them all.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from playwright.sync_api import sync_playwright

from attention_atlas.model.program import add_json, command_line, parse_args, program
from bench.page.chromium import launch_chromium
from bench.page.entered import entered
from bench.page.explorer import first_paint, growth, head_switches, large_map, payload_size
from bench.page.first import first_view
from bench.page.idle import idle
from bench.page.openings import openings
from bench.page.stage import ROOT, Measurement, Stage
from bench.page.tabs import lab_checks, lab_heads, lab_inside, lab_positions, stepper

# The names that each prints are its own; further tabs add their functions here.
MEASUREMENTS: tuple[Callable[[Stage], Iterable[Measurement]], ...] = (
    first_view,
    entered,
    head_switches,
    first_paint,
    payload_size,
    growth,
    large_map,
    lab_positions,
    lab_inside,
    lab_heads,
    lab_checks,
    stepper,
    openings,
    idle,
)


def main(argv: list[str] | None = None) -> None:
    parser = command_line("python -m bench.browser", __doc__)
    add_json(parser, "write a list of {name, value, unit}")
    parser.add_argument("--only", nargs="*", help=f"of {', '.join(m.__name__ for m in MEASUREMENTS)}")
    parser.add_argument("--checkpoints", type=Path, default=ROOT / "checkpoints")
    args = parse_args(parser, argv)
    chosen = [m for m in MEASUREMENTS if not args.only or m.__name__ in args.only]
    found = []
    with sync_playwright() as playwright, contextlib.ExitStack() as stack:
        browser = launch_chromium(playwright)
        stage = Stage(browser, stack, args.checkpoints)
        for measure in chosen:
            for measurement in measure(stage):
                found.append(measurement)
                print(f"{measurement.name:<46} {measurement.value:>10,.1f} {measurement.unit}", flush=True)
        browser.close()
    if args.json:
        args.json.write_text(json.dumps([asdict(m) for m in found], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    program(main)
