"""Measure the faithfulness of the attribution methods of Why: attention-atlas faithfulness --help

Translates 210 sentences of each direction, attributes the least certain content word of each to the source, and removes
source words in the order of each method, by a replacement that the method does not use. Writes faithfulness.json into
the checkpoint's folder and its tables into the card there, without any sentence. Processes of torchrun share the
sentences, with the same result.
"""

from __future__ import annotations

import argparse
import textwrap
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from attention_atlas.model.analysis.why.faithfulness import (
    FILE,
    SentenceScores,
    examine_sentence,
    redraw_weights,
    summarise,
)
from attention_atlas.model.analysis.why.means import FILE as MEANS_FILE
from attention_atlas.model.analysis.why.means import Means, load_means, project_sentences
from attention_atlas.model.analysis.why.methods import METHODS, attention
from attention_atlas.model.files import write_json, write_section
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.program import CommandLine, integer, measurement_path, run_program
from attention_atlas.model.serve import processes
from attention_atlas.model.trace.survey.survey import OWN
from attention_atlas.model.trace.why.faithfulness import BAR, MARGIN, Faithfulness, best_method
from attention_atlas.model.training import corpora
from attention_atlas.model.translator import Translator

CARD = "README.md"
HEADING = "## Which picture to believe"
MEASURED = 210  # sentences of each direction
Text = tuple[str, str]  # direction, sentence


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    out = measurement_path(args, FILE)
    with processes.process_group():
        translator = Translator.load(args.checkpoint, args.device)
        check_transformer(translator.model)
        path = args.checkpoint / MEANS_FILE
        means = load_means(path, translator) if path.is_file() else None
        corpus, texts = choose_texts(args, translator)
        sentences = examine_all(translator, texts, means, args.randomised)
        sentences = [sentence for sentence in sentences if sentence is not None]
        if processes.rank() == 0:
            scored_by = "mean embedding of own sentences" if means is not None else "mean embedding of the vocabulary"
            result = Faithfulness(
                translator.name,
                translator.digest,
                translator.directions,
                corpus,
                len(sentences),
                scored_by,
                summarise(sentences),
            )
            if out:
                write_json(out, asdict(result))
            if out and not args.out:
                write_section(args.checkpoint / CARD, section(result))
            print(section(result))


def choose_texts(args: argparse.Namespace, translator: Translator) -> tuple[str, list[Text]]:
    """Return the corpus' name and the sentences that the model can read. Raises ValueError if there are none."""
    if args.sentences:
        lines = args.sentences.read_text(encoding="utf-8").splitlines()
        names, by_direction = [args.sentences.name], {direction: lines for direction in translator.directions}
    elif args.data:
        held_out = {direction: corpora.dev_pairs(args.data, direction) for direction in translator.directions}
        names = dict.fromkeys(name for corpus_names, _ in held_out.values() for name in corpus_names)
        by_direction = {direction: [source for source, _ in pairs] for direction, (_, pairs) in held_out.items()}
    else:
        names, by_direction = [OWN], project_sentences(translator)
    texts = [
        (direction, line)
        for direction, lines in by_direction.items()
        for line in islice(
            (line for line in lines if line.strip() and translator.fits(line, direction)), args.limit or MEASURED
        )
    ]
    if not texts:
        raise ValueError("there are no sentences: name a file with --sentences")
    return ", ".join(names), texts


def examine_all(
    translator: Translator, texts: list[Text], means: Means | None, randomised: int
) -> list[SentenceScores | None]:
    """Return every text's result in order; the processes share the texts."""
    rank, world = processes.rank(), processes.world_size()
    stages = redraw_weights(translator.model) if randomised else []
    mine = {}
    for index in tqdm(range(rank, len(texts), world), unit=" sentences", disable=rank > 0):
        direction, text = texts[index]
        mine[index] = examine_sentence(
            translator, text, direction, means, seed=index, stages=stages if index < randomised else ()
        )
    together = {index: sentence for part in processes.gather(mine) for index, sentence in part.items()}
    return [together[index] for index in range(len(texts))]


def section(result: Faithfulness) -> str:
    """Return the section of a card: the method, the row that leads, and the tables."""
    titles = {slug: method.title for slug, method in METHODS.items()}
    best = best_method(result, raw=attention.RAW.slug)
    bar = f"a median rank correlation of {BAR}, and {MARGIN} more than raw attention's"
    lead = (
        f"No method reached the bar ({bar}), so the page leads with occlusion alone."
        if best is None
        else f"**{titles[best.method]}** agreed best and reached the bar ({bar}): it stands first on the page, and the "
        "others follow in this order."
    )
    parts = [
        HEADING,
        _wrapped(
            f"Measured by `attention-atlas faithfulness` on the weights {result.digest}: of {result.sentences} "
            f"sentences ({result.corpus}) the least certain content word against its runner-up. Agreement: median rank "
            f"correlation with occlusion by another replacement (the {result.scored_by}; occlusion by mean itself with "
            "occlusion by mask). Comprehensiveness (large is good) and sufficiency (small is good): what the log-odds "
            "lose, in nats, without the best words and with them alone, less a random order's. In brackets "
            "95 % bootstrap intervals. " + lead
        ),
        result.markdown(titles),
    ]
    if result.stages:
        parts += [
            _wrapped(
                "How much of a row's order stays when the weights are redrawn, from the top of the decoder "
                "down (median rank correlation with the trained model's row). What stays when everything is "
                "redrawn was never about the model; class-agnostic methods do not see the output projection "
                "and cannot pass:"
            ),
            result.cascade(titles),
        ]
    return "\n\n".join(parts)


def _wrapped(paragraph: str) -> str:
    return textwrap.fill(paragraph, 120, break_long_words=False, break_on_hyphens=False)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("attention-atlas faithfulness", __doc__)
    add = parser.add_argument
    parser.add_checkpoint()
    add("--sentences", type=Path, help="a file, one a line; default: this project's own in the source languages")
    add("--data", type=Path, help="or the dev parts of the corpora in this folder, as for attention-atlas train")
    parser.add_output(f"{FILE}, and the tables in its card", trial=True)
    add("--randomised", type=integer(0), default=20, help="sentences to compare with redrawn weights; default 20")
    args = parser.parse_args(argv)
    if args.sentences and args.data:
        parser.error("--sentences and --data: name one of them")
    return args


if __name__ == "__main__":
    run_program(main)
