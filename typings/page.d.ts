// Globals of the page's scripts (viz/web), for tsc.

/** Plotly.js, which core/plotly.js loads. */
declare const Plotly: any;

interface Window {
  Plotly?: any;
}

interface Uint8ArrayConstructor {
  fromBase64?(text: string): Uint8Array;
}

interface Uint8Array {
  toBase64?(): string;
}

/** The names by which an exported file maps its modules (explorer/alone.js). */
declare module "core/language.js";
declare module "explorer/explorer.js";
