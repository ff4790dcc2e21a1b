// Formulas in plain Unicode as MathML: √ with its bar, fractions, subscripts and superscripts. In "a / b" the numerator is the
// whole product before the slash and the denominator the one factor after it; brackets group.
const SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉ᵢⱼₙₜ₋",
  BELOW = "0123456789ijnt−";
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹ᵀⁿ⁻",
  ABOVE = "0123456789Tn−";
const TOKEN = /\s+|\d+(?:[.\u202f]\d+)*|[₀-₉ᵢⱼₙₜ₋]+|[⁰¹²³⁴-⁹ᵀⁿ⁻]+|Σ|Π|(?:(?![ᵢⱼₙₜᵀⁿ])\p{L})+|./gu;
const CLOSES = { "(": ")", "[": "]" };
const OPERATOR = /^[+−\-=,;:→<>≈…]$/; // ends a product
const NAME = /^\p{L}{2,}$/u; // a space beside a name is visible; between two symbols it is not
const PROSE = /\p{L}{2,} \p{L}{2,} \p{L}{2,}|[\u3040-\u9fff\uac00-\ud7af]/u; // a sentence is not a formula

const node = (name, ...children) => {
  const element = document.createElementNS("http://www.w3.org/1998/Math/MathML", name);
  element.append(...children);
  return element;
};
const row = (nodes) => (nodes.length === 1 ? nodes[0] : node("mrow", ...nodes));
// Replace each character of `from` by the one of `to` at the same index.
const translate = (text, from, to) => [...text].map((char) => to[from.indexOf(char)]).join("");
function space(width) {
  const element = node("mspace");
  element.setAttribute("width", width);
  return element;
}
const needsSpace = (before = "", after = "") =>
  (NAME.test(before) && /^[\p{L}\p{N}]/u.test(after)) ||
  (NAME.test(after) && /[\p{L}\p{N}]$/u.test(before));
const isBlank = (token) => token !== undefined && !token.trim();

/** Return a formula as a <math> element; a sentence stays a text. @param {string} text */
export function math(text) {
  if (PROSE.test(text)) return text;
  const tokens = text.match(TOKEN) ?? [];
  let at = 0, // index of the next token
    depth = 0; // of subscripts and superscripts
  const contents = new WeakMap(); // a node in brackets -> its content without them

  // The nodes in a row; a single group loses its brackets.
  const withoutBrackets = (nodes) =>
    row(nodes.length === 1 ? (contents.get(nodes[0]) ?? nodes) : nodes);
  const skipBlanks = () => {
    while (isBlank(tokens[at])) at += 1;
  };

  function group(open) {
    const content = list(CLOSES[open]),
      close = at < tokens.length ? [node("mo", tokens[at++])] : [],
      copies = content.map((child) => child.cloneNode(true)),
      element = node("mrow", node("mo", open), ...copies, ...close);
    contents.set(element, content);
    return element;
  }

  function atom() {
    const token = tokens[at++];
    if (token === "√") {
      skipBlanks();
      return at < tokens.length ? node("msqrt", withoutBrackets([item()])) : node("mo", token);
    }
    if (token in CLOSES) return group(token);
    if (/^\d/.test(token)) return node("mn", token);
    return node(/^\p{L}/u.test(token) && !/^[ΣΠ]$/.test(token) ? "mi" : "mo", token);
  }

  // A subscript or superscript: one atom or the content of brackets. Its fractions stay on one line, because it is small.
  function script() {
    if (tokens[at] === undefined) return node("mrow");
    depth += 1;
    const element = withoutBrackets([atom()]);
    depth -= 1;
    return element;
  }

  // An atom with its subscript and superscript, and the argument of a function.
  function item() {
    let base = atom(),
      below = null,
      above = null;
    const unicodeScript = (next, from, to) => {
      at += 1;
      return node("mi", translate(next, from, to));
    };
    const markedScript = () => {
      at += 1;
      return script();
    };
    for (let next = tokens[at]; next !== undefined; next = tokens[at]) {
      if (next === "_") below = markedScript();
      else if (next === "^") above = markedScript();
      else if (SUBSCRIPTS.includes(next[0])) below = unicodeScript(next, SUBSCRIPTS, BELOW);
      else if (SUPERSCRIPTS.includes(next[0])) above = unicodeScript(next, SUPERSCRIPTS, ABOVE);
      else break;
    }
    const isFunction = base.localName === "mi" && tokens[at] === "(";
    if (below && above) base = node("msubsup", base, below, above);
    else if (below || above) base = node(below ? "msub" : "msup", base, below ?? above);
    if (!isFunction) return base;
    at += 1;
    return node("mrow", base, node("mo", "\u2061"), group("("));
  }

  // The items up to a closing bracket, or to the end of the text.
  function list(closer) {
    const nodes = [];
    let product = 0; // index in `nodes` at which the last product begins
    while (at < tokens.length && tokens[at] !== closer) {
      const token = tokens[at];
      if (isBlank(token)) {
        at += 1;
        if (token.length > 1) {
          nodes.push(space("1.6em"));
          product = nodes.length;
        } else if (needsSpace(tokens[at - 2], tokens[at])) nodes.push(space("0.35em"));
      } else if (token === "/" && nodes.length > product && !depth) {
        at += 1;
        skipBlanks();
        if (at < tokens.length && tokens[at] !== closer)
          nodes.push(
            node("mfrac", withoutBrackets(nodes.splice(product)), withoutBrackets([item()])),
          );
      } else if (OPERATOR.test(token)) {
        at += 1;
        nodes.push(node("mo", token));
        product = nodes.length;
      } else nodes.push(item());
    }
    return nodes;
  }
  return node("math", ...list());
}
