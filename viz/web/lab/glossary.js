// Terms of the glossary: where a panel first uses one, it is a button that opens its entry. The entries, their pictures and the
// glossary's page (../glossary/) are loaded when the first of them is needed.
import { addWords, say, toText } from "../core/language.js";
import { el, loadOnce } from "../core/dom.js";
import { pageLink } from "../core/links.js";

// Term -> its spellings, separated by |; the last is the glossary's heading.
export const TERMS = {
  // words and pieces
  token: say("tokens|token"),
  piece: say("subwords|pieces|subword|piece"),
  special: say("special tokens|special token"),
  vocabulary: say("vocabularies|vocabulary"),
  prefix: say("prefixes|prefix"),
  source: say("source"),
  target: say("target"),
  byte: say("bytes|byte"),
  ngram: say("n-grams|n-gram"),
  // the model
  transformer: say("Transformers|Transformer"),
  encoder: say("encoders|encoder"),
  decoder: say("decoders|decoder"),
  layer: say("sub-layers|sub-layer|layers|layer"),
  embedding: say("embeddings|embedding"),
  vector: say("vectors|vector"),
  dimension: say("dimensions|dimension"),
  matrix: say("matrices|matrix"),
  projection: say("projections|projection"),
  position: say("position codes|position code|positional encodings|positional encoding"),
  residual: say("residual streams|residual stream"),
  norm: say("layer norms|norms|norm|layer norm"),
  feedforward: say("feed-forwards|feed-forward"),
  neuron: say("neurons|neuron"),
  relu: say("ReLU"),
  bias: say("biases|bias"),
  parameter: say("parameters|parameter"),
  activation: say("activations|activation"),
  checkpoint: say("checkpoints|checkpoint"),
  memory: say("memory"),
  cache: say("caches|cache|KV cache"),
  recurrent: say("recurrent networks|recurrent network"),
  gru: say("GRU"),
  // attention
  attention: say("attention"),
  weight: say("attention weights|attention weight"),
  head: say("heads|head"),
  query: say("queries|query"),
  key: say("keys|key"),
  value: say("values|value"),
  dot: say("dot products|dot product"),
  softmax: say("softmax"),
  cross: say("cross-attention"),
  encoderself: say("encoder self-attention"),
  decoderself: say("decoder self-attention"),
  self: say("self-attention"),
  mask: say("masked|masking|causality|causal mask|look-ahead mask|masks|mask"),
  padding: say("padding"),
  sink: say("sinks|sink"),
  alignment: say("alignments|alignment"),
  linking: say("alignment heads|alignment head"),
  induction: say("induction heads|induction head"),
  additive: say("additive attention"),
  // the choice of the next token
  probability: say("probabilities|probability"),
  logprobability: say("log-probabilities|log-probability"),
  logit: say("logits|logit"),
  entropy: say("entropy"),
  bit: say("bits|bit"),
  nat: say("nats|nat"),
  rank: say("ranks|rank"),
  runnerup: say("runner-up"),
  decoding: say("decoding"),
  greedy: say("greedily|greedy"),
  beam: say("beams|beam|beam search"),
  penalty: say("length penalty"),
  temperature: say("temperatures|temperature"),
  forced: say("force-decode|force-decoding|forced decoding"),
  // why
  occlusion: say("occlusion|test by removing"),
  ablation: say("ablations|ablation"),
  patching: say("patching|activation patching"),
  gradient: say("gradients|gradient"),
  integrated: say("integrated gradient|integrated gradients"),
  attnlrp: say("AttnLRP"),
  alti: say("ALTI+"),
  rollout: say("attention rollout|rollout"),
  normbased: say("norm-based"),
  contribution: say("contributions|contribution"),
  contrast: say("contrastive|contrast"),
  proxy: say("proxies|proxy"),
  faithfulness: say("comprehensiveness|sufficiency|faithfulness"),
  lens: say("lenses|lens|logit lens"),
  tuned: say("tuned lenses|tuned lens"),
  circuit: say("circuits|circuit"),
  edge: say("edges|edge"),
  steering: say("steering"),
  dictionary: say("sparse dictionary"),
  // training
  loss: say("losses|loss"),
  crossentropy: say("cross-entropy"),
  surprisal: say("surprise|surprisal"),
  perplexity: say("perplexity"),
  batch: say("batches|batch"),
  update: say("updates|update"),
  optimiser: say("Adam|SGD|optimisers|optimiser"),
  teacher: say("teacher-forced|teacher forcing"),
  smoothing: say("smoothed labels|label smoothing"),
  dropout: say("dropout"),
  warmup: say("warm-up"),
  seed: say("seeds|seed"),
  corpus: say("corpora|corpus"),
  heldout: say("held-out|held out"),
  // measures
  cosine: say("cosines|cosine|cosine similarity"),
  cka: say("CKA"),
  divergence: say("Jensen-Shannon divergence|Kullback-Leibler divergence|divergences|divergence"),
  auroc: say("AUROC"),
  bleu: say("BLEU"),
  chrf: say("chrF"),
  aer: say("AER|alignment error|alignment error rates|alignment error rate"),
  precision: say("precisions|recall|precision"),
  correlation: say("correlations|correlation"),
  interval: say("intervals|interval|confidence interval"),
  deviation: say("std|variance|standard deviations|standard deviation"),
  median: say("medians|median"),
};

// Marks and symbols, which every language writes alike.
export const MARKS = {
  space: "▁",
  start: "<s>",
  end: "</s>",
  language: "<2en>|<2de>|<2xx>",
  pad: "<pad>",
  codepoint: "‹C3›",
  task: "⟨…⟩",
  place: "3·5",
  best: "★",
  readlink: "⇄",
  nextlink: "⇄+",
  arrow: "→",
  plusminus: "±",
  norms: "‖v‖",
  product: "×",
  sum: "Σ",
  power: "eˣ",
  log: "ln|log",
  transpose: "Kᵀ",
  dk: "√d_k|d_k",
  wo: "W_Q|W_K|W_V|W_O",
  infinity: "−∞",
  approximately: "≈",
  verdict: "✓|✗",
};
// Marks that are in too many places to be underlined.
const COMMON = ["place", "arrow", "plusminus", "product", "sum", "log", "approximately", "verdict"];

const CHINESE = /[\u3040-\u9fff]/, // these words have no spaces between them
  KOREAN = /[\uac00-\ud7af]/; // these words have endings
const BEFORE = "(?<![\\p{L}\\p{M}_-])",
  AFTER = "(?![\\p{L}\\p{M}_-])";
const BOUNDARIES = { none: ["", ""], before: [BEFORE, ""], both: [BEFORE, AFTER] };
const boundariesOf = (spelling) =>
  BOUNDARIES[
    CHINESE.test(spelling) || !/^\p{L}/u.test(spelling)
      ? "none"
      : KOREAN.test(spelling)
        ? "before"
        : "both"
  ];
const QUOTED = "“[^”]*”|„[^“]*“|«[^»]*»|‘[^’]*’"; // words of a sentence, such as the visitor's

const escapePattern = (text) => text.replace(/[+.()]/g, "\\$&");
let terms = null; // of the page's language: {pattern, names: Map of a spelling -> term}
function getTerms() {
  if (terms) return terms;
  const names = new Map();
  for (const [name, spellings] of [...Object.entries(TERMS), ...Object.entries(MARKS)])
    if (!COMMON.includes(name))
      for (const spelling of toText(spellings).split("|"))
        if (!names.has(spelling.toLowerCase())) names.set(spelling.toLowerCase(), name);
  const longestFirst = [...names.keys()].sort((a, b) => b.length - a.length);
  // One alternative for all spellings with the same boundaries: \p{L} is expensive to compile.
  const alternatives = [...Map.groupBy(longestFirst, boundariesOf)].map(
    ([[before, after], spellings]) =>
      `${before}(?:${spellings.map(escapePattern).join("|")})${after}`,
  );
  terms = { pattern: new RegExp([QUOTED, ...alternatives].join("|"), "giu"), names };
  return terms;
}

/**
 * Split a text of the page's language into texts and, where it first uses a term, buttons that open its entry.
 * @param {string} text @param {Set<string | undefined>} [seen] terms that were used before
 * @returns {any[]}
 */
export function markTerms(text, seen = new Set()) {
  const { pattern, names } = getTerms(),
    parts = [];
  let end = 0;
  for (const { 0: word, index } of text.matchAll(pattern)) {
    const name = names.get(word.toLowerCase());
    if (!name || seen.has(name)) continue;
    seen.add(name);
    parts.push(text.slice(end, index), createTerm(name, word));
    end = index + word.length;
  }
  return [...parts, text.slice(end)];
}

/** Mark the terms in a panel where it first uses them: in its elements with data-terms. @param {Element} panel */
export function markPanel(panel) {
  const marked = /** @type {HTMLElement[]} */ ([...panel.querySelectorAll(".term")]),
    seen = new Set(marked.map(({ dataset }) => dataset.term));
  for (const element of panel.querySelectorAll("[data-terms]"))
    for (const node of Array.from(element.childNodes))
      if (node instanceof Text) node.replaceWith(...markTerms(node.data, seen));
}

const loadGlossary = loadOnce(async () => {
  const { language } = document.documentElement.dataset;
  const words = language && {
    [language]: new URL(`../words/glossary/${language}.json`, import.meta.url).href,
  };
  const [module] = await Promise.all([import("../glossary/glossary.js"), words && addWords(words)]);
  return module.createGlossary();
});

// A term is no <button>, because text would break after one, before a comma.
function createTerm(name, word) {
  const show = async (term, options) => (await loadGlossary())?.show(term, options);
  return el(
    "span",
    {
      class: "term",
      role: "button",
      tabindex: "0",
      "data-term": name,
      "aria-haspopup": "dialog",
      "aria-expanded": "false",
      onclick: ({ currentTarget }) => show(currentTarget),
      onkeydown: (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        show(event.currentTarget, { takesFocus: true });
      },
      onfocus: ({ currentTarget }) =>
        currentTarget.matches(":focus-visible") && show(currentTarget),
      onpointerenter: ({ currentTarget, pointerType }) =>
        pointerType === "mouse" && show(currentTarget, { isHovered: true }),
    },
    word,
  );
}

/** Open the glossary's page. @param {string} [term] */
export const openGlossary = async (term) => (await loadGlossary())?.open(term);

/** Open the glossary's page for links to it (#glossary=term). */
export function listenForGlossary() {
  const follow = () => {
    const link = pageLink();
    if (link.has("glossary")) openGlossary(link.get("glossary") ?? "");
  };
  window.addEventListener("hashchange", follow);
  follow();
}
