// Loads Plotly.js, the page's largest script, when the first figure needs it.
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

/** Wait for a task of its own, in which to draw a figure, so that the page responds between two figures. */
export const nextTask = () => new Promise((resolve) => setTimeout(resolve));
