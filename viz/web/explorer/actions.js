// Actions on the map that is shown: cut the pinned edge out of the model, export the view, copy its
// link.
import { button, download, el, menu } from "../core/dom.js";
import { t } from "../core/language.js";
import { copyLink } from "../core/links.js";
import { captionSvg, svgToFile } from "../picture/copy.js";
import { elementSvg } from "../picture/drawing.js";
import { openAddress } from "../store/translation.js";
import * as model from "./model.js";
import * as states from "./state.js";

/**
 * Create the part that cuts the pinned edge out of the model: the sentence is translated again, and the change is shown below
 * the map.
 * @param {object} setup
 * @param {any} setup.scene what the explorer shows
 * @param {boolean} setup.able whether there is a server to ask
 * @param {(name: string, trace: any, fields: any) => Promise<any>} setup.ask
 */
export function createCut({ scene, able, ask }) {
  const hows = [
      ["renormalise", t("its weight is spread over the rest of the row")],
      ["zero", t("its weight is lost")],
    ],
    how = menu(hows, null, { "aria-label": t("What happens to the edge's weight") });
  const runButton = button(t("Cut this edge and translate again"), run);
  const result = el("div", { class: "cut-result", "aria-live": "polite" });
  const about = { class: "cut", role: "group", "aria-label": t("Cut the pinned edge") };
  const root = el("div", { ...about, hidden: true }, [
    el("div", { class: "cut-bar" }, runButton, how),
    result,
  ]);
  let shownEdges = ""; // the edges that the result is about, as JSON

  // Return the pinned cell as edges – all tokens of a word, every head of a combined map – or null.
  function edges() {
    const { state, map, trace } = scene;
    if (!able || !map) return null;
    const { row, column } = states.pinnedCells(state, map, trace);
    if (row === null || column === null || state.combine === "rollout") return null;
    const shift = states.keyOffset(state, map, trace),
      keys = map.columns[column].positions.map((key) => key - shift),
      size = trace.kinds[state.kind].keys;
    if (keys.some((key) => key < 0 || key >= size)) return null; // columns of a joint map that this kind does not read
    const { kind } = state,
      heads = model.usedHeads(trace, states.viewOf(state));
    return { kind, queries: map.rows[row].positions, keys, heads };
  }

  async function run() {
    root.setAttribute("aria-busy", "true");
    result.replaceChildren(el("p", {}, t("Computing …")));
    const { error, cut } = await ask("cut", scene.trace, { ...edges(), how: how.value });
    root.setAttribute("aria-busy", "false");
    if (error) result.replaceChildren(el("p", { role: "alert" }, error));
    else showChange(cut);
  }

  // change: {same, before, after, words, opens} of viz/explorer/cut.py
  function showChange({ same, before, after, words, opens }) {
    const line = (name, text) => [
      el("dt", {}, name),
      el("dd", { dir: "auto" }, text || t("(nothing)")),
    ];
    result.replaceChildren(...words.map((text) => el("p", {}, text)));
    if (same) return;
    result.append(
      el("dl", {}, line(t("As it is"), before), line(t("Without the edge"), after)),
      button(t("Show on every tab"), () => openAddress(opens)),
    );
  }

  return {
    root,
    // Update after every change of what is pinned or shown.
    follow() {
      const pinnedEdges = edges(),
        name = JSON.stringify([scene.trace.key, pinnedEdges]);
      root.hidden = !pinnedEdges;
      if (name !== shownEdges) result.replaceChildren();
      shownEdges = name;
    },
  };
}

/** Return the view as an SVG, as it is laid out on the page. */
export const viewSvg = ({ root }) =>
  elementSvg(root.querySelector(".compare-body, .detail") ?? root, ".lines-bar > label");

/**
 * Create the buttons that export the view or copy its link.
 * @param {object} setup
 * @param {any} setup.scene what the explorer shows
 * @param {any[] | null} setup.formats of viz/export/formats.py; null without a server
 * @param {(name: string, trace: any, fields: any) => Promise<any>} setup.ask
 * @param {any} setup.views
 * @param {() => string} setup.title @param {() => string} setup.caption of the picture
 * @param {(text: string) => void} setup.tell shows a message
 */
export function createExports({ scene, formats, ask, views, title, caption, tell }) {
  const name = (ending) => {
    const { kind, layer, head, overlay } = scene.state;
    return `${overlay || "attention"}-${kind}-layer${layer + 1}-head${head + 1}.${ending}`;
  };
  const pairs = () => states.rowPairs(scene.state, scene.map, scene.trace);
  const fragment = () => states.toFragment(scene.state, scene.trace);

  async function picture(format) {
    try {
      const svg = captionSvg(viewSvg(views), title(), caption());
      download(name(format), await svgToFile(svg, format));
    } catch (error) {
      tell(t("No picture could be made: {why}.", { why: error.message }));
    }
  }

  // Without a server, from the page's weights, which are exact in an exported file.
  const csv = () =>
    download(name("csv"), new Blob([model.toCsv(scene.map, pairs())], { type: "text/csv" }));

  // Request a file from the server: the whole trace, or the map of this view.
  async function requestFile(format) {
    const { error, file } = await ask("export", scene.trace, {
      format,
      view: states.viewOf(scene.state),
      both: Boolean(pairs()),
      overlay: scene.state.overlay,
      link: fragment(),
    });
    if (error) tell(error);
    else download(file.name, file.blob);
  }

  function link() {
    const lacks = t("Link copied, without the change to the model: it has too many parts.");
    copyLink(fragment(), tell, undefined, scene.trace.interventions === null ? lacks : undefined);
  }

  const formatButton = ({ name: format, about }) =>
    button(format.toUpperCase(), () => requestFile(format), { title: about });
  return el("div", { class: "exports", role: "group", "aria-label": t("Export and share") }, [
    el("span", { class: "caption" }, t("Export")),
    button("PNG", () => picture("png"), { title: t("What is shown, as a picture") }),
    button("SVG", () => picture("svg"), { title: t("What is shown, as a vector picture") }),
    formats?.map(formatButton) ?? button("CSV", csv, { title: t("The map as a table") }),
    formats && button(t("Copy link"), link, { title: t("A link that restores this view") }),
  ]);
}
