// The learning curves of one or two toys, with the loss of a guess and the floor, and the gradients' lengths below.
import { escapeTags, cssVariable } from "../core/dom.js";
import { t, thousandsSeparator } from "../core/language.js";

const COLOURS = { a: "#0072b2", b: "#d55e00" }; // told apart with any colour vision

// runs: [{side, name, points: [[update, loss, minimised, gradient]], floor, guess}]; at: the update that is looked at.
export function drawCurves(box, runs, at) {
  if (!globalThis.Plotly) return;
  const ink = cssVariable("--atlas-muted"),
    line = cssVariable("--atlas-line");
  const last = Math.max(10, ...runs.map((run) => run.points.at(-1)?.[0] ?? 0));
  // A line at one height.
  const level = (y, name, color, dash) => ({
    x: [0, last],
    y: [y, y],
    name: escapeTags(name),
    mode: "lines",
    line: { color, width: 1.5, dash },
    hoverinfo: "name",
  });
  const data = runs.flatMap(({ side, name: run, points, floor }) => {
    const color = COLOURS[side];
    const curve = (name, column, width, more) => ({
      x: points.map(([update]) => update),
      y: points.map((point) => point[column]),
      name: escapeTags(name),
      mode: "lines",
      line: { color, width },
      ...more,
    });
    const floorName = t("{run}: floor {value}", { run, value: floor.toFixed(3) });
    return [
      curve(t("{run}: loss", { run }), 1, 2),
      curve(t("{run}: gradient", { run }), 3, 1.2, { yaxis: "y2", showlegend: false }),
      ...(floor > 0 ? [level(floor, floorName, color, "dot")] : []),
    ];
  });
  const [{ guess }] = runs;
  const guessName = t("a guess: ln |V| = {value}", { value: guess.toFixed(2) });
  data.push(level(guess, guessName, ink, "dash"));
  const log = { zeroline: false, type: "log", exponentformat: "power", dtick: 1 },
    axis = { ...log, gridcolor: line };
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
    xaxis: { gridcolor: line, range: [0, last], title: { text: t("update") } },
    yaxis: { ...axis, domain: [0.34, 1], title: { text: t("loss, nats a token") } },
    yaxis2: { ...axis, domain: [0, 0.26], title: { text: t("gradient") } },
    shapes: at === null ? [] : [{ ...cursor, x0: at, x1: at }],
  };
  return Plotly.react(box, data, layout, {
    displaylogo: false,
    showSendToCloud: false,
    displayModeBar: false,
    responsive: true,
  });
}
