"""The tests, as the tree that they test; page/ drives a real browser."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
