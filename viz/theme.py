"""Colours and fonts, for Gradio's theme, the page's CSS variables and Plotly's layout.

Text has a contrast of at least 4.5 : 1 on its background, light and dark.
"""

from __future__ import annotations

FONT = ("Inter", "ui-sans-serif", "system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif")
MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")

# name: (light, dark)
COLOURS = {
    "ink": ("#1b2433", "#e7ebf2"),
    "muted": ("#566174", "#a3adbd"),
    "paper": ("#ffffff", "#111722"),
    "panel": ("#f6f7f9", "#182130"),
    "line": ("#d9dee6", "#2d394b"),
    "accent": ("#1d5fbf", "#7db3ff"),
    "accent-soft": ("#e3edfb", "#1d3354"),
    "on-accent": ("#ffffff", "#0b1220"),
    "target": ("#a2347a", "#f08cc4"),  # the translation's words, beside the source's in the accent colour
    "warn": ("#8a4b00", "#f2b866"),
    "warn-soft": ("#fdf1de", "#3a2a12"),
    "bad": ("#a3222b", "#ff9aa0"),
    "bad-soft": ("#fbe7e8", "#401c20"),
    "good": ("#1b6b3a", "#7fd8a0"),
    "good-soft": ("#e3f4e9", "#15341f"),
}

# Colours of heads and curves that are shown together (Okabe and Ito 2008), and the dashes of their lines: two that look
# alike to anyone, without colours too, are dashed differently.
HEAD_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#9911ee", "#6b6b6b")
HEAD_DASHES = ("solid", "dash", "dash", "solid", "dot", "dot", "dot", "dash")
# Marks of the points of series that have the dashes for something else.
MARKS = (
    "circle",
    "square",
    "diamond",
    "x",
    "triangle-up",
    "triangle-down",
    "cross",
    "star",
    "pentagon",
    "hexagon",
    "bowtie",
)

# Sequential scales with monotonic lightness, for any colour vision: viridis (van der Walt and Smith 2015), cividis
# (Nunez et al. 2018), greys (ColorBrewer).
SCALES = {
    name: tuple(f"#{colour}" for colour in colours.split())
    for name, colours in {
        "viridis": "440154 482878 3e4989 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725",
        "cividis": "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838",
        "greys": "ffffff f0f0f0 d9d9d9 bdbdbd 969696 737373 525252 252525 000000",
    }.items()
}

# From negative to positive. The middle is close to the page's background; blue and orange are distinct for any colour
# vision.
DIVERGING = {
    "light": ("#1d5fbf", "#8eafdf", "#f4f5f7", "#e6ae80", "#ce5c00"),
    "dark": ("#7db3ff", "#4b6f9f", "#1b2433", "#8f5a2b", "#ff9d45"),
}

# Plotly's text colour on the light or dark background of a notebook. The page replaces it.
FIGURE_TEXT = "#7a8494"
AXIS = {"gridcolor": "rgba(128,128,128,0.2)", "zerolinecolor": "rgba(128,128,128,0.6)"}


def css_variables() -> str:
    """Return CSS that defines the colours and fonts as variables `--atlas-NAME`, for light and dark pages."""
    colours = {**COLOURS, "above": (DIVERGING["light"][-1], DIVERGING["dark"][-1])}
    light, dark = ("; ".join(f"--atlas-{name}: {pair[i]}" for name, pair in colours.items()) for i in (0, 1))
    fonts = f"--atlas-font: {', '.join(FONT)}; --atlas-mono: {', '.join(MONO)}"
    return f":root {{ {light}; {fonts} }}\n.dark, body.dark {{ {dark} }}\n"


def figure_layout(*, top: int = 8, **changes) -> dict:
    """Return the Plotly layout of all figures (transparent, mid-grey text, tight margins) with changes.

    top: the upper margin in pixels
    """
    layout = {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": ", ".join(FONT), "size": 12, "color": FIGURE_TEXT},
        "margin": {"l": 8, "r": 8, "t": top, "b": 8},
        "separators": ".\u202f",  # of decimals, of thousands
    }
    return {**layout, **changes}
