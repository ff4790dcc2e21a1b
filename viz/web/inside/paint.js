// Paints items on a canvas. An item names its colour by a custom property of the page (--atlas-NAME), so a scene is the same in
// light and dark.

const NAMES = [
  "ink",
  "muted",
  "paper",
  "panel",
  "line",
  "accent",
  "accent-soft",
  "on-accent",
  "above",
  "source",
  "target",
  "warn",
  "good",
];

export class Painter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.strips = new Map(); // bitmaps by name
    this.size = { width: 0, height: 0 };
    this.ratio = 1;
    this.isMoving = false;
    this.fontSet = ""; // the context's font, which is slow to set
    this.readColours();
  }

  // Read the colours again, after the theme has changed.
  readColours() {
    const style = getComputedStyle(this.canvas);
    this.colours = Object.fromEntries(
      NAMES.map((name) => [name, style.getPropertyValue(`--atlas-${name}`).trim()]),
    );
    this.font = style.getPropertyValue("--atlas-font");
    this.mono = style.getPropertyValue("--atlas-mono");
    this.strips.clear();
  }

  /** @param {number} width @param {number} height @param {number} [ratio] canvas pixels for each CSS pixel */
  resize(width, height, ratio = Math.min(window.devicePixelRatio || 1, 2)) {
    this.ratio = ratio;
    this.size = { width, height };
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
  }

  // moving: texts have whole sizes and no halos, because glyphs of new sizes are slow. coarse: leave out thin curves, on devices
  // that miss frames.
  draw(items, { moving = false, coarse = false } = {}) {
    const { context } = this;
    this.isMoving = moving;
    this.fontSet = "";
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.size.width, this.size.height);
    context.lineCap = "round";
    for (const item of items) {
      if (item.a < 0.012 || (coarse && item.t === "curve" && item.w0 < 2)) continue;
      context.globalAlpha = Math.min(1, item.a);
      this[item.t](item);
    }
    context.globalAlpha = 1;
  }

  box({ x, y, w, h, r = 0, fill, stroke, w0 = 1, dash }) {
    const { context } = this;
    context.beginPath();
    context.roundRect(x, y, Math.max(0, w), Math.max(0, h), Math.max(0, Math.min(r, w / 2, h / 2)));
    if (fill) {
      context.fillStyle = this.colours[fill];
      context.fill();
    }
    if (stroke) {
      context.strokeStyle = this.colours[stroke];
      context.lineWidth = w0;
      if (dash) context.setLineDash(dash);
      context.stroke();
      context.setLineDash([]);
    }
  }

  // A line of attention from a key to a query, in the colours of their sides.
  curve({ x0, y0, x1, y1, w0, c, c1, tall, dash }) {
    const { context } = this;
    context.beginPath();
    context.moveTo(x0, y0);
    if (tall) context.bezierCurveTo(x0, y0 + (y1 - y0) * 0.5, x1, y0 + (y1 - y0) * 0.5, x1, y1);
    else context.bezierCurveTo(x0 + (x1 - x0) * 0.5, y0, x0 + (x1 - x0) * 0.5, y1, x1, y1);
    if (c1 && c1 !== c) {
      const blend = context.createLinearGradient(x0, y0, x1, y1);
      blend.addColorStop(0.15, this.colours[c]);
      blend.addColorStop(0.85, this.colours[c1]);
      context.strokeStyle = blend;
    } else context.strokeStyle = this.colours[c];
    context.lineWidth = w0;
    context.lineCap = w0 > 2 ? "round" : "butt"; // round caps make thin lines 50% slower
    if (dash) context.setLineDash(dash);
    context.stroke();
    if (dash) context.setLineDash([]);
  }

  // A part of the residual stream: w0 wide at its beginning, w1 at its end.
  ribbon({ x0, y0, x1, y1, w0, w1, c, tall }) {
    const { context } = this;
    context.beginPath();
    if (tall) {
      const turn = y0 + (y1 - y0) * 0.7;
      context.moveTo(x0 - w0 / 2, y0);
      context.bezierCurveTo(x0 - w0 / 2, turn, x1 - w1 / 2, turn, x1 - w1 / 2, y1);
      context.lineTo(x1 + w1 / 2, y1);
      context.bezierCurveTo(x1 + w1 / 2, turn, x0 + w0 / 2, turn, x0 + w0 / 2, y0);
    } else {
      const turn = x0 + (x1 - x0) * 0.7;
      context.moveTo(x0, y0 - w0 / 2);
      context.bezierCurveTo(turn, y0 - w0 / 2, turn, y1 - w1 / 2, x1, y1 - w1 / 2);
      context.lineTo(x1, y1 + w1 / 2);
      context.bezierCurveTo(turn, y1 + w1 / 2, turn, y0 + w0 / 2, x0, y0 + w0 / 2);
    }
    context.fillStyle = this.colours[c];
    context.fill();
  }

  line({ x0, y0, x1, y1, w0, c, dash }) {
    const { context } = this;
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.strokeStyle = this.colours[c];
    context.lineWidth = w0;
    if (dash) context.setLineDash(dash);
    context.stroke();
    context.setLineDash([]);
  }

  // The sum of a residual connection: a plus in a circle.
  plus({ x, y, r, c }) {
    const { context } = this;
    context.beginPath();
    context.arc(x, y, r, 0, 2 * Math.PI);
    context.fillStyle = r > 3 ? this.colours.paper : this.colours[c];
    context.fill();
    if (r <= 3) return;
    context.strokeStyle = this.colours[c];
    context.lineWidth = 1.2;
    context.moveTo(x - r * 0.55, y);
    context.lineTo(x + r * 0.55, y);
    context.moveTo(x, y - r * 0.55);
    context.lineTo(x, y + r * 0.55);
    context.stroke();
  }

  text({ x, y, s, str, c, align, weight = 400, turn, mono, halo }) {
    const { context } = this;
    const font = `${weight} ${this.isMoving ? Math.round(s) : s}px ${mono ? this.mono : this.font}`;
    if (font !== this.fontSet) context.font = this.fontSet = font;
    context.textAlign = align;
    context.textBaseline = "middle";
    context.fillStyle = this.colours[c];
    if (turn) {
      context.save();
      context.translate(x, y);
      context.rotate(Math.PI / 2);
      context.fillText(str, 0, 0);
      context.restore();
      return;
    }
    if (halo && !this.isMoving) {
      context.strokeStyle = this.colours[halo];
      context.lineWidth = 4;
      context.lineJoin = "round";
      context.strokeText(str, x, y);
    }
    context.fillText(str, x, y);
  }

  // Numbers as cells: blue below 0, orange above.
  strip({ x, y, w, h, key, values, scale, tall, one }) {
    const { context } = this;
    context.fillStyle = this.colours.panel;
    context.fillRect(x, y, w, h);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.bitmap(key, values, scale, tall, one), x, y, w, h);
  }

  bitmap(key, values, scale, tall, one) {
    const name = `${key}|${tall}`;
    if (this.strips.has(name)) return this.strips.get(name);
    const canvas = document.createElement("canvas");
    canvas.width = tall ? 1 : values.length;
    canvas.height = tall ? values.length : 1;
    const context = canvas.getContext("2d");
    for (let i = 0; i < values.length; i++) {
      const share = Math.min(1, Math.abs(values[i]) / scale);
      context.globalAlpha = share ** 0.8;
      context.fillStyle = this.colours[one ?? (values[i] < 0 ? "accent" : "above")];
      context.fillRect(tall ? 0 : i, tall ? i : 0, 1, 1);
    }
    this.strips.set(name, canvas);
    return canvas;
  }
}
