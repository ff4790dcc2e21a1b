"""Write docs/results.md from what was measured: python -m bench.results

Scores are read from the checkpoints' metrics.json, everything else from the files in docs/results/ that the benchmarks
wrote with --json (bench/results.toml lists them). A benchmark that was not run yet is named with its command.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from attention_atlas.model.analysis.trust import FILE
from attention_atlas.model.program import CommandLine, run_program
from attention_atlas.model.truth import report

ROOT = Path(__file__).resolve().parents[1]
PAGE, FOLDER = ROOT / "docs" / "results.md", ROOT / "docs" / "results"
SECTIONS = tomllib.loads((ROOT / "bench" / "results.toml").read_text(encoding="utf-8"))["section"]
SIZED_NAME = re.compile(r"(.+)_(\d+)")  # a measurement's name that ends with a number of tokens or callers
QUALITY = """sacreBLEU is cased and detokenised (13a); wu2021 is the protocol of Wu et al. (2021): lowercase, Moses \
normalisation and tokenisation, for which they report 41.02 (Multi30k, English → German, beam 5) and 61.80 (English → \
French). `attention-atlas evaluate --checkpoint checkpoints/NAME --splits test --beam 1 5 --length-penalty 1.0 \
--protocol wu2021` scores with the corpora in `data/`; what each checkpoint was trained on is in its card."""
DOMAINS = """sacreBLEU (13a, cased) of greedy decoding on the first sentences of each corpus's dev part, of the \
shipped weights and of other states. `attention-atlas evaluate --checkpoint FOLDER --splits dev --limit 120 --out \
docs/results/domains/STATE.CHECKPOINT.json` adds to a column."""


def main(argv: list[str] | None = None) -> None:
    CommandLine("python -m bench.results", __doc__).parse_args(argv)
    PAGE.write_text(page(ROOT / "checkpoints", FOLDER), encoding="utf-8")
    print(PAGE.relative_to(ROOT))


def page(checkpoints: Path, folder: Path) -> str:
    """Return the whole page as Markdown. Raises ValueError, with the file's name, for a file of another kind."""
    parts = [
        "# Results",
        "Written by `make results` from what the benchmarks left in `docs/results/`. Times compare within one table; "
        "between machines, compare ratios.",
        *("## Translation quality", QUALITY, quality(checkpoints)),
        *("## Beside labelled data", labelled(checkpoints)),
        *("## Kinds of language", DOMAINS, domains(folder / "domains")),
    ]
    for section in SECTIONS:
        path = folder / section["file"]
        parts += [f"## {section['title']}", section["about"]]
        if "command" in section:
            parts.append(f"`{section['command'].format(file=f'docs/results/{path.name}')}`")
        if not path.exists():
            parts.append("Not measured with these versions yet.")
        else:
            parts += [tables(path), *([section["picture"]] if "picture" in section else [])]
    return "\n\n".join(parts) + "\n"


def quality(checkpoints: Path) -> str:
    """Return the scores on held-out test sets: sacreBLEU and chrF of greedy decoding and of beam search."""
    rows = [
        (
            score["direction"],
            path.parent.name,
            score["data"],
            f"{score['sentences']:,}",
            "greedy" if score["beam"] == 1 else f"beam {score['beam']}",
            score.get("protocol", "13a, cased"),
            f"{score['bleu']:.1f}",
            f"{score['chrf']:.1f}" if "chrf" in score else "",
        )
        for path in sorted(checkpoints.glob("*/metrics.json"))
        for score in json.loads(path.read_text(encoding="utf-8")).get("scores", ())
        if score["split"] == "test"
    ]
    return table(("direction", "checkpoint", "test set", "sentences", "decoding", "protocol", "BLEU", "chrF"), rows)


def labelled(checkpoints: Path) -> str:
    """Return the tables of model.truth for each checkpoint."""
    reports = [
        f"### {path.parent.name}\n\n{report.tables(json.loads(path.read_text(encoding='utf-8')), level=4)}"
        for path in sorted(checkpoints.glob(f"*/{FILE}"))
    ]
    return "\n\n".join(["`attention-atlas truth --data data --checkpoint checkpoints/NAME` measures this.", *reports])


def domains(folder: Path) -> str:
    """Return greedy BLEU by corpus and state of the weights, from the files STATE.CHECKPOINT.json."""
    scores_by_corpus: dict[tuple[str, str, int], dict[str, float]] = {}
    states: dict[str, None] = {}
    for path in sorted(folder.glob("*.*.json")):
        state = path.name.split(".")[0]
        states[state] = None
        for score in json.loads(path.read_text(encoding="utf-8"))["scores"]:
            corpus = (score["direction"], score["data"], score["sentences"])
            scores_by_corpus.setdefault(corpus, {})[state] = score["bleu"]
    rows = [
        (direction, data, str(sentences), *(f"{scores[state]:.1f}" if state in scores else "" for state in states))
        for (direction, data, sentences), scores in sorted(scores_by_corpus.items())
    ]
    return table(("direction", "corpus", "sentences", *states), rows)


def tables(path: Path) -> str:
    """Return a file of --json as tables: measurements {name, value, unit}, rows of a report, or one object."""
    figures = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(figures, Mapping):
        values = dict(flatten(figures))
        lists = {name: rows for name, rows in values.items() if is_list_of_rows(rows)}
        single = [(name, format_value(value)) for name, value in values.items() if name not in lists]
        return "\n\n".join(
            [table(("what", "value"), single), *(f"{name}:\n\n{table_of_rows(rows)}" for name, rows in lists.items())]
        )
    if not is_list_of_rows(figures):
        raise ValueError(f"{path} is not the file of a benchmark")
    if all({"name", "value", "unit"} <= set(row) for row in figures):
        return tables_of_measurements(figures)
    # One table for each run of rows with the same fields.
    return "\n\n".join(table_of_rows(list(rows)) for _, rows in groupby(figures, key=tuple))


def tables_of_measurements(measurements: Sequence[Mapping]) -> str:
    """Return a table for each set of sizes, with a column for each size, and one for measurements without a size."""
    rest, by_size, groups = [], {}, {}
    for row in measurements:
        if match := SIZED_NAME.fullmatch(row["name"]):
            by_size.setdefault((match[1], row["unit"]), {})[int(match[2])] = row["value"]
        else:
            rest.append((format_name(row["name"]), row["unit"], format_value(row["value"])))
    for (name, unit), values in by_size.items():
        groups.setdefault(tuple(sorted(values)), []).append((name, unit, values))
    parts = [
        table(
            ("what", "unit", *map(str, sizes)),
            [(format_name(name), unit, *(format_value(values[size]) for size in sizes)) for name, unit, values in rows],
        )
        for sizes, rows in groups.items()
    ]
    return "\n\n".join([*parts, *([table(("what", "unit", "value"), rest)] if rest else [])])


def is_list_of_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def table_of_rows(rows: Sequence[Mapping]) -> str:
    """Return a table with a column for each field that any row has."""
    fields = list(dict.fromkeys(name for row in rows for name in row))
    return table([*map(format_name, fields)], [[format_value(row.get(name, "–")) for name in fields] for row in rows])


def flatten(values: Mapping, prefix: str = "") -> Iterable[tuple[str, object]]:
    """Yield the leaves of nested objects with their joined names."""
    for name, value in values.items():
        label = f"{prefix}{format_name(name)}"
        if isinstance(value, Mapping):
            yield from flatten(value, f"{label}: ")
        else:
            yield label, value


def format_name(name: object) -> str:
    return str(name).replace("_", " ")


def format_value(value: object) -> str:
    """Return a number with three significant digits, a whole number with all."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ", ".join(map(format_value, value)) if isinstance(value, (list, tuple)) else str(value)
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:.3g}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; a bar inside a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    run_program(main)
