// Pictures of networks that are trained on the page: learning curves, and the attention maps of one update.
import { paintMap } from "../core/colours.js";
import { cssVariable, el, escapeTags } from "../core/dom.js";
import { formatFixed } from "../core/format.js";
import { createGrid } from "../core/grid.js";
import { cellAt } from "../core/keys.js";
import { KINDS } from "../core/kinds.js";
import { say, t, thousandsSeparator } from "../core/language.js";
import { base64ToBytes } from "../explorer/trace.js";

const COLOURS = { a: "#0072b2", b: "#d55e00" }, // for any colour vision
  DASHES = { a: "solid", b: "dash" };

export const DECODED = "decoder_self_decoded"; // the maps while decoding, drawn below those of teacher forcing
export const KIND_TITLES = {
  ...Object.fromEntries(Object.entries(KINDS).map(([name, { title }]) => [name, title])),
  [DECODED]: say("Decoder self-attention while decoding"),
};

/**
 * @typedef {object} Run the training of a network
 * @property {"a" | "b"} side
 * @property {string} name
 * @property {number[][]} points [update, loss, minimised loss, length of the gradient] of each update; the minimised loss has label
 *   smoothing, and differs from the loss without it
 * @property {number} floor the lowest possible loss
 * @property {number} guess the loss of a guess
 */

/** Whether the minimised loss differs from the cross-entropy: with label smoothing, for instance. */
export const minimisesAnother = (points) =>
  points.some(([, loss, minimised]) => Math.abs(minimised - loss) > 1e-4);

/**
 * Draw the losses of runs with the loss of a guess and the floor, and the lengths of gradients below them.
 * @param {any} box @param {Run[]} runs @param {number | null} selected the update that is looked at
 */
export function drawCurves(box, runs, selected) {
  if (!window.Plotly) return;
  const ink = cssVariable("--atlas-muted"),
    gridcolor = cssVariable("--atlas-line");
  const last = Math.max(10, ...runs.map((run) => run.points.at(-1)?.[0] ?? 0));
  const drawLine = (name, x, y, line, more) => ({
    name: escapeTags(name),
    mode: "lines",
    x,
    y,
    line,
    ...more,
  });
  const level = (y, name, color, dash) =>
    drawLine(name, [0, last], [y, y], { color, width: 1.5, dash }, { hoverinfo: "name" });
  const traces = runs.flatMap(({ side, name: run, points, floor }) => {
    const color = COLOURS[side],
      updates = points.map(([update]) => update);
    const curve = (name, column, width, more) => {
      const values = points.map((point) => point[column]);
      return drawLine(name, updates, values, { color, width, dash: DASHES[side] }, more);
    };
    const floorName = t("{run}: floor {value}", { run, value: floor.toFixed(3) });
    return [
      curve(t("{run}: loss", { run }), 1, 2),
      ...(minimisesAnother(points) ? [curve(t("{run}: training loss", { run }), 2, 1)] : []),
      curve(t("{run}: gradient", { run }), 3, 1.2, { yaxis: "y2", showlegend: false }),
      ...(floor > 0 ? [level(floor, floorName, color, "dot")] : []),
    ];
  });
  const [{ guess }] = runs;
  const guessName = t("random guess: ln |V| = {value}", { value: guess.toFixed(2) });
  traces.push(level(guess, guessName, ink, "dash"));
  const axis = { zeroline: false, type: "log", exponentformat: "power", dtick: 1, gridcolor };
  const cursor = { type: "line", yref: "paper", y0: 0, y1: 1, line: { color: ink, width: 1 } };
  const layout = {
    height: box.clientWidth < 520 ? 380 : 320,
    autosize: true,
    margin: { l: 58, r: 8, t: 8, b: 38 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink, size: 12 },
    separators: `.${thousandsSeparator()}`,
    showlegend: true,
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
    grid: { rows: 2, columns: 1 },
    xaxis: { gridcolor, range: [0, last], title: { text: t("update") } },
    yaxis: { ...axis, domain: [0.34, 1], title: { text: t("loss, nats per token") } },
    yaxis2: { ...axis, domain: [0, 0.26], title: { text: t("gradient") } },
    shapes: selected === null ? [] : [{ ...cursor, x0: selected, x1: selected }],
  };
  return Plotly.react(box, traces, layout, { displayModeBar: false, responsive: true });
}

/**
 * Draw the maps of one update and sentence pair. Maps of teacher forcing and of decoding are drawn below each other where both
 * exist.
 * @param {any} box
 * @param {{
 *   frame: any, index: number, pair: any, kind: string,
 *   colour: (share: number) => number[], describe: (words: string) => void,
 * }} options frame: the update; index: that of the pair; describe is called with the number under the pointer
 */
export function drawMaps(box, options) {
  const { frame, index, kind } = options,
    maps = frame?.maps[index] ?? {};
  // A Transformer's cross-attention corresponds to the alignment of a recurrent network.
  const counterpart = { cross: "alignment", alignment: "cross" }[kind],
    isReplaced = !maps[kind] && maps[counterpart];
  const heading = (words) => el("h3", {}, words);
  box.replaceChildren(createMaps({ ...options, kind: isReplaced ? counterpart : kind }));
  if (isReplaced) box.prepend(heading(KIND_TITLES[counterpart]));
  if (kind !== "decoder_self" || !maps[DECODED]) return;
  box.prepend(heading(t("teacher-forced, with the whole target given")));
  box.append(
    heading(t("while decoding, with its own words so far")),
    createMaps({ ...options, kind: DECODED }),
  );
}

// The maps of a kind: a canvas for each head, a row for each layer.
function createMaps({ frame, index, kind, pair, colour, describe }) {
  const maps = frame?.maps[index]?.[kind];
  if (!maps) return el("p", { class: "note" }, t("This network has no maps of this kind."));
  const [layers, heads, queries, keys] = maps.shape,
    values = base64ToBytes(maps.data);
  const { read, written } = kind === DECODED ? frame.outputs[index] : pair,
    steps = read.map((token, i) => `${token} → ${written[i]}`),
    rows = kind === "encoder_self" ? pair.source : steps,
    columns = kind.startsWith("decoder_self") ? read : pair.source;
  const hasHeadings = layers * heads > 1,
    headings = (count, name) =>
      hasHeadings ? Array.from({ length: count }, (_, i) => `${name}${i + 1}`) : null;
  const createCell = (layer, head) => {
    const start = (layer * heads + head) * queries * keys,
      weights = values.subarray(start, start + queries * keys);
    const name = t("Layer {layer}, head {head}", { layer: layer + 1, head: head + 1 });
    const canvas = el("canvas", {
      role: "img",
      "aria-label": `${t("{kind}, update {n}", { kind: KIND_TITLES[kind], n: frame.update })}: ${name}`,
      style: `--shape: ${keys} / ${queries}`,
      onpointermove: (event) => {
        const [row, column] = cellAt(event, canvas, queries, keys);
        describe(
          t("{head}: {query} · {key}: {weight}", {
            head: name,
            query: rows[row],
            key: columns[column],
            weight: formatFixed(weights[row * keys + column] / 255, 2),
          }),
        );
      },
    });
    const map = { values: weights, rows: queries, columns: keys };
    paintMap(canvas, map, (byte) => colour(byte / 255));
    return { content: canvas };
  };
  const { root: grid } = createGrid(
    {
      kind: "heads",
      columns: headings(heads, "H"),
      rows: headings(layers, "L"),
      cells: Array.from({ length: layers }, (_, layer) =>
        Array.from({ length: heads }, (_, head) => createCell(layer, head)),
      ),
    },
    { quiet: true, walks: false },
  );
  const tokenLine = (label, tokens) =>
    el("p", { class: "tokens" }, el("span", { class: "label" }, label), " ", tokens.join(" · "));
  return el("div", { class: "grid" }, [
    grid,
    tokenLine(t("rows:"), rows),
    tokenLine(t("columns:"), columns),
  ]);
}
