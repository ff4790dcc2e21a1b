// Loads Plotly.js, the page's largest script, when the first figure needs it, and draws figures one after another.
import { el } from "./dom.js";

/** @type {Promise<any> | null} */
let loading = null;

/** Load Plotly.js. The call after a failure tries again. */
export const loadPlotly = () =>
  (loading ||= new Promise((resolve, reject) => {
    const src = new URL("../plotly.min.js", import.meta.url).href;
    function onerror() {
      loading = null;
      reject(new Error(src));
    }
    document.head.append(el("script", { src, onload: resolve, onerror }));
  }));

/** @type {Promise<any>} */
let last = Promise.resolve();

/**
 * Draw a figure in a task of its own, after those enqueued before it, so that the page responds between two figures.
 * @template T
 * @param {() => T} draw
 * @returns {Promise<Awaited<T>>}
 */
export function enqueueDrawing(draw) {
  const drawing = last.then(yieldToPage).then(draw);
  last = /** @type {Promise<any>} */ (drawing).catch(() => {});
  return /** @type {Promise<Awaited<T>>} */ (drawing);
}

const yieldToPage = () => new Promise((resolve) => setTimeout(resolve));
