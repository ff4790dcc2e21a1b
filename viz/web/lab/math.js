// A formula in plain Unicode as MathML: √ with its bar, fractions, subscripts and superscripts. "a / b" is a fraction of all
// that is multiplied before it and the one thing after it, as one reads it aloud; what is in brackets stays together.
const SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉ᵢⱼₙₜ₋",
  BELOW = "0123456789ijnt−";
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹ᵀⁿ⁻",
  ABOVE = "0123456789Tn−";
const TOKEN = /\s+|\d+(?:[.\u202f]\d+)*|[₀-₉ᵢⱼₙₜ₋]+|[⁰¹²³⁴-⁹ᵀⁿ⁻]+|Σ|Π|(?:(?![ᵢⱼₙₜᵀⁿ])\p{L})+|./gu;
const CLOSES = { "(": ")", "[": "]" };
const APART = /^[+−\-=,;:→<>≈…]$/; // what ends a product
const NAME = /^\p{L}{2,}$/u; // beside one, a blank is more than what separates two factors
const PROSE = /\p{L}{2,} \p{L}{2,} \p{L}{2,}|[\u3040-\u9fff\uac00-\ud7af]/u; // a sentence is no formula

const node = (name, ...children) => {
  const found = document.createElementNS("http://www.w3.org/1998/Math/MathML", name);
  found.append(...children);
  return found;
};
const row = (nodes) => (nodes.length === 1 ? nodes[0] : node("mrow", ...nodes));
const plain = (text, from, to) => [...text].map((one) => to[from.indexOf(one)]).join("");
function space(width) {
  const found = node("mspace");
  found.setAttribute("width", width);
  return found;
}
const apart = (before = "", after = "") =>
  (NAME.test(before) && /^[\p{L}\p{N}]/u.test(after)) ||
  (NAME.test(after) && /[\p{L}\p{N}]$/u.test(before));
const isBlank = (token) => token !== undefined && !token.trim();

export function math(text) {
  if (PROSE.test(text)) return text;
  const tokens = text.match(TOKEN) ?? [];
  let at = 0,
    scripts = 0;
  const inside = new WeakMap(); // what stands in brackets -> the same without them

  const bare = (nodes) => row(nodes.length === 1 ? (inside.get(nodes[0]) ?? nodes) : nodes);
  const skip = () => {
    while (isBlank(tokens[at])) at += 1;
  };

  function group(open) {
    const held = list(CLOSES[open]);
    const closed = at < tokens.length ? [node("mo", tokens[at++])] : [];
    const found = node(
      "mrow",
      node("mo", open),
      ...held.map((one) => one.cloneNode(true)),
      ...closed,
    );
    inside.set(found, held);
    return found;
  }

  function atom() {
    const token = tokens[at++];
    if (token === "√") {
      skip();
      return at < tokens.length ? node("msqrt", bare([item()])) : node("mo", token);
    }
    if (token in CLOSES) return group(token);
    if (/^\d/.test(token)) return node("mn", token);
    return node(/^\p{L}/u.test(token) && !/^[ΣΠ]$/.test(token) ? "mi" : "mo", token);
  }

  // What stands below or above: one thing, or all that is in brackets. It is small: a fraction in it stays on one line.
  function script() {
    if (tokens[at] === undefined) return node("mrow");
    scripts += 1;
    const found = bare([atom()]);
    scripts -= 1;
    return found;
  }

  function item() {
    let found = atom(),
      below = null,
      above = null;
    const small = (next, from, to) => {
      at += 1;
      return node("mi", plain(next, from, to));
    };
    const marked = () => {
      at += 1;
      return script();
    };
    for (let next = tokens[at]; next !== undefined; next = tokens[at]) {
      if (next === "_") below = marked();
      else if (next === "^") above = marked();
      else if (SUBSCRIPTS.includes(next[0])) below = small(next, SUBSCRIPTS, BELOW);
      else if (SUPERSCRIPTS.includes(next[0])) above = small(next, SUPERSCRIPTS, ABOVE);
      else break;
    }
    const applied = found.localName === "mi" && tokens[at] === "(";
    if (below && above) found = node("msubsup", found, below, above);
    else if (below || above) found = node(below ? "msub" : "msup", found, below ?? above);
    if (!applied) return found;
    at += 1;
    return node("mrow", found, node("mo", "\u2061"), group("("));
  }

  function list(closer) {
    const found = [];
    let product = 0; // where in it the last product begins
    while (at < tokens.length && tokens[at] !== closer) {
      const token = tokens[at];
      if (isBlank(token)) {
        at += 1;
        if (token.length > 1) {
          found.push(space("1.6em"));
          product = found.length;
        } else if (apart(tokens[at - 2], tokens[at])) found.push(space("0.35em"));
      } else if (token === "/" && found.length > product && !scripts) {
        at += 1;
        skip();
        if (at < tokens.length && tokens[at] !== closer)
          found.push(node("mfrac", bare(found.splice(product)), bare([item()])));
      } else if (APART.test(token)) {
        at += 1;
        found.push(node("mo", token));
        product = found.length;
      } else found.push(item());
    }
    return found;
  }
  return node("math", ...list());
}
