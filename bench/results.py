"""docs/results.md from what was measured: python -m bench.results

Scores are read from the checkpoints' metrics.json, all else from the files in docs/results/ that the benchmarks wrote
with --json. A benchmark that was not run yet is named with its command.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from attention_atlas.model.analysis.trust import FILE
from attention_atlas.model.program import command_line, program
from attention_atlas.model.truth import report
from bench.tables import table, tables

ROOT = Path(__file__).resolve().parents[1]
PAGE, FOLDER = ROOT / "docs" / "results.md", ROOT / "docs" / "results"


@dataclass(frozen=True)
class Section:
    """What one benchmark writes. file: in docs/results/; command: what writes it; about: how to read it."""

    title: str
    file: str
    command: str
    about: str


SECTIONS = (
    Section(
        "Speed",
        "speed.json",
        'make bench ARGS="--json {file} --replace"',
        "One sentence at a time, to a forced number of target tokens: with every map, over the cache without maps, "
        "and with the whole decoder at each step. Medians of one process.",
    ),
    Section(
        "Next to what people would use instead",
        "peers.json",
        'make bench-peers ARGS="--json {file} --replace --png docs/growth.png"',
        "The same sizes on the same cores; everything compared takes turns in one process. Marian and torch.nn have "
        "random weights and forced lengths, the tutorial loop gives no map at all, CTranslate2 has our weights. "
        "Ratios are of the other's time to ours, except for CTranslate2's batch. Growth is of time and memory by "
        "length and by batch size: an exponent of 1 is proportional, and attention alone allows 2.",
    ),
    Section(
        "Where the time goes",
        "parts.json",
        "python -m bench.parts --json {file} --replace",
        "Processor time of one thread, beside the time that the products and the reading of weights take at the "
        "speeds of the same run. Methods of the tab Why are asked about the last of 16 + 16 tokens. Then the time "
        "that a start takes and the memory it leaves resident, stage by stage. Last, every panel on a caption of 26 "
        "tokens, in time that passes: to the first that it shows, and to all of it.",
    ),
    Section(
        "The page in a browser",
        "browser.json",
        'make bench-browser ARGS="--json {file} --replace"',
        "Headless Chromium with software rendering. gr_plot is the same picture as a server round trip.",
    ),
    Section(
        "The first view",
        "first_view.json",
        "python -m bench.browser --only first_view --json {file} --replace",
        "The app in a browser that has never seen it: when the page's name and the selected head's map are painted, by "
        "the browser's own timing, and what had been loaded by then. Plotly.js comes after it.",
    ),
    Section(
        "From Enter to the new map",
        "entered.json",
        "python -m bench.browser --only entered --json {file} --replace",
        "In the app, in a browser: sentences of some 12 tokens. What exceeds the model's own time is the answer's "
        "transport and the painting.",
    ),
    Section(
        "Many people at once",
        "load.json",
        'make bench-load ARGS="--json {file} --replace"',
        "Simultaneous callers of the API: answers per second, their median and 95th percentile in seconds, and how "
        "many were told to try again later. Then memory, over minutes and sessions; its growth is a share.",
    ),
    Section(
        "Visitors behind nginx, and how many there may be",
        "capacity.json",
        "python -m bench.hosting.capacity --measure 15 --json {file} --replace",
        "What a question and a page's opening cost one replica, and two replicas behind nginx: how many questions "
        "they answer, and how long one takes when so many arrive at random, beside what M/M/c predicts. All of it "
        "shares the cores with the callers, which `busy cores` leaves out.",
    ),
    Section(
        "Faults under load",
        "faults.json",
        "python -m bench.hosting.faults --json {file} --replace",
        "Others keep asking: how many answers they got, and how long the slowest took. SIGTERM: no accepted "
        "question may be lost. Sessions: a twentieth of the whole run, `--only sessions --share 0.05`.",
    ),
    Section(
        "Questions of the tab Why",
        "why.json",
        "python -m bench.why --json {file} --replace",
        "Each beside its bar, and beside the time of its products at the speed that the machine reaches.",
    ),
    Section(
        "Circuits",
        "circuits.json",
        "python -m bench.circuits --json {file} --replace",
        "What 5 % of the edges keep alone, on held-out pairs, with a 95 % bootstrap interval, beside whole nodes "
        "and random edges. Then times, each beside its bar; at OPUS-MT's size with random weights and norms first.",
    ),
    Section(
        "How far to trust a translation",
        "trust.json",
        "python -m bench.trust --json {file} --replace",
        "The line under a translation, the panel Trust, dropout's passes and two models on one sentence, each beside "
        "its bar.",
    ),
    Section(
        "What edits cost those who make none",
        "since.json",
        "python -m bench.since --json {file} --replace",
        "Processor time of a translation and of its steps beside the commit before edits were added, in turns; "
        "`more` is by how much, with the 95 % interval of its median, and `noise` the same of that commit beside "
        "itself.",
    ),
    Section(
        "Training in the page", "toy.json", "python -m bench.toy --json {file} --replace", "The tab Train's default."
    ),
    Section(
        "Large models of other families",
        "own.json",
        "python -m bench.own --shapes shipped opus-mt nllb-600m t5-base --json {file} --replace",
        "At the sizes of public checkpoints, with random weights; shipped: the German → English Transformer, for "
        "comparison. Roofline: the time in which as many bytes as a step reads are summed, in the same run; t5-base "
        "was measured on the processor that stands before its figures; on an AMD EPYC, before maps followed from the "
        "steps, it was 1.05 times as fast as transformers. Random weights never end a sentence: the first translation"
        " gets as many tokens as its source has, as a real one does; of that, what each part takes; endless: up to "
        "the limit, by the first process that reads the file, which may come from the disk. Visitors: five at once "
        "with 512 tokens each, by `--sections visitors --visitors 5 --tokens 512`.",
    ),
    Section(
        "On a GPU",
        "cuda.json",
        "python -m bench.cuda --json {file} --replace",
        "The German → English Transformer; times with all maps are medians to a forced number of tokens, with "
        "every map brought to the CPU. Marian's stay on the GPU. The CPU is that of the same machine.",
    ),
)


def main(argv: list[str] | None = None) -> None:
    command_line("python -m bench.results", __doc__).parse_args(argv)
    PAGE.write_text(page(ROOT / "checkpoints", FOLDER), encoding="utf-8")
    print(PAGE.relative_to(ROOT))


def page(checkpoints: Path, folder: Path) -> str:
    """The whole page. ValueError, naming the file, for one that is no benchmark's."""
    parts = [
        "# Results",
        "Written by `make results` from what the benchmarks left in `docs/results/`. Times compare "
        "within one table; between machines, compare ratios.",
        "## Translation quality",
        quality(checkpoints),
        "## Beside labelled data",
        labelled(checkpoints),
        "## Kinds of language",
        kinds(folder / "domains"),
    ]
    for section in SECTIONS:
        path = folder / section.file
        command = section.command.format(file=f"docs/results/{section.file}")
        body = tables(path) if path.exists() else "Not measured with these versions yet."
        parts += [f"## {section.title}", section.about, f"`{command}`", body]
        if section.file == "peers.json" and path.exists():
            parts.append("![Time and memory against length and batch size, on logarithmic axes](growth.png)")
    return "\n\n".join(parts) + "\n"


def quality(checkpoints: Path) -> str:
    """Scores on held-out test sets: sacreBLEU and chrF of greedy decoding and of the beam."""
    rows = []
    for path in sorted(checkpoints.glob("*/metrics.json")):
        for score in json.loads(path.read_text(encoding="utf-8")).get("scores", ()):
            if score["split"] == "test":
                how = "greedy" if score["beam"] == 1 else f"beam {score['beam']}"
                rows.append(
                    (
                        score["direction"],
                        path.parent.name,
                        score["data"],
                        f"{score['sentences']:,}",
                        how,
                        score.get("protocol", "13a, cased"),
                        f"{score['bleu']:.1f}",
                        f"{score['chrf']:.1f}" if "chrf" in score else "",
                    )
                )
    text = (
        "sacreBLEU is cased and detokenised (13a); wu2021 is the protocol of Wu et al. (2021): lowercase, Moses "
        "normalisation and tokenisation, for which they report 41.02 (Multi30k, English → German, beam 5) and "
        "61.80 (English → French). `attention-atlas evaluate --checkpoint checkpoints/NAME --splits "
        "test --beam 1 5 --length-penalty 1.0 --protocol wu2021` scores with the corpora in `data/`; "
        "what each checkpoint was trained on is in its card."
    )
    return f"{text}\n\n" + table(
        ("direction", "checkpoint", "test set", "sentences", "decoding", "protocol", "BLEU", "chrF"), rows
    )


def labelled(checkpoints: Path) -> str:
    """What model.truth left beside each checkpoint's weights."""
    found = [
        f"### {path.parent.name}\n\n{report.tables(json.loads(path.read_text(encoding='utf-8')), level=4)}"
        for path in sorted(checkpoints.glob(f"*/{FILE}"))
    ]
    return "\n\n".join(["`attention-atlas truth --data data --checkpoint checkpoints/NAME` measures this.", *found])


def kinds(folder: Path) -> str:
    """Greedy BLEU on the first dev sentences of each corpus, by state, from its files STATE.CHECKPOINT.json."""
    found: dict[tuple[str, str, int], dict[str, float]] = {}
    states: dict[str, None] = {}
    for path in sorted(folder.glob("*.*.json")):
        state = path.name.split(".")[0]
        states[state] = None
        for score in json.loads(path.read_text(encoding="utf-8"))["scores"]:
            what = (score["direction"], score["data"], score["sentences"])
            found.setdefault(what, {})[state] = score["bleu"]
    text = (
        "sacreBLEU (13a, cased) of greedy decoding on the first sentences of each corpus's dev part, of the shipped "
        "weights and of other states. `attention-atlas evaluate --checkpoint FOLDER --splits dev "
        "--limit 120 --out docs/results/domains/STATE.CHECKPOINT.json` adds to a column."
    )
    rows = [
        (direction, data, str(sentences), *(f"{scores[state]:.1f}" if state in scores else "" for state in states))
        for (direction, data, sentences), scores in sorted(found.items())
    ]
    return f"{text}\n\n" + table(("direction", "corpus", "sentences", *states), rows)


if __name__ == "__main__":
    program(main)
