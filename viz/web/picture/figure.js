// A Plotly figure of a panel. If clicks on its points lead somewhere, arrow keys move between the
// points and Enter follows. The request of a click is sent as soon as pointer or keys rest on the
// point.
import { el, onThemeChange, cssVariable } from "../core/dom.js";
import { arrowStep } from "../core/keys.js";
import { toText, t, thousandsSeparator } from "../core/language.js";
import { loadPlotly, nextTask } from "../core/plotly.js";
import { createPicture } from "./copy.js";

const REST = 250; // milliseconds
const NARROW = 560; // pixels, below which a figure is drawn upright if it can be
const UNDER = -0.31; // position of a legend of many rows below the axis title, as a share of the plot's height

// Prepare a figure in place: translate its words, and let labels overflow. To find labels that do
// not fit, Plotly would measure all of them twice, which takes longer than everything else.
function prepareFigure({ data, layout }, rows) {
  const { xaxis, yaxis } = layout;
  for (const note of layout.annotations ?? []) note.text = toText(note.text);
  if (xaxis.ticktext) xaxis.ticktext = xaxis.ticktext.map(toText);
  if (rows.length) yaxis.ticktext = rows.map(toText);
  for (const [name, axis] of Object.entries(layout))
    if (/^[xy]axis/.test(name)) axis.ticklabeloverflow = "allow";
  for (const { title } of [xaxis, yaxis]) if (title) title.text = toText(title.text);
  for (const trace of data) {
    if (trace.colorbar) trace.colorbar.ticklabeloverflow = "allow";
    for (const key of ["name", "hovertemplate", "text", "customdata"])
      if (Array.isArray(trace[key])) trace[key] = trace[key].map(toText);
      else if (trace[key]) trace[key] = toText(trace[key]);
  }
}

// Turn a figure from horizontal to vertical.
function turnUpright({ data, layout }) {
  const turned = ({ range, tickvals, ...rest }) => ({
    ...rest,
    ...(range ? { range: range.map((end) => -end).reverse() } : {}),
    ...(tickvals ? { tickvals: tickvals.map((at) => -at) } : {}),
  });
  const shape = ({ x0, x1, y0, y1, ...rest }) => {
    const place = { x0: y0, x1: y1, y0: -x1, y1: -x0 };
    return { ...rest, ...place, xref: rest.yref, yref: "y" };
  };
  const trace = ({ x, y, textposition, ...rest }) => {
    const text = Array.isArray(textposition) ? "middle left" : textposition;
    const place = { x: y.map((at) => -at), y: x.map((at) => -at) };
    return { ...rest, ...place, ...(text ? { textposition: text } : {}) };
  };
  const axes = { xaxis: turned(layout.yaxis), yaxis: turned(layout.xaxis) };
  return {
    data: data.map(trace),
    layout: { ...layout, ...axes, shapes: layout.shapes.map(shape) },
  };
}

/**
 * Keep the pictures of the figures in a part of the page. Call the returned function once other figures have replaced them:
 * each shows the picture of its predecessor until it is drawn.
 * @param {Element} parent
 */
export function carryFigures(parent) {
  const pictures = [...parent.querySelectorAll(".figure")].map((box) => {
    const picture = box.querySelector(".plot-container, .before > .plotly");
    picture?.classList.remove("plot-container"); // or Plotly would draw into it
    window.Plotly?.purge(box);
    return picture;
  });
  return () => {
    const boxes = parent.querySelectorAll(".figure");
    for (const [i, picture] of pictures.entries())
      if (picture && boxes[i])
        boxes[i].append(
          el("div", { class: "before js-plotly-plot", "aria-hidden": "true" }, picture),
        );
  };
}

export function createFigure(block, afterInsert, { describePicture, follow }) {
  const points = block.figure.data.flatMap(({ ids = [] }, curveNumber) =>
    ids.flatMap((id, pointNumber) =>
      id in block.clicks ? [{ id, curveNumber, pointNumber }] : [],
    ),
  );
  const stands = () => Boolean(block.upright) && box.clientWidth < NARROW;
  const tall = () => (stands() ? block.upright : block.height);
  const box = el("div", {
    class: "figure",
    role: points.length ? "application" : "img",
    tabindex: points.length ? 0 : null,
    "aria-label": block.label,
    style: `height: ${block.height}px`,
  });
  const fit = (room) => {
    const height = room ? Math.min(room.height, Math.max(tall(), room.width / 2)) : tall();
    box.style.height = `${height}px`;
    if (box.layout) Plotly.relayout(box, { width: box.clientWidth, height });
  };
  const picture = createPicture(box, { ...describePicture(toText(block.label)), fit });
  if (block.width) picture.style.maxWidth = `${block.width}px`;
  prepareFigure(block.figure, block.rows);

  // The point under the pointer or the keys: its words are spoken, and what it leads to is
  // requested.
  const spoken = el("span", { class: "sr-only", role: "status" });
  let at = -1,
    rests = 0;
  function rest(id) {
    clearTimeout(rests);
    const to = block.clicks[id];
    if (to?.act) rests = setTimeout(() => box.isConnected && follow(to), REST);
  }
  function go(step) {
    at = (Math.max(at, step < 0 ? 0 : -1) + step + points.length) % points.length;
    const { id, curveNumber, pointNumber } = points[at],
      { text, customdata, mode } = block.figure.data[curveNumber];
    Plotly.Fx.hover(box, [{ curveNumber, pointNumber }]);
    spoken.textContent = (mode === "markers" ? text : customdata)[pointNumber];
    rest(id);
  }
  if (points.length) {
    picture.append(spoken);
    box.addEventListener("keydown", (event) => {
      if (!box.layout) return; // not drawn yet
      const step = arrowStep(event);
      if (step) go(step[0] || step[1]);
      else if (["Enter", " "].includes(event.key) && at >= 0) follow(block.clicks[points[at].id]);
      else if (event.key === "Escape" && at >= 0) leave();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    box.addEventListener("blur", leave);
  }
  function leave() {
    clearTimeout(rests);
    at = -1;
    if (box.layout) Plotly.Fx.unhover(box);
  }

  function draw() {
    const { data, layout } = stands() ? turnUpright(block.figure) : block.figure,
      height = tall(),
      legend = { ...layout.legend };
    if (legend.y < 0 && box.clientWidth < NARROW) legend.y = UNDER;
    box.style.height = `${height}px`;
    box.dataset.upright = String(stands());
    const font = { ...layout.font, color: cssVariable("--atlas-muted") };
    const look = { font, legend, height, autosize: true, separators: `.${thousandsSeparator()}` };
    const plot = Plotly.react(box, data, { ...layout, ...look }, { displayModeBar: false });
    box.querySelector(":scope > .before")?.remove();
    return plot;
  }
  async function drawOnPage() {
    if (!box.isConnected) return; // it was replaced
    await draw();
    if (!box.isConnected) return;
    const open = ({ points: [{ id }] }) => id in block.clicks && follow(block.clicks[id]);
    box.on("plotly_click", open);
    box.on("plotly_hover", ({ points: [{ id }] }) => rest(id));
    box.on("plotly_unhover", () => clearTimeout(rests));
    if (points.length) rest(points[0].id); // request what the first point leads to
    const forget = onThemeChange(() => {
      if (!box.isConnected) forget();
      else Plotly.relayout(box, { "font.color": cssVariable("--atlas-muted") });
    });
    let width = box.clientWidth;
    new ResizeObserver(() => {
      if (!box.isConnected || !box.clientWidth || box.clientWidth === width) return;
      width = box.clientWidth;
      if (String(stands()) === box.dataset.upright) Plotly.relayout(box, { width });
      else draw();
    }).observe(box);
  }
  const showFailure = () =>
    box.replaceChildren(t("The server is not responding. Please try again in a moment."));
  afterInsert.push(() => loadPlotly().then(() => nextTask().then(drawOnPage), showFailure));
  return picture;
}
