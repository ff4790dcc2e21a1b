// Plotly.js is most of all that is loaded, and reading it takes longer than all else together: it is fetched when somebody
// first asks, and after what is on the page by then has been painted.
import { el, afterPaint } from "./dom.js";

let address = null,
  loading = null;

// Where it is.
export const setPlotlyAddress = (given) => (address = given);

// A promise that it is there.
export function loadPlotly() {
  loading ||= window.Plotly ? Promise.resolve() : afterPaint().then(load);
  return loading;
}

const load = () =>
  new Promise((resolve, reject) => {
    const onerror = () => reject(new Error(address));
    document.head.append(el("script", { src: address, onload: resolve, onerror }));
  });

let last = Promise.resolve();

// Figures are drawn one in a task, each after those that were asked for before: between two of them the page answers whoever
// types or clicks. draw: is called then. A promise of what it returns.
export function enqueueDrawing(draw) {
  const mine = last.then(yieldToPage).then(draw);
  last = mine.catch(() => {});
  return mine;
}

const yieldToPage = () =>
  globalThis.scheduler?.yield ? scheduler.yield() : new Promise((resolve) => setTimeout(resolve));
