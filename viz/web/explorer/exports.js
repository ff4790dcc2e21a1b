// Export and share: the view as a picture, as a file, as a link.
import { button, download, el, cssVariable } from "../core/dom.js";
import { t } from "../core/language.js";
import { copyLink } from "../core/links.js";
import { framed, png } from "../picture/copy.js";
import { element, plotted, whole, xml } from "../picture/drawing.js";
import * as model from "./model.js";
import * as states from "./state.js";

// A map by Plotly, with what is pinned.
function mapPicture(detail) {
  const { data, layout } = detail.figure(),
    { row, column } = detail.pinned();
  const line = { color: cssVariable("--atlas-accent"), width: 2 },
    band = (x0, x1, y0, y1) => ({ type: "rect", x0, x1, y0, y1, line });
  const shapes = [...layout.shapes];
  if (row !== null) shapes.push(band(-0.5, layout.xaxis.range[1], row - 0.5, row + 0.5));
  if (column !== null) shapes.push(band(column - 0.5, column + 0.5, -0.5, layout.yaxis.range[0]));
  return plotted({ data, layout: { ...layout, shapes } });
}

// Two maps beside each other.
async function pairPicture(pair) {
  const parts = [];
  let at = 0,
    height = 0;
  for (const { title, detail } of pair) {
    const text = await mapPicture(detail),
      { layout } = detail.figure();
    parts.push(
      `<text x="${at + 8}" y="18" font-size="13" font-family="sans-serif" fill="${cssVariable("--atlas-ink")}">${xml(title)}</text>`,
      text.replace("<svg ", `<svg x="${at}" y="26" `),
    );
    at += layout.width + 16;
    height = Math.max(height, layout.height + 26);
  }
  const paper = `<rect width="100%" height="100%" fill="${cssVariable("--atlas-paper")}"/>`;
  return whole(at, height, paper + parts.join(""));
}

// The view as one SVG: maps as they are drawn, the other views as they stand on the page.
export function viewPicture(views) {
  const pair = views.shown() === "compare" ? views.compare.pair() : [];
  if (views.shown() === "map") return mapPicture(views.pane());
  return pair.length ? pairPicture(pair) : element(views.root, ".compare-bar, .lines-bar > label");
}

// scene: what is looked at; formats: of viz/export/formats.py, none where no server can be asked; ask(event, data); views; title()
// and caption() of what is shown; tell(text)
export function createExports({ scene, formats, ask, views, title, caption, tell }) {
  const name = (ending) => {
    const { kind, layer, head, overlay } = scene.state;
    return `${overlay || "attention"}-${kind}-layer${layer + 1}-head${head + 1}.${ending}`;
  };
  const pairs = () => states.rowPairs(scene.state, scene.map, scene.trace);
  const fragment = () => states.toFragment(scene.state, scene.trace);

  async function picture(format) {
    try {
      const svg = framed(await viewPicture(views), title(), caption());
      const blob = format === "svg" ? new Blob([svg], { type: "image/svg+xml" }) : await png(svg);
      download(name(format), blob);
    } catch (error) {
      tell(t("No picture could be made: {why}.", { why: error.message }));
    }
  }

  // Without a server: the page's own weights are exact there.
  const csv = () =>
    download(name("csv"), new Blob([model.csv(scene.map, pairs())], { type: "text/csv" }));

  // A file of the server's: the whole trace, or the map of this view.
  const file = (format) =>
    ask("export", {
      format,
      key: scene.trace.key,
      view: states.viewOf(scene.state),
      both: Boolean(pairs()),
      overlay: scene.state.overlay,
      link: fragment(),
    });

  function link() {
    const lacks = t("Link copied, without the change to the model: it has too many parts.");
    copyLink(fragment(), tell, undefined, scene.trace.interventions === null ? lacks : undefined);
  }

  const formatButton = ({ name: format, about }) =>
    button(format.toUpperCase(), () => file(format), { title: about });
  const root = el("div", { class: "exports", role: "group", "aria-label": t("Export and share") }, [
    el("span", { class: "caption" }, t("Export")),
    button("PNG", () => picture("png"), { title: t("What is shown, as a picture") }),
    button("SVG", () => picture("svg"), { title: t("What is shown, as a vector picture") }),
    formats?.map(formatButton) ?? button("CSV", csv, { title: t("The map as a table") }),
    formats && button(t("Copy link"), link, { title: t("A link that restores this view") }),
  ]);

  return root;
}
