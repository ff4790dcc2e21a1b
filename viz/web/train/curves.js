// The learning curves of one or two toys, with the loss of a guess and the floor, and the gradients' lengths below.
import { escape, themed } from "../core/dom.js";
import { t, thousands } from "../core/language.js";

const COLOURS = { a: "#0072b2", b: "#d55e00" }; // told apart with any colour vision

// runs: [{side, name, points: [[update, loss, minimised, gradient]], floor, guess}]; at: the update that is looked at.
export function drawCurves(box, runs, at) {
  if (!globalThis.Plotly) return;
  const ink = themed("--atlas-muted"),
    line = themed("--atlas-line");
  const last = Math.max(10, ...runs.map((run) => run.points.at(-1)?.[0] ?? 0));
  const level = (y, name, colour, dash) => ({
    x: [0, last],
    y: [y, y],
    name: escape(name),
    mode: "lines",
    line: { color: colour, width: 1.5, dash },
    hoverinfo: "name",
  });
  const data = runs.flatMap((run) => {
    const x = run.points.map((p) => p[0]),
      colour = COLOURS[run.side];
    return [
      {
        x,
        y: run.points.map((p) => p[1]),
        name: escape(t("{run}: loss", { run: run.name })),
        mode: "lines",
        line: { color: colour, width: 2 },
      },
      {
        x,
        y: run.points.map((p) => p[3]),
        name: escape(t("{run}: gradient", { run: run.name })),
        mode: "lines",
        line: { color: colour, width: 1.2 },
        yaxis: "y2",
        showlegend: false,
      },
      ...(run.floor > 0
        ? [
            level(
              run.floor,
              t("{run}: floor {value}", { run: run.name, value: run.floor.toFixed(3) }),
              colour,
              "dot",
            ),
          ]
        : []),
    ];
  });
  if (runs.length)
    data.push(
      level(
        runs[0].guess,
        t("a guess: ln |V| = {value}", { value: runs[0].guess.toFixed(2) }),
        ink,
        "dash",
      ),
    );
  const axis = {
    gridcolor: line,
    zeroline: false,
    type: "log",
    exponentformat: "power",
    dtick: 1,
  };
  const layout = {
    height: box.clientWidth < 520 ? 380 : 320,
    autosize: true,
    margin: { l: 58, r: 8, t: 8, b: 38 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink, size: 12 },
    separators: `.${thousands()}`,
    showlegend: true,
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
    grid: { rows: 2, columns: 1 },
    xaxis: { gridcolor: line, range: [0, last], title: { text: t("update") } },
    yaxis: { ...axis, domain: [0.34, 1], title: { text: t("loss, nats a token") } },
    yaxis2: { ...axis, domain: [0, 0.26], title: { text: t("gradient") } },
    shapes:
      at === null
        ? []
        : [
            {
              type: "line",
              x0: at,
              x1: at,
              yref: "paper",
              y0: 0,
              y1: 1,
              line: { color: ink, width: 1 },
            },
          ],
  };
  return Plotly.react(box, data, layout, {
    displaylogo: false,
    showSendToCloud: false,
    displayModeBar: false,
    responsive: true,
  });
}
