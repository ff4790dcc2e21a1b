// The explorer's view as one SVG: of a map by Plotly, with what is pinned; of the other views as they stand on the page.
import { themed } from "../../core/dom.js";
import { element, plotted, whole, xml } from "../../picture/drawing.js";

function mapPicture(detail) {
  const { data, layout } = detail.figure(),
    pinned = detail.pinned();
  const line = { color: themed("--atlas-accent"), width: 2 };
  const last = { row: layout.yaxis.range[0], column: layout.xaxis.range[1] };
  const band = (x0, x1, y0, y1) => ({ type: "rect", x0, x1, y0, y1, line });
  const shapes = [...layout.shapes];
  if (pinned.row !== null) shapes.push(band(-0.5, last.column, pinned.row - 0.5, pinned.row + 0.5));
  if (pinned.column !== null)
    shapes.push(band(pinned.column - 0.5, pinned.column + 0.5, -0.5, last.row));
  return plotted({ data, layout: { ...layout, shapes } });
}

export function viewPicture({ views, state }) {
  if (views.shown() === "map") return mapPicture(views.pane());
  if (views.shown() === "compare" && state().compare === "pair" && views.compare.pair().length)
    return pairPicture(views.compare);
  return element(views.root, ".compare-bar, .lines-bar > label");
}

// Two pictures beside each other.
async function pairPicture(compare) {
  const parts = [];
  let at = 0,
    height = 0;
  for (const { title, detail } of compare.pair()) {
    const text = await mapPicture(detail),
      { layout } = detail.figure();
    parts.push(
      `<text x="${at + 8}" y="18" font-size="13" font-family="sans-serif" fill="${themed("--atlas-ink")}">${xml(title)}</text>`,
      text.replace("<svg ", `<svg x="${at}" y="26" `),
    );
    at += layout.width + 16;
    height = Math.max(height, layout.height + 26);
  }
  return whole(
    at,
    height,
    `<rect width="100%" height="100%" fill="${themed("--atlas-paper")}"/>${parts.join("")}`,
  );
}
