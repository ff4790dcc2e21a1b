"""Rebuild the derived files of a checkpoint that were made with other weights.

    python -m recipes.derived --help

Derived files (scores, lenses, surveys and others) are in the checkpoint's folder and contain the digest of the weights
they were made with.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from safetensors import safe_open

from attention_atlas.model import checkpoint, evaluate, faithfulness, lenses, means, survey
from attention_atlas.model.analysis.lenses import storage
from attention_atlas.model.analysis.why.faithfulness import FILE as FAITHFULNESS_FILE
from attention_atlas.model.analysis.why.means import FILE as MEANS_FILE
from attention_atlas.model.files import read_json
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.program import CommandLine, run_program
from attention_atlas.model.truth import __main__ as truth
from recipes import everyday

PUBLISHED = ("multi30k", "tatoeba", "tatoeba-2021")
SPOKEN = ("subtitles", "dialogues", "chats", "assistant", "general", "news-2024", "ted")


def scores(folder: Path, data: Path) -> None:
    """Build metrics.json: dev and test scores as the cards show them. Beam search, which takes five times as long, is
    used only for scores that others publish."""
    common = ["--checkpoint", str(folder), "--replace", "--data", str(data), "--protocol", "wu2021", "--corpora"]
    evaluate.main([*common, *PUBLISHED, *SPOKEN, "--splits", "dev", "--beam", "1"])
    evaluate.main([*common, *PUBLISHED, *SPOKEN, "--splits", "test", "--beam", "1"])
    evaluate.main([*common, *PUBLISHED, "--splits", "test", "--beam", "5", "--length-penalty", "1.0"])


def mean_outputs(folder: Path, data: Path) -> None:
    """Build means.safetensors, for ablation and occlusion, from the project's own sentences; needs no data."""
    means.main(["--checkpoint", str(folder), "--replace"])


def layers(folder: Path, data: Path) -> None:
    """Build lenses.safetensors, for the tab "Inside", from the project's own sentences. The hit rates are measured on
    everyday sentences, and with data also on captions and news."""
    pairs = {
        direction: {"everyday": [(one.source, one.references[0]) for one in everyday.read_everyday(direction)]}
        for direction in everyday.DIRECTIONS
    }
    lenses.main(["--checkpoint", str(folder), "--replace", *(["--data", str(data)] if data.is_dir() else [])], pairs)


def heads(folder: Path, data: Path) -> None:
    """Build heads.json, for the panels on heads, from dev sentences, or without data from the project's own. Needs the
    means."""
    sentences = ["--data", str(data), "--limit", "2000"] if data.is_dir() else []
    out = ["--out", str(folder / checkpoint.HEADS), "--replace"]
    survey.main(["--checkpoint", str(folder), *sentences, "--ablate", "200", *out])


def believed(folder: Path, data: Path) -> None:
    """Build faithfulness.json and its section of the card, for the tab "Why", from dev sentences, or without data from
    the project's own. Needs the means."""
    faithfulness.main(["--checkpoint", str(folder), "--replace", *(["--data", str(data)] if data.is_dir() else [])])


def world(folder: Path, data: Path) -> None:
    """Build truth.json and its tables in the card, from all labelled data that exist. Needs the means."""
    truth.main(["--checkpoint", str(folder), "--replace", "--data", str(data)], expected=False)


# File name -> what makes it from (checkpoint folder, data folder). A new analysis that keeps a table adds a line.
BUILDERS: dict[str, Callable[[Path, Path], None]] = {
    checkpoint.METRICS: scores,
    MEANS_FILE: mean_outputs,
    storage.FILE: layers,
    checkpoint.HEADS: heads,
    FAITHFULNESS_FILE: believed,
    truth.FILE: world,
}
OF_TRANSFORMERS = set(BUILDERS) - {checkpoint.METRICS}  # what other networks have not


def digest_of(path: Path) -> str | None:
    """Return the digest in a derived file: the field "digest" of JSON, of a safetensors file's metadata or of an
    .npz's array "facts" (JSON), or an array of that name. None if it has none."""
    if path.suffix == ".json":
        values = read_json(path)
        return values.get("digest") if isinstance(values, dict) else None
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            if "digest" in file.files:
                return str(file["digest"])
            return json.loads(str(file["facts"])).get("digest") if "facts" in file.files else None
    if path.suffix == ".safetensors":
        with safe_open(path, framework="np") as file:
            return (file.metadata() or {}).get("digest")
    return None


def stale(folder: Path) -> list[str]:
    """Return the derived files of a checkpoint that are of other weights or missing, in the order of BUILDERS."""
    loaded = checkpoint.load(folder)
    weights = loaded.digest
    outdated = [
        path.name
        for path in sorted(folder.iterdir())
        if path.suffix in (".json", ".npz", ".safetensors") and digest_of(path) not in (None, weights)
    ]
    absent = [
        name
        for name in BUILDERS
        if (isinstance(loaded.model, Transformer) or name not in OF_TRANSFORMERS)
        and name not in outdated
        and (not (folder / name).exists() or digest_of(folder / name) is None)
    ]
    return sorted(outdated + absent, key=lambda name: list(BUILDERS).index(name) if name in BUILDERS else len(BUILDERS))


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    unmade = 0
    for folder in sorted(path.parent for path in args.checkpoints.glob(f"*/{checkpoint.CONFIG}")):
        for name in stale(folder):
            if args.list or name not in BUILDERS:
                end = "" if name in BUILDERS else ": nothing here rebuilds it"
                print(f"{folder / name} is of other weights{end}")
                unmade += 1
                continue
            print(f"{folder / name}", file=sys.stderr)
            BUILDERS[name](folder, args.data)
    if unmade:
        sys.exit(1)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("python -m recipes.derived", __doc__)
    add = parser.add_argument
    add("--checkpoints", type=Path, default=Path("checkpoints"), help="folder of checkpoint folders")
    add("--data", type=Path, default=Path("data"), help="folder with the corpora")
    add("--list", action="store_true", help="only say what is of other weights, with exit code 1 if anything is")
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_program(main)
