// The glossary's entries: one sentence each, the names in papers, and a picture. A picture that `here` marks is of this sentence.
import { say } from "../core/language.js";
import {
  addends,
  arrows,
  bars,
  curves,
  flow,
  graph,
  grid,
  numbers,
  strip,
  strips,
  tokens,
} from "./pictures.js";

/**
 * @typedef {object} Here an answer of page_glossary (viz/wire/glossary.py), or EXAMPLE
 * @property {any[]} source tokens @property {any[]} target tokens
 * @property {{index: number, candidates: {text: string, probability: number}[], entropy: number}} step
 * @property {number[]} surprisals of the target's tokens, in nats
 * @property {Record<string, {rows: string[], columns: string[], weights: (number | null)[][]}>} maps by kind
 * @property {[string, number[]][]} heads rows of several heads of a layer @property {[string, number[]][]} layers
 * @property {string} kind of those heads and layers
 *
 * @typedef {object} Entry
 * @property {import("../core/language.js").Words} [name] the heading, if it depends on the wording (core/wording.js)
 * @property {import("../core/language.js").Words} text one plain sentence
 * @property {string} [papers] its names in papers
 * @property {(here: Here) => Element} picture
 * @property {boolean} [here] whether the picture is of the sentence on the page
 */

const withMarks = (texts) =>
  texts.split(" ").map((text) => ({ text, symbol: /^<.*>$/.test(text) }));

/** What pictures show while nothing is translated. @type {Here} */
export const EXAMPLE = {
  source: withMarks("<2en> ▁der ▁kleine ▁Hund ▁schläft </s>"),
  target: withMarks("▁the ▁little ▁dog ▁sleeps </s>"),
  step: {
    index: 2,
    candidates: [
      { text: "▁dog", probability: 0.91 },
      { text: "▁puppy", probability: 0.05 },
      { text: "▁dogs", probability: 0.02 },
    ],
    entropy: 0.6,
  },
  surprisals: [0.1, 0.7, 0.09, 0.3, 0.02],
  maps: {
    cross: {
      rows: ["the", "little", "dog", "sleeps"],
      columns: ["der", "kleine", "Hund", "schläft"],
      weights: [
        [0.8, 0.1, 0.1, 0],
        [0.1, 0.8, 0.1, 0],
        [0, 0.1, 0.9, 0],
        [0, 0, 0.2, 0.8],
      ],
    },
    encoder_self: {
      rows: ["der", "kleine", "Hund", "schläft"],
      columns: ["der", "kleine", "Hund", "schläft"],
      weights: [
        [0.1, 0.1, 0.8, 0],
        [0.1, 0.1, 0.8, 0],
        [0.3, 0.4, 0.1, 0.2],
        [0, 0, 0.9, 0.1],
      ],
    },
    decoder_self: {
      rows: ["<s>", "the", "little", "dog"],
      columns: ["<s>", "the", "little", "dog"],
      weights: [
        [1, null, null, null],
        [0.5, 0.5, null, null],
        [0.2, 0.5, 0.3, null],
        [0.1, 0.2, 0.4, 0.3],
      ],
    },
  },
  kind: "cross",
  heads: [
    ["1·1", [0, 0.1, 0.9, 0]],
    ["1·2", [0.5, 0.2, 0.2, 0.1]],
    ["1·3", [0, 0, 0.2, 0.8]],
  ],
  layers: [
    ["1·1", [0, 0.1, 0.9, 0]],
    ["2·1", [0.3, 0.3, 0.3, 0.1]],
    ["3·1", [0, 0.6, 0.4, 0]],
  ],
};

const plain = (text) => text.replace("▁", "");
const sides = (here) => [...here.source, ...here.target];
const words = (list) => list.filter(({ symbol }) => !symbol);
const candidates = ({ step }) =>
  step.candidates.slice(0, 4).map(({ text, probability }) => [plain(text), probability]);
const map = (kind) => (here) => grid((here.maps[kind] ? here : EXAMPLE).maps[kind]);
const labelled = (here, row) =>
  row.map((weight, i) => [(here.maps[here.kind] ?? EXAMPLE.maps.cross).columns[i] ?? "", weight]);
const rows = (name) => (here) =>
  strips(here[name].map(([label, row]) => [label, labelled(here, row)]));
const row = (here) => strip(labelled(here, here.heads[0][1]));
const surprisals = (here) =>
  bars(
    words(here.target)
      .slice(0, 6)
      .map(({ text }, i) => [plain(text), here.surprisals[i] / 4, here.surprisals[i].toFixed(2)]),
  );
const marked = (isLit) => (here) =>
  tokens(sides(here).map((token) => ({ ...token, lit: isLit(token) })));
const prefixOf = (here) =>
  tokens(here.target.map((token, i) => ({ ...token, lit: i < here.step.index })));
const links = (here) => {
  const { rows: written, columns, weights } = here.maps[here.kind] ?? EXAMPLE.maps.cross;
  const best = weights
    .slice(0, 4)
    .map((values) =>
      values.reduce((most, value, i) => ((value ?? 0) > (values[most] ?? 0) ? i : most), 0),
    );
  return bars(
    best.map((i, r) => [`${columns[i]} – ${written[r]}`, /** @type {number} */ (weights[r][i])]),
  );
};
const unlabelled = (values) => values.map((value) => ["", value]);
const evenly = (count) => unlabelled([0, 1, 2, 3].map((i) => (i < count ? 1 / count : 0)));
const bell = (middle, width) => (x) => Math.exp(-(((x - middle) / width) ** 2));
const q = [0.8, -0.3, 0.5, -0.9, 0.2, 0.6],
  k = [0.7, -0.1, 0.6, -0.7, -0.2, 0.5],
  x = [0.3, 0.9, -0.4, 0.1, -0.8, 0.5];
const chain = (lit) =>
  graph(
    [
      ["der", 0, 0],
      ["Hund", 0, 1, lit.includes(0)],
      ["1·4", 0.5, 0.1, lit.includes(1)],
      ["2·6", 0.5, 0.9, lit.includes(2)],
      ["dog", 1, 0.5, lit.includes(3)],
    ],
    [
      [0, 2, 0.1],
      [1, 2, lit.includes(1) ? 0.8 : 0.2],
      [1, 3, lit.includes(2) ? 0.8 : 0.2],
      [2, 4, lit.includes(1) ? 0.8 : 0.2],
      [3, 4, lit.includes(2) ? 0.8 : 0.2],
    ],
  );
const withAndWithout = () =>
  bars([
    ["der kleine Hund", 0.91],
    ["der kleine ____", 0.034],
  ]);

/** @type {Record<string, Record<string, Entry>>} group -> term -> entry */
export const ENTRIES = {
  text: {
    token: {
      text: say(
        "A piece of text that the model reads or writes as one unit: a word, a part of a word, or a sign.",
      ),
      papers: "token",
      picture: (here) => tokens(sides(here)),
      here: true,
    },
    piece: {
      name: say("subword"),
      text: say(
        "What a word is made of for the model: a common word is one piece, a rare word is split into several.",
      ),
      papers: "subword, byte-pair encoding (Sennrich et al. 2016), SentencePiece",
      picture: (here) => tokens(words(sides(here))),
      here: true,
    },
    special: {
      text: say(
        "Tokens that the model adds to the text: the language to write, the start and the end. Idle heads often rest on them.",
      ),
      papers: "BOS, EOS, language token",
      picture: marked(({ symbol }) => symbol),
      here: true,
    },
    vocabulary: {
      text: say(
        "The list of all tokens that the model knows; it picks each next token from this list.",
      ),
      papers: "vocabulary, V",
      picture: (here) => bars(candidates(here)),
      here: true,
    },
    prefix: {
      text: say("The words already written, which the model reads before it writes the next one."),
      papers: "prefix, y<t",
      picture: prefixOf,
      here: true,
    },
    source: {
      text: say("The sentence that the model reads and is to translate."),
      papers: "source sequence, x",
      picture: (here) => tokens(here.source),
      here: true,
    },
    target: {
      text: say("The sentence that the model writes: the translation."),
      papers: "target sequence, y",
      picture: (here) => tokens(here.target),
      here: true,
    },
    byte: {
      text: say(
        "A number from 0 to 255; a character that is not in the vocabulary is written as one to four of them.",
      ),
      papers: "byte fallback",
      picture: () =>
        tokens([
          { text: "é" },
          { text: "→" },
          { text: "‹C3›", lit: true },
          { text: "‹A9›", lit: true },
        ]),
    },
    ngram: {
      text: say("Several words in a row: “the dog” is a 2-gram."),
      papers: "n-gram",
      picture: (here) => tokens(words(here.target).map((token, i) => ({ ...token, lit: i < 2 }))),
      here: true,
    },
  },
  model: {
    transformer: {
      text: say(
        "A network in which every word reads all others by attention, instead of passing them along one by one.",
      ),
      papers: "Transformer (Vaswani et al. 2017)",
      picture: () => flow([say("Encoder"), say("Decoder")], [0, 1]),
    },
    encoder: {
      text: say("The half of the model that reads the sentence, all words at once."),
      papers: "encoder",
      picture: () => flow([say("Encoder"), say("Decoder")], [0]),
    },
    decoder: {
      text: say("The half of the model that writes the translation, one token at a time."),
      papers: "decoder",
      picture: () => flow([say("Encoder"), say("Decoder")], [1]),
    },
    layer: {
      text: say(
        "One of several rounds in which the model works, one after the other; each has heads and a feed-forward of its own.",
      ),
      papers: "layer, block",
      picture: rows("layers"),
      here: true,
    },
    embedding: {
      text: say(
        "The list of numbers with which the model starts for a token; similar tokens have similar numbers.",
      ),
      papers: "token embedding",
      picture: () =>
        numbers([
          ["Hund", q],
          ["Katze", k],
          ["weil", x],
        ]),
    },
    vector: {
      text: say(
        "A list of numbers; the model has one for each token, and changes it layer by layer.",
      ),
      papers: "hidden state, representation",
      picture: () => numbers([["Hund", q]]),
    },
    dimension: {
      text: say("One place in a vector: a vector of 256 numbers has 256 dimensions."),
      papers: "dimension, d_model",
      picture: () => numbers([["1 … 6", q]]),
    },
    matrix: {
      text: say("A table of numbers; multiplying a vector by it gives another vector."),
      papers: "weight matrix, W",
      picture: () =>
        numbers([
          ["", q],
          ["", k],
          ["", x],
        ]),
    },
    projection: {
      text: say(
        "A multiplication by a learned matrix, which turns one vector into another, such as a query.",
      ),
      papers: "linear projection, W_Q, W_K, W_V, W_O",
      picture: () => flow(["x", "× W", "q"], [1]),
    },
    position: {
      text: say(
        "Numbers that tell the model where a token stands; without them it would not know the order of the words.",
      ),
      papers: "positional encoding, sinusoidal or learned",
      picture: () =>
        curves(
          [(at) => 0.5 + 0.45 * Math.sin(19 * at), (at) => 0.5 + 0.45 * Math.sin(6 * at)],
          ["1", "20"],
        ),
    },
    residual: {
      name: say("residual stream"),
      text: say(
        "The vector of each position that runs through the model: every part reads it and adds to it.",
      ),
      papers: "residual stream (Elhage et al. 2021)",
      picture: () => flow(["x", "+ attn", "+ ffn", "…"], [1, 2]),
    },
    norm: {
      text: say(
        "Brings each vector to mean 0 and variance 1, so that no layer gets numbers too large or too small.",
      ),
      papers: "layer normalization (Ba et al. 2016), RMSNorm",
      picture: () =>
        numbers([
          ["x", [0.2, 1, 0.7, 0.1, 0.9, 0.4]],
          ["→", [-0.7, 0.9, 0.3, -0.9, 0.7, -0.3]],
        ]),
    },
    feedforward: {
      text: say(
        "The part of a layer that works on each token by itself, with a wide row of neurons inside.",
      ),
      papers: "position-wise feed-forward network, FFN, MLP",
      picture: () =>
        numbers([
          ["x", q],
          ["", [0, 0.9, 0, 0, 0.4, 0, 0, 0.7, 0, 0, 0, 0.2]],
          ["+", k],
        ]),
    },
    neuron: {
      text: say("One number inside a feed-forward; most are at zero for most tokens."),
      papers: "neuron, hidden unit",
      picture: () => numbers([["", [0, 0.9, 0, 0, 0.4, 0, 0, 0.7, 0, 0, 0, 0.2]]]),
    },
    relu: {
      text: say("Turns every number below zero into zero and keeps the others."),
      papers: "rectified linear unit",
      picture: () => curves([(at) => Math.max(0.02, 1.9 * (at - 0.5))], ["−", "+"]),
    },
    bias: {
      text: say("A learned number that is always added, whatever the input is."),
      papers: "bias, b; relative position bias (Raffel et al. 2020)",
      picture: () => flow(["x", "× W", "+ b"], [2]),
    },
    parameter: {
      text: say("One of the numbers that training sets; they are the same for every sentence."),
      papers: "parameter, weight, θ",
      picture: () => flow(["x", "W", "y"], [1]),
    },
    activation: {
      text: say(
        "A number that the model computes for this sentence, unlike a parameter, which is the same for all.",
      ),
      papers: "activation",
      picture: () => flow(["x", "W", "y"], [0, 2]),
    },
    checkpoint: {
      text: say("A file with all parameters of a model at one moment of its training."),
      papers: "checkpoint",
      picture: () => curves([(at) => 0.9 * Math.exp(-4 * at) + 0.08], ["0", "★"]),
    },
    memory: {
      text: say(
        "The last vectors of the encoder, which the decoder reads again for each word that it writes.",
      ),
      papers: "memory, encoder states",
      picture: () => flow([say("Encoder"), "M", say("Decoder")], [1]),
    },
    cache: {
      text: say(
        "Keeps the keys and values of earlier tokens, so that each step computes only one new row.",
      ),
      papers: "KV cache",
      picture: () =>
        grid(
          {
            rows: ["", "", "", ""],
            columns: ["", "", "", ""],
            weights: [
              [0.3, null, null, null],
              [0.3, 0.3, null, null],
              [0.3, 0.3, 0.3, null],
              [1, 1, 1, 1],
            ],
          },
          3,
        ),
    },
    recurrent: {
      text: say(
        "A network that reads word by word and passes one vector along, as was usual before the Transformer.",
      ),
      papers: "RNN, sequence to sequence with attention (Bahdanau et al. 2015)",
      picture: () => flow(["der", "Hund", "schläft"], [0, 1, 2]),
    },
    gru: {
      text: say(
        "A recurrent network whose gates decide, number by number, what to keep and what to replace.",
      ),
      papers: "gated recurrent unit (Cho et al. 2014)",
      picture: () =>
        numbers([
          ["h", q],
          ["z", [0.9, 0, 0.8, 0.1, 0, 0.9]],
          ["h′", [0.8, 0.9, 0.5, 0, -0.8, 0.6]],
        ]),
    },
  },
  attention: {
    attention: {
      text: say(
        "While the model works on a word, it takes information from other words; attention says how much from each.",
      ),
      papers:
        "attention (Bahdanau et al. 2015), scaled dot-product attention (Vaswani et al. 2017)",
      picture: row,
      here: true,
    },
    weight: {
      text: say("The share of one word in what a head takes: the weights of a row add up to 100%."),
      papers: "attention weight, α",
      picture: row,
      here: true,
    },
    head: {
      text: say(
        "One of several attentions side by side in a layer, each with queries, keys and values of its own.",
      ),
      papers: "attention head, multi-head attention",
      picture: rows("heads"),
      here: true,
    },
    query: {
      text: say("What a position is looking for: a vector that is compared with every key."),
      papers: "query, q = x W_Q",
      picture: () =>
        arrows([
          [0.8, 0.8, "q", true],
          [1, 0.5, "k₁"],
          [-0.7, 0.6, "k₂"],
        ]),
    },
    key: {
      text: say("What a position offers to be found by: a vector that queries are compared with."),
      papers: "key, k = x W_K",
      picture: () =>
        arrows([
          [0.8, 0.8, "q"],
          [1, 0.5, "k₁", true],
          [-0.7, 0.6, "k₂", true],
        ]),
    },
    value: {
      text: say("What a position hands over to whoever attends to it."),
      papers: "value, v = x W_V",
      picture: () =>
        graph(
          [
            ["v₁", 0, 0, true],
            ["v₂", 0, 1, true],
            ["Σ α v", 1, 0.5],
          ],
          [
            [0, 2, 0.9],
            [1, 2, 0.1],
          ],
        ),
    },
    dot: {
      text: say(
        "Two vectors multiplied number by number and added up: large if they point the same way.",
      ),
      papers: "dot product, q · k",
      picture: () =>
        numbers([
          ["q", q],
          ["k", k],
          ["q × k", q.map((value, i) => value * k[i])],
        ]),
    },
    softmax: {
      text: say(
        "Turns scores into shares that add up to 100%; a small lead of a score becomes a large one.",
      ),
      papers: "softmax, eˣ ÷ Σ eˣ",
      picture: () =>
        bars([
          ["2.0", 0.66],
          ["1.0", 0.24],
          ["0.1", 0.1],
        ]),
    },
    cross: {
      text: say(
        "The translation looks at the sentence: each word that is written reads the words of the source.",
      ),
      papers: "encoder-decoder attention, cross-attention",
      picture: map("cross"),
      here: true,
    },
    encoderself: {
      text: say("The sentence looks at itself: each of its words reads all the others."),
      papers: "encoder self-attention",
      picture: map("encoder_self"),
      here: true,
    },
    decoderself: {
      text: say("The translation looks back at itself: each word reads those before it."),
      papers: "masked decoder self-attention",
      picture: map("decoder_self"),
      here: true,
    },
    self: {
      text: say("Attention within one text: words read other words of the same sentence."),
      papers: "self-attention, intra-attention",
      picture: map("encoder_self"),
      here: true,
    },
    mask: {
      text: say("Closes cells that must not be read: padding, and words that are not written yet."),
      papers: "causal mask, look-ahead mask, padding mask",
      picture: map("decoder_self"),
      here: true,
    },
    padding: {
      text: say(
        "Empty tokens that bring all sentences of a batch to one length; the model never reads them.",
      ),
      papers: "padding",
      picture: () =>
        tokens([
          { text: "der" },
          { text: "Hund" },
          { text: "</s>" },
          { text: "<pad>", lit: true },
          { text: "<pad>", lit: true },
        ]),
    },
    sink: {
      text: say(
        "A token on which a head parks its weight when it has nothing to do, often a special token.",
      ),
      papers: "attention sink (Xiao et al. 2024)",
      picture: () =>
        strip([
          ["<s>", 0.9],
          ["the", 0.04],
          ["dog", 0.03],
          ["runs", 0.03],
        ]),
    },
    alignment: {
      text: say("Which words of the two sentences translate each other."),
      papers: "word alignment",
      picture: links,
      here: true,
    },
    linking: {
      text: say("A head of the cross-attention that looks at the word that is being translated."),
      papers: "alignment head",
      picture: map("cross"),
      here: true,
    },
    induction: {
      text: say(
        "Finds the place where the same token stood before, and looks at what came next there.",
      ),
      papers: "induction head (Olsson et al. 2022)",
      picture: () =>
        tokens([
          { text: "A" },
          { text: "B", lit: true },
          { text: "…" },
          { text: "A" },
          { text: "→ B", lit: true },
        ]),
    },
    additive: {
      text: say(
        "The first kind of attention: a small network scores each pair of vectors, instead of a dot product.",
      ),
      papers: "additive attention (Bahdanau et al. 2015), vᵀ tanh(W s + U h)",
      picture: () => flow(["s + h", "tanh", "v ·"], [1]),
    },
  },
  choice: {
    probability: {
      text: say("How sure the model is of each possible next token; all of them add up to 100%."),
      papers: "p(y | x, y<t)",
      picture: (here) => bars(candidates(here)),
      here: true,
    },
    logprobability: {
      text: say(
        "The logarithm of a probability: 0 if certain, lower if less likely; those of the tokens add up to that of the sentence.",
      ),
      papers: "log-probability, log p",
      picture: (here) =>
        bars(
          candidates(here).map(([name, p]) => [
            name,
            -Math.log(p) / 8,
            Math.log(p).toFixed(2).replace("-", "−"),
          ]),
        ),
      here: true,
    },
    logit: {
      text: say("A score for each token, before softmax turns all of them into probabilities."),
      papers: "logit",
      picture: () =>
        bars([
          ["dog", 1, "12.1"],
          ["puppy", 0.76, "9.2"],
          ["dogs", 0.69, "8.3"],
        ]),
    },
    entropy: {
      text: say(
        "How widely something is spread, in bits: 0 for all in one place, 1 for evenly in two.",
      ),
      papers: "Shannon entropy, H = −Σ p log₂ p",
      picture: () =>
        strips([
          ["0", evenly(1)],
          ["2", evenly(4)],
        ]),
    },
    bit: {
      text: say("A unit of information: one bit is a choice between two equally likely things."),
      papers: "bit, log₂",
      picture: () =>
        strips([
          ["0", evenly(1)],
          ["1", evenly(2)],
        ]),
    },
    nat: {
      text: say("A unit of log-probability: one nat more is 2.7 times as likely."),
      papers: "nat, natural logarithm",
      picture: () =>
        bars([
          ["0", 0.9],
          ["−1", 0.9 / Math.E],
          ["−2", 0.9 / Math.E ** 2],
        ]),
    },
    rank: {
      text: say(
        "A token’s place among all tokens when the most probable comes first: rank 1 is the model’s favourite.",
      ),
      papers: "rank",
      picture: (here) => bars(candidates(here).map(([name, p], i) => [`${i + 1}. ${name}`, p])),
      here: true,
    },
    runnerup: {
      text: say(
        "The second most probable token at a step: what the model would have written instead.",
      ),
      papers: "runner-up, top-2 candidate",
      picture: (here) => bars(candidates(here).slice(0, 2)),
      here: true,
    },
    decoding: {
      text: say("How the model’s probabilities become a text, one token after the other."),
      papers: "decoding, inference",
      picture: prefixOf,
      here: true,
    },
    greedy: {
      text: say("Always takes the most probable next token, and never looks back."),
      papers: "greedy decoding",
      picture: (here) => bars(candidates(here)),
      here: true,
    },
    beam: {
      text: say(
        "Follows several beginnings of the translation at once, and keeps the most probable ones at each step.",
      ),
      papers: "beam search",
      picture: () =>
        graph(
          [
            ["<s>", 0, 0.5, true],
            ["the", 0.5, 0, true],
            ["a", 0.5, 1, true],
            ["dog", 1, 0, true],
            ["pup", 1, 1],
          ],
          [
            [0, 1, 0.9],
            [0, 2, 0.6],
            [1, 3, 0.9],
            [2, 4, 0.1],
          ],
        ),
    },
    penalty: {
      text: say(
        "Makes up for the fact that every further token makes a translation less probable, so that short ones do not always win.",
      ),
      papers: "length penalty, α (Wu et al. 2016)",
      picture: () => curves([(at) => 0.95 - 0.8 * at, (at) => 0.95 - 0.35 * at], ["1", "20"]),
    },
    temperature: {
      text: say("Flattens the probabilities if it is above 1, and sharpens them if it is below 1."),
      papers: "temperature, softmax(z / T)",
      picture: () =>
        strips([
          ["T = ½", unlabelled([0.93, 0.06, 0.01, 0])],
          ["T = 1", unlabelled([0.7, 0.18, 0.08, 0.04])],
          ["T = 2", unlabelled([0.44, 0.25, 0.17, 0.14])],
        ]),
    },
    forced: {
      name: say("forced decoding"),
      text: say(
        "The model must write given words, and we read off how probable it found each of them.",
      ),
      papers: "forced decoding",
      picture: surprisals,
      here: true,
    },
  },
  why: {
    occlusion: {
      name: say("occlusion"),
      text: say(
        "Hide one word from the model, let it try again, and see how much less likely the translated word becomes.",
      ),
      papers: "occlusion (Zeiler and Fergus 2014), leave-one-out",
      picture: withAndWithout,
    },
    ablation: {
      name: say("ablation"),
      text: say("Switch a part of the model off and see what changes: what suffers needed it."),
      papers: "ablation, knock-out",
      picture: () => chain([2]),
    },
    patching: {
      name: say("activation patching"),
      text: say(
        "Copy one part’s numbers from one run of the model into another, and see whether the answer follows.",
      ),
      papers: "activation patching, causal tracing (Meng et al. 2022)",
      picture: () =>
        graph(
          [
            ["Hund", 0, 0, true],
            ["h", 0.5, 0, true],
            ["dog", 1, 0, true],
            ["Katze", 0, 1],
            ["h", 0.5, 1, true],
            ["dog", 1, 1, true],
          ],
          [
            [0, 1],
            [1, 2],
            [3, 4, 0.1],
            [4, 5, 0.9],
            [1, 4, 0.9],
          ],
        ),
    },
    gradient: {
      name: say("gradient"),
      text: say("How much the result changes if an input changes by a tiny amount."),
      papers: "gradient, saliency",
      picture: () =>
        curves([(at) => 0.15 + 0.8 * at ** 2, (at) => 0.35 + 0.96 * (at - 0.5)], ["x", ""]),
    },
    integrated: {
      name: say("integrated gradients"),
      text: say(
        "Fades a word in from nothing and adds up the gradients on the way, so that the shares add up to the whole effect.",
      ),
      papers: "integrated gradients (Sundararajan et al. 2017)",
      picture: () =>
        strip([
          ["0", 0.05],
          ["¼", 0.25],
          ["½", 0.5],
          ["¾", 0.75],
          ["1", 1],
        ]),
    },
    attnlrp: {
      text: say(
        "Hands the result back from layer to layer, split over everything that contributed to it, down to the words.",
      ),
      papers: "AttnLRP (Achtibat et al. 2024), layer-wise relevance propagation",
      picture: () => chain([0, 1, 2, 3]),
    },
    alti: {
      text: say(
        "Follows how much of each word is in every vector, layer by layer, up to the word that is written.",
      ),
      papers: "ALTI+ (Ferrando et al. 2022)",
      picture: () => chain([0, 1, 3]),
    },
    rollout: {
      name: say("attention rollout"),
      text: say(
        "Multiplies the attention of all layers, as if nothing but attention carried information.",
      ),
      papers: "attention rollout (Abnar and Zuidema 2020)",
      picture: () => flow(["A₁", "× A₂", "× A₃"], [0, 1, 2]),
    },
    normbased: {
      text: say(
        "Counts how long the vector is that a head takes from a word, not only how large its attention weight is.",
      ),
      papers: "norm-based analysis (Kobayashi et al. 2020)",
      picture: () =>
        arrows([
          [0.9, 0.2, "0.3 v₁", true],
          [-0.3, 0.3, "0.7 v₂"],
        ]),
    },
    contribution: {
      text: say(
        "The part of a number that is due to one thing; all contributions add up to the number.",
      ),
      papers: "direct logit attribution",
      picture: () =>
        addends([
          ["2·3", 0.7],
          ["3·1", 0.3],
          ["FFN", -0.25],
        ]),
    },
    contrast: {
      text: say("Why this word rather than that one? What both words have in common drops out."),
      papers: "contrastive explanation (Yin and Neubig 2022)",
      picture: (here) => bars(candidates(here).slice(0, 2)),
      here: true,
    },
    proxy: {
      text: say(
        "A number that often goes with the answer but is not a measurement of it; attention is one.",
      ),
      papers: "proxy; attention is not explanation (Jain and Wallace 2019)",
      picture: row,
      here: true,
    },
    faithfulness: {
      text: say(
        "Whether an explanation names what the model really used: without its words the answer should fall, with them alone it should stay.",
      ),
      papers: "faithfulness, comprehensiveness and sufficiency (DeYoung et al. 2020)",
      picture: () =>
        curves([(at) => 0.95 * Math.exp(-5 * at), (at) => 0.95 - 0.8 * at], ["0", "n"]),
    },
    lens: {
      name: say("logit lens"),
      text: say("Reads off what the model would write if it stopped after an early layer."),
      papers: "logit lens (nostalgebraist 2020)",
      picture: () => flow(["…", "the", "pet", "dog"], [3]),
    },
    tuned: {
      text: say(
        "A lens with a learned correction for each layer, so that early layers are read more truly.",
      ),
      papers: "tuned lens (Belrose et al. 2023)",
      picture: () => flow(["…", "pet", "dog", "dog"], [2, 3]),
    },
    circuit: {
      text: say(
        "The few connections between parts that are enough for one behaviour of the model.",
      ),
      papers: "circuit (Elhage et al. 2021)",
      picture: () => chain([0, 2, 3]),
    },
    edge: {
      text: say("A connection through which one part reads what another one has written."),
      papers: "edge; edge attribution patching, EAP-IG (Hanna et al. 2024)",
      picture: () =>
        graph(
          [
            ["1·4", 0, 0.5, true],
            ["2·6", 1, 0.5, true],
          ],
          [[0, 1, 0.9]],
          40,
        ),
    },
    steering: {
      text: say(
        "Adds a direction to the model’s vectors, so that what it writes changes in meaning.",
      ),
      papers: "activation steering",
      picture: () =>
        arrows([
          [0.3, 0.9, "x"],
          [1, 0.4, "x + d", true],
          [0.7, -0.35, "d"],
        ]),
    },
    dictionary: {
      text: say(
        "Describes each vector as a sum of a few units out of many, which are easier to name than neurons.",
      ),
      papers: "sparse autoencoder, dictionary learning (Bricken et al. 2023)",
      picture: () =>
        numbers([
          ["x", q],
          ["", [0, 0, 0, 0.9, 0, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0, 0]],
        ]),
    },
  },
  training: {
    loss: {
      text: say("How surprised the model is by the right next token; training makes it smaller."),
      papers: "loss, negative log-likelihood",
      picture: () => curves([(at) => 0.9 * Math.exp(-4 * at) + 0.08], ["0", "t"]),
    },
    crossentropy: {
      text: say("The mean surprise over all tokens: the number that training makes small."),
      papers: "cross-entropy",
      picture: surprisals,
      here: true,
    },
    surprisal: {
      name: say("surprisal"),
      text: say("How unexpected a token was to the model: minus the logarithm of its probability."),
      papers: "surprisal, −log p",
      picture: surprisals,
      here: true,
    },
    perplexity: {
      text: say("Among how many equally likely tokens the model hesitates, on average."),
      papers: "perplexity, e to the power of the mean loss",
      picture: () =>
        bars([
          ["2", 0.5],
          ["4", 0.25],
          ["8", 0.125],
        ]),
    },
    batch: {
      text: say("The sentences that the model learns from in one step."),
      papers: "batch",
      picture: () =>
        grid({
          rows: ["1", "2", "3"],
          columns: ["", "", "", "", "", ""],
          weights: [
            [0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
            [0.5, 0.5, 0.5, null, null, null],
            [0.5, 0.5, 0.5, 0.5, null, null],
          ],
        }),
    },
    update: {
      text: say(
        "One small change of all parameters during training, which lowers the loss on one batch.",
      ),
      papers: "update, optimization step",
      picture: () => flow(["batch", "loss", "Δθ"], [2]),
    },
    optimiser: {
      text: say("The rule by which training turns gradients into a change of the parameters."),
      papers: "optimizer: SGD, Adam (Kingma and Ba 2015)",
      picture: () => curves([(at) => 0.1 + 3 * (at - 0.55) ** 2], ["θ", ""]),
    },
    teacher: {
      text: say(
        "In training the model always reads the right words so far, whatever it would have written itself.",
      ),
      papers: "teacher forcing",
      picture: prefixOf,
      here: true,
    },
    smoothing: {
      text: say(
        "Training asks for a little less than 100% of the right token, so that the model does not become too sure.",
      ),
      papers: "label smoothing (Szegedy et al. 2016)",
      picture: () =>
        bars([
          ["dog", 0.9],
          ["…", 0.1],
        ]),
    },
    dropout: {
      text: say(
        "Sets random numbers to zero during training, so that the model does not rely on any single one.",
      ),
      papers: "dropout (Srivastava et al. 2014)",
      picture: () =>
        numbers([
          ["x", q],
          ["", q.map((value, i) => (i % 3 === 1 ? 0 : value))],
        ]),
    },
    warmup: {
      text: say(
        "The first updates of a training are small and grow step by step, so that it does not go astray.",
      ),
      papers: "learning-rate warm-up",
      picture: () =>
        curves([(at) => (at < 0.25 ? 3.6 * at : 0.9 * Math.sqrt(0.25 / at))], ["0", "t"]),
    },
    seed: {
      text: say(
        "The number that random choices start from: the same seed gives the same result again.",
      ),
      papers: "random seed",
      picture: () => flow(["1", "▦ ▤ ▥"], [0]),
    },
    corpus: {
      text: say("A collection of texts, here of sentences with their translations."),
      papers: "parallel corpus",
      picture: () =>
        bars([
          ["der Hund – the dog", 1, ""],
          ["das Haus – the house", 1, ""],
          ["…", 1, ""],
        ]),
    },
    heldout: {
      text: say(
        "Sentences that were kept out of training, to see whether what was learned holds for new ones.",
      ),
      papers: "held-out set, validation set, test set",
      picture: () =>
        strip([
          ["", 0.4],
          ["", 0.4],
          ["", 0.4],
          ["", 0.4],
          ["✓", 1],
        ]),
    },
  },
  measures: {
    cosine: {
      text: say(
        "How alike the directions of two vectors are: 1 if they are the same, 0 if they have nothing in common.",
      ),
      papers: "cosine similarity",
      picture: () =>
        arrows([
          [0.9, 0.6, "0.98", true],
          [1, 0.35, "", true],
          [-0.7, 0.9, "0"],
        ]),
    },
    cka: {
      text: say(
        "How alike two sets of vectors are, from 0 to 1, even if one is turned or stretched.",
      ),
      papers: "centered kernel alignment (Kornblith et al. 2019)",
      picture: () =>
        numbers([
          ["A", q],
          ["B", [...q].reverse()],
        ]),
    },
    divergence: {
      text: say("How different two distributions are: 0 if they are the same."),
      papers: "Kullback-Leibler divergence, Jensen-Shannon divergence",
      picture: () => curves([bell(0.35, 0.14), bell(0.6, 0.18)]),
    },
    auroc: {
      text: say(
        "How well a sign tells right from wrong: 1 if always, 0.5 if no better than chance.",
      ),
      papers: "area under the ROC curve",
      picture: () => curves([(at) => Math.sqrt(at) * 0.95, (at) => at * 0.95], ["0", "1"]),
    },
    bleu: {
      text: say(
        "How many words, and groups of words, a translation shares with one made by a person, from 0 to 100.",
      ),
      papers: "BLEU (Papineni et al. 2002)",
      picture: () =>
        tokens([
          { text: "the", lit: true },
          { text: "small" },
          { text: "dog", lit: true },
          { text: "sleeps", lit: true },
        ]),
    },
    chrf: {
      text: say(
        "Like BLEU, but it compares groups of letters, so that a wrong ending costs less than a wrong word.",
      ),
      papers: "chrF (Popović 2015)",
      picture: () => tokens([..."sleeps"].map((text, i) => ({ text, lit: i < 5 }))),
    },
    aer: {
      text: say(
        "How often a head’s strongest links differ from those that people marked: 0 if never.",
      ),
      papers: "alignment error rate, AER (Och and Ney 2003)",
      picture: links,
      here: true,
    },
    precision: {
      text: say(
        "Precision is how much of what was found is right; recall is how much of what is right was found.",
      ),
      papers: "precision and recall",
      picture: () =>
        bars([
          ["P", 0.8],
          ["R", 0.6],
        ]),
    },
    correlation: {
      text: say(
        "How closely two rows of numbers rise and fall together: 1 if always, 0 if not at all.",
      ),
      papers: "Pearson, Spearman or Kendall correlation",
      picture: () =>
        curves([
          (at) => 0.2 + 0.6 * at + 0.08 * Math.sin(20 * at),
          (at) => 0.1 + 0.6 * at - 0.06 * Math.sin(17 * at),
        ]),
    },
    interval: {
      text: say(
        "The range in which a number would probably lie if it were measured again on other sentences.",
      ),
      papers: "confidence interval, bootstrap",
      picture: () => curves([bell(0.5, 0.16)], ["2.5%", "97.5%"]),
    },
    deviation: {
      text: say("How far numbers usually lie from their mean; its square is the variance."),
      papers: "standard deviation, σ",
      picture: () => curves([bell(0.5, 0.1), bell(0.5, 0.25)], ["−σ", "+σ"]),
    },
    median: {
      text: say("The number in the middle: half of the others are smaller, half are larger."),
      papers: "median",
      picture: () =>
        strip([
          ["1", 0.1],
          ["2", 0.2],
          ["3", 1],
          ["8", 0.5],
          ["20", 0.7],
        ]),
    },
  },
  marks: {
    space: {
      text: say("A space before the piece: a word begins here. Pieces without it continue a word."),
      papers: "SentencePiece’s meta symbol",
      picture: (here) =>
        tokens(words(sides(here)).map((token) => ({ ...token, lit: token.text.startsWith("▁") }))),
      here: true,
    },
    start: {
      text: say(
        "The start symbol: the first thing that the decoder reads, before there is a word.",
      ),
      papers: "BOS, beginning of sequence",
      picture: (here) => tokens([{ text: "<s>", symbol: true, lit: true }, ...here.target]),
      here: true,
    },
    end: {
      text: say(
        "The end of the sentence; when the decoder writes it, the translation is finished.",
      ),
      papers: "EOS, end of sequence",
      picture: marked(({ text }) => text === "</s>"),
      here: true,
    },
    language: {
      text: say("The language symbol: it tells a model of several languages which one to write."),
      papers: "language token (Johnson et al. 2017)",
      picture: marked(({ text, symbol }) => symbol && text !== "</s>"),
      here: true,
    },
    pad: {
      text: say("The padding symbol: an empty place behind a short sentence, which nobody reads."),
      papers: "padding token",
      picture: () => tokens([{ text: "Hund" }, { text: "</s>" }, { text: "<pad>", lit: true }]),
    },
    codepoint: {
      text: say("A byte of a character that is not in the vocabulary."),
      papers: "byte fallback",
      picture: () =>
        tokens([
          { text: "é" },
          { text: "→" },
          { text: "‹C3›", lit: true },
          { text: "‹A9›", lit: true },
        ]),
    },
    task: {
      text: say("Words that are put before the sentence to tell the model what to do."),
      papers: "task prefix (Raffel et al. 2020)",
      picture: () =>
        tokens([
          { text: "⟨translate⟩", lit: true },
          { text: "⟨:⟩", lit: true },
          { text: "der" },
          { text: "Hund" },
        ]),
    },
    place: {
      text: say("A head: the number of its layer, then its own number in that layer."),
      papers: "layer.head, L3H5",
      picture: rows("heads"),
      here: true,
    },
    best: {
      text: say(
        "The best of its kind: the head, or the heads together, that were measured to do something best.",
      ),
      picture: () => tokens([{ text: "3·5 ★", lit: true }, { text: "3·6" }, { text: "3·7" }]),
    },
    readlink: {
      text: say("How well a head links the word that was just read with its word in the source."),
      papers: "alignment at the input token",
      picture: () =>
        graph(
          [
            ["Hund", 0, 0, true],
            ["schläft", 0, 1],
            ["dog", 1, 0, true],
            ["sleeps", 1, 1],
          ],
          [[0, 2, 0.9]],
        ),
    },
    nextlink: {
      text: say("How well a head links the word that is written next with its word in the source."),
      papers: "alignment at the output token",
      picture: () =>
        graph(
          [
            ["Hund", 0, 0],
            ["schläft", 0, 1, true],
            ["dog", 1, 0],
            ["sleeps", 1, 1, true],
          ],
          [[1, 3, 0.9]],
        ),
    },
    arrow: {
      text: say(
        "Left of the arrow is the token that a row reads, right of it the one that it writes.",
      ),
      picture: () => tokens([{ text: "small → dog", lit: true }]),
    },
    plusminus: {
      text: say("How far the number may be off, up or down."),
      picture: () => curves([bell(0.5, 0.16)], ["−", "+"]),
    },
    norms: {
      text: say("The length of the vector between the lines."),
      papers: "Euclidean norm",
      picture: () => arrows([[0.9, 0.7, "‖v‖", true]]),
    },
    product: {
      text: say("Times: one number multiplied by another; in a shape, rows times columns."),
      picture: () =>
        grid({
          rows: ["", ""],
          columns: ["", "", ""],
          weights: [
            [0.5, 0.5, 0.5],
            [0.5, 0.5, 0.5],
          ],
        }),
    },
    sum: {
      text: say("The sum of everything that follows the sign."),
      picture: () =>
        addends([
          ["a", 0.4],
          ["b", 0.3],
          ["Σ", 0.7],
        ]),
    },
    power: {
      text: say(
        "2.718… to the power of x: every number becomes positive, and large ones much larger.",
      ),
      papers: "exponential function, exp",
      picture: () => curves([(at) => 0.02 * Math.exp(3.9 * at)], ["−", "+"]),
    },
    log: {
      text: say("The logarithm: which power of 2.718… gives the number; log₂ is the same for 2."),
      papers: "natural logarithm",
      picture: () => curves([(at) => 0.62 + 0.25 * Math.log(at + 0.02)], ["0", "1"]),
    },
    transpose: {
      text: say("A matrix turned over: its rows become columns."),
      papers: "transpose",
      picture: () => flow(["2 × 3", "ᵀ", "3 × 2"], [1]),
    },
    dk: {
      text: say(
        "How many numbers a query or a key has; scores are divided by the root of that, so that they do not grow with it.",
      ),
      papers: "d_k (Vaswani et al. 2017)",
      picture: () => numbers([["d_k", q]]),
    },
    wo: {
      text: say(
        "The learned matrices of attention: three make queries, keys and values, and W_O combines what the heads found.",
      ),
      papers: "W_Q, W_K, W_V, W_O",
      picture: () =>
        graph(
          [
            ["x", 0, 0.5],
            ["q", 0.5, 0, true],
            ["k", 0.5, 0.5, true],
            ["v", 0.5, 1, true],
            ["W_O", 1, 0.5, true],
          ],
          [
            [0, 1],
            [0, 2],
            [0, 3],
            [1, 4],
            [2, 4],
            [3, 4],
          ],
          110,
        ),
    },
    infinity: {
      text: say("Less than any number: after the softmax its weight is exactly zero."),
      papers: "masked score",
      picture: () =>
        bars([
          ["1.0", 0.73],
          ["0.0", 0.27],
          ["−∞", 0, "0%"],
        ]),
    },
    approximately: {
      text: say("About: the number is rounded."),
      picture: () => bars([["≈", 0.67, "0.67"]]),
    },
    verdict: {
      text: say("Whether a check was passed or failed."),
      picture: () => tokens([{ text: "✓", lit: true }, { text: "✗" }]),
    },
  },
};

/** Headings of the groups. @type {Record<string, import("../core/language.js").Words>} */
export const GROUPS = {
  text: say("Words and pieces"),
  model: say("The model"),
  attention: say("Attention"),
  choice: say("Choosing the next word"),
  why: say("Why: tests and methods"),
  training: say("Training"),
  measures: say("Measures"),
  marks: say("Marks and signs"),
};
