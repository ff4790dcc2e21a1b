// Pictures of the page that can be copied: a small button copies one as an image with a title and a
// caption, so that it explains itself on a slide.
import { button as plainButton, download, el, cssVariable, showNotice, svg } from "../core/dom.js";
import { t } from "../core/language.js";
import { SCALE, nodeSvg, svgText } from "./drawing.js";

const PAD = 24,
  NARROWEST = 560,
  HEAD = 28,
  LINE = 22; // pixels
const SHOWN = 4500; // milliseconds that a message is shown
const TITLE = "600 20px",
  CAPTION = "15px";

// Break a text into lines of a width. A word that is too long, or of a script without spaces,
// breaks anywhere.
function breakLines(text, font, width) {
  const pen = document.createElement("canvas").getContext("2d"),
    lines = [];
  pen.font = `${font} ${cssVariable("--atlas-font")}`;
  let line = "";
  for (const piece of text.split(/(?<=[\s\u3000-\u9fff])|(?<=\S{30})/u)) {
    if (line && pen.measureText(line + piece.trimEnd()).width > width) {
      lines.push(line.trimEnd());
      line = "";
    }
    line += piece;
  }
  return [...lines, line].filter(Boolean);
}

/** Add a title above and a caption below an SVG. @param {Element} picture @param {string} title @param {string} caption */
export function captionSvg(picture, title, caption) {
  const [width, height] = ["width", "height"].map((name) => Number(picture.getAttribute(name)));
  const inner = Math.max(width, NARROWEST),
    above = breakLines(title, TITLE, inner),
    below = breakLines(caption, CAPTION, inner);
  const top = PAD + above.length * HEAD + (above.length ? 8 : 0),
    bottom = top + height + (below.length ? 14 : 0);
  const write = (lines, font, fill, y, step) =>
    lines.map((text, i) => {
      const style = `font: ${font} ${cssVariable("--atlas-font")}`;
      return svg("text", { x: PAD, y: y + step * (i + 0.75), style, fill }, text);
    });
  picture.setAttribute("x", String(PAD));
  picture.setAttribute("y", String(top));
  const wide = inner + 2 * PAD,
    tall = Math.ceil(bottom + below.length * LINE + PAD);
  return svg("svg", { width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}` }, [
    svg("rect", { width: "100%", height: "100%", fill: cssVariable("--atlas-paper") }),
    write(above, TITLE, cssVariable("--atlas-ink"), PAD, HEAD),
    picture,
    write(below, CAPTION, cssVariable("--atlas-muted"), bottom, LINE),
  ]);
}

// Copy a picture to the clipboard, or save it as a file if that is not allowed.
async function copyPicture(node, about) {
  const title = about.title(),
    picture = async () =>
      svgToPng(captionSvg(await (about.svg?.() ?? nodeSvg(node)), title, about.caption())),
    making = picture();
  try {
    // Pass the promise, not the picture: a browser may allow writing only right after a click.
    await navigator.clipboard.write([new ClipboardItem({ "image/png": making })]);
    return showNotice(t("Copied as an image: paste it into a slide."), SHOWN);
  } catch {
    // not allowed: save it
  }
  const words = title.match(/[\p{L}\p{N}]+/gu) ?? ["attention"],
    name = `${words.join("-").slice(0, 80)}.png`;
  try {
    download(name, await making);
    showNotice(t("Saved as {name}: the clipboard is not available here.", { name }), SHOWN);
  } catch (error) {
    showNotice(t("No picture could be made: {why}.", { why: error.message }), SHOWN);
  }
}

export const pictureInfo = new WeakMap(); // /** picture -> {node, ...info} @type {WeakMap<Element, any>} */

/**
 * Wrap a node in a picture with a copy button.
 *
 * `info` describes it: title() and caption() in words, perhaps empty; svg(), its SVG (or a promise), if it is not what the
 * page shows; name, to tell its button from others. For presentations: main, whether its tab is about it; move(down, right)
 * for arrow keys and their hint; page(by) for Page Up and Page Down and the buttons, if not the arrows' steps to the sides;
 * fit(room), to lay it out for {width, height} in pixels, or for the page again with null.
 * @param {Element} node @param {any} about
 */
export function createPicture(node, about) {
  const words = t("Copy as image"),
    button = plainButton(el("span", {}, words), () => copyPicture(node, about), {
      class: "copy-picture",
      "aria-label": about.name ? t("Copy as image: {name}", { name: about.name }) : null,
      title: words,
    });
  const box = el("div", { class: "pictured" }, node, button);
  pictureInfo.set(box, { node, ...about });
  return box;
}

/** Return an SVG as a file. @param {Element} svg @param {string} format "svg" or "png" @returns {Blob | Promise<Blob>} */
export const svgToFile = (svg, format) =>
  format === "svg" ? new Blob([svgText(svg)], { type: "image/svg+xml" }) : svgToPng(svg);

/** @param {Element} svg */
async function svgToPng(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
  try {
    await image.decode();
    const canvas = new OffscreenCanvas(SCALE * image.width, SCALE * image.height);
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await canvas.convertToBlob();
  } catch {
    throw new Error(t("the picture could not be drawn")); // it is too large, for instance
  }
}
