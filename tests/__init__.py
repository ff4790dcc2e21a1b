"""Tests in the same tree as the code. page/ drives a real browser, shipped/ uses the trained checkpoints."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
