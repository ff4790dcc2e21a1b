"""Measure how fast the page answers in a real browser: `python -m bench.browser [--json FILE] [--only NAME ..]`

Each figure is the median of 20 runs after 3 to warm up, from the click (or key) to the frame in which the change was
painted. Servers are processes of their own. A measurement is a function from a Stage to an iterable of Measurement;
MEASUREMENTS lists them all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

from playwright.sync_api import sync_playwright

from attention_atlas.model.program import CommandLine, parse_args, run_program
from bench.common import ROOT, Measurement, write_json
from bench.page.explorer import first_paint, growth, head_switches, large_map, payload_size
from bench.page.inside import inside_frames
from bench.page.loading import entered, first_view, idle, openings
from bench.page.stage import Stage, launch_chromium
from bench.page.tabs import lab_checks, lab_heads, lab_inside, lab_positions, stepper

MEASUREMENTS: tuple[Callable[[Stage], Iterable[Measurement]], ...] = (
    *(first_view, entered, head_switches, first_paint, payload_size, growth, large_map),
    *(lab_positions, lab_inside, inside_frames, lab_heads, lab_checks, stepper, openings, idle),
)


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m bench.browser", __doc__)
    parser.add_json("write a list of {name, value, unit}")
    parser.add_argument("--only", nargs="*", help=f"of {', '.join(m.__name__ for m in MEASUREMENTS)}")
    parser.add_argument("--checkpoints", type=Path, default=ROOT / "checkpoints")
    args = parse_args(parser, argv)
    measurements = []
    with sync_playwright() as playwright, contextlib.ExitStack() as stack:
        browser = launch_chromium(playwright)
        stage = Stage(browser, stack, args.checkpoints)
        for measure in MEASUREMENTS:
            if not args.only or measure.__name__ in args.only:
                for measurement in measure(stage):
                    measurements.append(measurement)
                    print(f"{measurement.name:<46} {measurement.value:>10,.1f} {measurement.unit}", flush=True)
        browser.close()
    write_json(args.json, measurements)


if __name__ == "__main__":
    run_program(main)
