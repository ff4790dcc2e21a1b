// Converts a part of the page to an SVG: Plotly exports its figures; everything else is drawn from
// the boxes, canvases, lines and texts as the browser laid them out.
import { el, cssVariable, svg } from "../core/dom.js";

export const SCALE = 2; // PNG pixels per CSS pixel
const NOT_DRAWN =
  "select, input, textarea, option, script, .sr-only, .copy-picture, .mark.cursor, .detail .heatmap"; // the canvas below it is
const DRAWN = "text, rect, circle, path, line"; // shapes that the style sheet may style
const COLOURS = ["fill", "stroke"];
const STROKE = ["stroke-width", "stroke-opacity", "stroke-dasharray"];
const LOOKS = [...COLOURS, "fill-opacity", ...STROKE, "opacity", "paint-order"];
const FONT = ["font-size", "font-family", "font-weight", "font-style", "text-anchor"];
const NO_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu; // characters that XML does not allow

// Convert a computed colour to rgb(): color-mix() computes to color(srgb ..), which not every
// reader of SVG knows. Null: transparent.
function parseColour(computed) {
  const mixed = /^color\(srgb (\S+) (\S+) (\S+?)(?: \/ (\S+))?\)$/.exec(computed);
  const texts = mixed
    ? mixed.slice(1).filter(Boolean)
    : (computed.match(/[\d.]+/g) ?? [0, 0, 0, 0]);
  const [red, green, blue, alpha = 1] = texts.map(Number);
  if (alpha === 0) return null;
  const parts = [red, green, blue].map((part) => (mixed ? Math.round(255 * part) : part));
  return alpha < 1 ? `rgba(${parts.join(",")},${alpha})` : `rgb(${parts.join(",")})`;
}

/**
 * Return the size of a part of the page, and a function from a box in the window to its place within the part. Both are in the
 * part's own pixels: a presentation scales it.
 * @param {any} root
 */
export function frameOf(root) {
  const frame = root.getBoundingClientRect(),
    scale = root.offsetWidth ? frame.width / root.offsetWidth : 1;
  return {
    width: Math.ceil(frame.width / scale),
    height: Math.ceil(frame.height / scale),
    place: (box) => ({
      x: (box.left - frame.left) / scale,
      y: (box.top - frame.top) / scale,
      width: box.width / scale,
      height: box.height / scale,
    }),
  };
}

// Return a plain linear gradient's colours and whether it goes upwards, as in a legend; null for
// other images.
function gradientColours(image) {
  if (!image.startsWith("linear-gradient(") || /px|,\s*linear/.test(image)) return null;
  const colours = image.match(/rgba?\([^)]*\)/g) ?? [];
  return colours.length > 1 ? { colours, up: /to top/.test(image) } : null;
}

// Draw the rectangle of a border or an outline, `by` pixels around a box; dashes: of a dashed line.
function outlineRect(at, by, style, rx, dashes, look) {
  const [width, height] = [at.width, at.height].map((side) => Math.max(0, side + 2 * by));
  const stroke = { ...look, "stroke-dasharray": style === "dashed" && look.stroke ? dashes : null };
  return svg("rect", { x: at.x - by, y: at.y - by, width, height, rx, ...stroke });
}

function drawBox(node, look, place, parts) {
  const at = place(node.getBoundingClientRect()),
    rx = Math.min(parseFloat(look.borderTopLeftRadius) || 0, at.height / 2);
  const sides = ["top", "right", "bottom", "left"].map((side) => {
    const [style, width, shade] = ["style", "width", "color"].map((name) =>
      look.getPropertyValue(`border-${side}-${name}`),
    );
    return { width: style === "none" ? 0 : parseFloat(width), stroke: parseColour(shade) };
  });
  const [first] = sides,
    isEven = sides.every(({ width, stroke }) => width === first.width && stroke === first.stroke),
    shades = gradientColours(look.backgroundImage);
  let fill = parseColour(look.backgroundColor);
  if (shades) {
    const id = `ramp${parts.length}`,
      ends = { id, x1: 0, x2: shades.up ? 0 : 1, y1: shades.up ? 1 : 0, y2: 0 };
    const stop = (shade, i) =>
      svg("stop", { offset: i / (shades.colours.length - 1), "stop-color": shade });
    fill = `url(#${id})`;
    parts.push(svg("linearGradient", ends, shades.colours.map(stop)));
  }
  const stroke = isEven && first.width ? first.stroke : null,
    inset = stroke ? first.width / 2 : 0; // a border lies inside its box
  if (fill || stroke) {
    const paint = { fill: fill ?? "none", stroke, "stroke-width": stroke && first.width };
    parts.push(outlineRect(at, -inset, look.borderTopStyle, rx, "3 2", paint));
  }
  const { x, y, width: wide, height: tall } = at,
    edges = [`h${wide}`, `m${wide} 0v${tall}`, `m0 ${tall}h${wide}`, `v${tall}`];
  sides.forEach(({ width, stroke }, i) => {
    if (!isEven && width && stroke)
      parts.push(svg("path", { d: `M${x} ${y}${edges[i]}`, stroke, "stroke-width": width }));
  });
  const width = parseFloat(look.outlineWidth),
    outline = parseColour(look.outlineColor);
  if (look.outlineStyle !== "none" && width && outline) {
    const paint = { fill: "none", stroke: outline, "stroke-width": width },
      by = parseFloat(look.outlineOffset) + width / 2;
    parts.push(outlineRect(at, by, look.outlineStyle, rx, "4 3", paint));
  }
}

// Return a text node's lines as the browser broke them: [text, box] pairs.
function textLines(node) {
  const range = document.createRange(),
    upright = getComputedStyle(node.parentElement).writingMode.startsWith("horizontal");
  range.selectNodeContents(node);
  if (!upright || range.getClientRects().length < 2)
    return [[node.data, range.getBoundingClientRect()]];
  const starts = [];
  let last = null;
  for (let i = 0; i < node.data.length; i++) {
    range.setStart(node, i);
    range.setEnd(node, i + 1);
    const { top, width } = range.getBoundingClientRect();
    if (width && (last === null || Math.abs(top - last) > 2)) starts.push(i);
    if (width) last = top;
  }
  return starts.map((start, i) => {
    range.setStart(node, start);
    range.setEnd(node, starts[i + 1] ?? node.data.length);
    return [range.toString(), range.getBoundingClientRect()];
  });
}

function drawText(node, turned, place, parts) {
  const parent = node.parentElement,
    look = getComputedStyle(parent),
    hides = look.overflowX !== "visible" && parent.scrollWidth > parent.clientWidth + 1;
  const turn = turned + (look.writingMode.startsWith("vertical") ? 90 : 0);
  for (const [written, rect] of textLines(node)) {
    const { x, y, width, height } = place(rect),
      spaced = look.whiteSpace.startsWith("pre") ? written : written.replace(/\s+/g, " ").trim();
    const words = look.textTransform === "uppercase" ? spaced.toLocaleUpperCase() : spaced;
    if (!width || !words.trim()) continue;
    const font = Object.fromEntries(FONT.map((name) => [name, look.getPropertyValue(name)])),
      fill = parseColour(look.color) ?? "none";
    const middle = { x: x + width / 2, y: y + height / 2 };
    const where = turn
      ? {
          ...middle,
          "text-anchor": "middle",
          "dominant-baseline": "central",
          transform: `rotate(${turn} ${middle.x} ${middle.y})`,
        }
      : { x, y: y + height * 0.78 };
    const element = svg("text", { ...font, ...where, fill, "xml:space": "preserve" }, words);
    const cut = place(parent.getBoundingClientRect()), // cut to its box
      viewBox = `${cut.x} ${cut.y} ${cut.width} ${cut.height}`;
    parts.push(hides ? svg("svg", { ...cut, viewBox }, element) : element);
  }
}

function drawSvg(node, place) {
  const copy = node.cloneNode(true),
    originals = node.querySelectorAll(DRAWN),
    copies = copy.querySelectorAll(DRAWN);
  originals.forEach((original, i) => {
    const look = getComputedStyle(original);
    for (const name of original.tagName === "text" ? [...LOOKS, ...FONT] : LOOKS) {
      const value = look.getPropertyValue(name);
      copies[i].setAttribute(name, COLOURS.includes(name) ? (parseColour(value) ?? "none") : value);
    }
    copies[i].removeAttribute("style");
  });
  const at = place(node.getBoundingClientRect());
  if (!copy.getAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${at.width} ${at.height}`);
  for (const [name, value] of Object.entries(at)) copy.setAttribute(name, value);
  return copy;
}

// Return the degrees by which an element is rotated within its parent.
function rotationOf({ transform, rotate }) {
  const { a, b } = new DOMMatrix(transform === "none" ? "" : transform);
  return Math.round((Math.atan2(b, a) * 180) / Math.PI) + (parseFloat(rotate) || 0);
}

// Return a canvas as a PNG of at least its size on the page: few programs keep enlarged pixels sharp.
function canvasImage(canvas, { width, height }) {
  if (canvas.width >= width) return canvas.toDataURL();
  const copy = el("canvas", {
      width: Math.round(SCALE * width),
      height: Math.round(SCALE * height),
    }),
    pen = copy.getContext("2d");
  pen.imageSmoothingEnabled = false;
  pen.drawImage(canvas, 0, 0, copy.width, copy.height);
  return copy.toDataURL();
}

function drawNode(node, turned, place, parts) {
  if (node.nodeType === Node.TEXT_NODE)
    return node.data.trim() && drawText(node, turned, place, parts);
  if (node.nodeType !== Node.ELEMENT_NODE || node.matches(NOT_DRAWN)) return;
  const look = getComputedStyle(node);
  if (look.display === "none" || look.visibility === "hidden" || look.opacity === "0") return;
  if (node.tagName.toLowerCase() === "svg") return parts.push(drawSvg(node, place));
  const within = []; // drawn with the element's opacity
  if (look.display !== "contents") drawBox(node, look, place, within);
  if (node.tagName === "CANVAS" && node.width && node.height) {
    const at = place(node.getBoundingClientRect()),
      look = { preserveAspectRatio: "none", style: "image-rendering:pixelated" };
    within.push(svg("image", { ...at, ...look, href: canvasImage(node, at) }));
  }
  for (const child of node.childNodes) drawNode(child, turned + rotationOf(look), place, within);
  if (Number(look.opacity) < 1) parts.push(svg("g", { opacity: look.opacity }, within));
  else parts.push(...within);
}

/** Return an element as an SVG, as it is laid out. @param {any} root @param {string | null} [but] selector of parts to leave out */
export function elementSvg(root, but = null) {
  root.classList.add("atlas-whole");
  const { width, height, place } = frameOf(root),
    parts = [svg("rect", { width, height, fill: cssVariable("--atlas-paper") })];
  const excluded = but ? [...root.querySelectorAll(but)] : [];
  for (const node of excluded) node.style.visibility = "hidden";
  for (const child of root.childNodes) drawNode(child, 0, place, parts);
  for (const node of excluded) node.style.visibility = "";
  root.classList.remove("atlas-whole");
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, parts);
}

/** Return a node as an SVG: by Plotly if it is a figure. @param {any} node */
export async function nodeSvg(node) {
  const { data, layout, clientWidth: width, clientHeight: height } = node;
  if (!data || !layout) return elementSvg(node);
  const paper = { ...layout, paper_bgcolor: cssVariable("--atlas-paper") },
    uri = await Plotly.toImage({ data, layout: paper }, { format: "svg", width, height }),
    text = await (await fetch(uri)).text();
  return new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
}

/** Return an SVG as text. @param {Element} node */
export const svgText = (node) =>
  new XMLSerializer().serializeToString(node).replace(NO_XML, "\ufffd");
