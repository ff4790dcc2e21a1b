"""Rebuild what depends on a checkpoint's weights and was made with other ones.

    python -m recipes.derived --help

Every such file lies in the checkpoint's folder and carries the digest of the weights that it was made with. Where the
digests differ, the file says nothing about these weights.
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
from attention_atlas.model.program import command_line, program
from attention_atlas.model.truth import __main__ as truth
from recipes import everyday

PUBLISHED = ("multi30k", "tatoeba", "tatoeba-2021")
SPOKEN = ("subtitles", "dialogues", "chats", "assistant", "general", "news-2024", "ted")


def scores(folder: Path, data: Path) -> None:
    """metrics.json: dev and test scores as the cards show them. By beam only those that others publish, too: it takes
    five times as long."""
    common = ["--checkpoint", str(folder), "--replace", "--data", str(data), "--protocol", "wu2021", "--corpora"]
    evaluate.main([*common, *PUBLISHED, *SPOKEN, "--splits", "dev", "--beam", "1"])
    evaluate.main([*common, *PUBLISHED, *SPOKEN, "--splits", "test", "--beam", "1"])
    evaluate.main([*common, *PUBLISHED, "--splits", "test", "--beam", "5", "--length-penalty", "1.0"])


def mean_outputs(folder: Path, data: Path) -> None:
    """means.safetensors, for ablation and occlusion: over the project's own sentences, so that no data is needed."""
    means.main(["--checkpoint", str(folder), "--replace"])


def layers(folder: Path, data: Path) -> None:
    """lenses.safetensors, for the tab "Inside": of the project's own sentences. How often they find a word is measured
    on everyday ones, with data on captions and news, too."""
    pairs = {
        direction: {"everyday": [(one.source, one.references[0]) for one in everyday.read_everyday(direction)]}
        for direction in everyday.DIRECTIONS
    }
    lenses.main(["--checkpoint", str(folder), "--replace", *(["--data", str(data)] if data.is_dir() else [])], pairs)


def heads(folder: Path, data: Path) -> None:
    """heads.json, for the tab "Heads": over dev sentences, whose text is not in it; without data over the project's
    own. It uses the means, which stand before it."""
    sentences = ["--data", str(data), "--limit", "2000"] if data.is_dir() else []
    out = ["--out", str(folder / checkpoint.HEADS), "--replace"]
    survey.main(["--checkpoint", str(folder), *sentences, "--ablate", "200", *out])


def believed(folder: Path, data: Path) -> None:
    """faithfulness.json and the card's section, for the tab "Why": over dev sentences, without data over the project's
    own. It uses the means, which stand before it."""
    faithfulness.main(["--checkpoint", str(folder), "--replace", *(["--data", str(data)] if data.is_dir() else [])])


def world(folder: Path, data: Path) -> None:
    """truth.json and the card's tables of it: beside whatever labelled data there are. It uses the means."""
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
    """The digest that a derived file carries: the field "digest" of JSON, of a safetensors file's metadata or of an
    .npz's array "facts" (JSON), or an array of that name. None if it carries none."""
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
    """Derived files of a checkpoint's folder that are of other weights, and those of BUILDERS that are missing, in the
    order in which they are built."""
    loaded = checkpoint.load(folder)
    weights = loaded.digest
    found = [
        path.name
        for path in sorted(folder.iterdir())
        if path.suffix in (".json", ".npz", ".safetensors") and digest_of(path) not in (None, weights)
    ]
    absent = [
        name
        for name in BUILDERS
        if (isinstance(loaded.model, Transformer) or name not in OF_TRANSFORMERS)
        and name not in found
        and (not (folder / name).exists() or digest_of(folder / name) is None)
    ]
    return sorted(found + absent, key=lambda name: list(BUILDERS).index(name) if name in BUILDERS else len(BUILDERS))


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
    parser = command_line("python -m recipes.derived", __doc__)
    add = parser.add_argument
    add("--checkpoints", type=Path, default=Path("checkpoints"), help="folder of checkpoint folders")
    add("--data", type=Path, default=Path("data"), help="folder with the corpora")
    add("--list", action="store_true", help="only say what is of other weights, with exit code 1 if anything is")
    return parser.parse_args(argv)


if __name__ == "__main__":
    program(main)
