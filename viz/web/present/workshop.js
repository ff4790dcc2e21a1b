// Makes a workshop link, which sets the model, a tour, the wording and the visible tabs (docs/how-to/teaching.md).
import { ask } from "../core/ask.js";
import { button, createOptions, el, loadStyleOf, menu } from "../core/dom.js";
import { toText, t } from "../core/language.js";
import { copyLink } from "../core/links.js";
import { isTechnical } from "../core/wording.js";
import { createLayer } from "./layer.js";

/** Create the panel, {open}, once its choices and style sheet have loaded. */
export async function createWorkshop() {
  const [choices] = await Promise.all([
    ask("page_workshop", {}),
    loadStyleOf(new URL("views.js", import.meta.url).href),
  ]);
  const status = el("p", { class: "status", role: "status" });
  const labelled = (label, field) => el("label", { class: "tools" }, el("span", {}, label), field);
  const models = menu(
    (choices.models ?? []).map(({ title }, i) => [String(i), toText(title)]),
    "0",
    { onchange: offerTours },
  );
  const tours = menu([], "");
  const wording = menu(
    [
      ["plain", t("plain")],
      ["technical", t("technical")],
    ],
    isTechnical() ? "technical" : "plain",
  );
  const boxes = [...document.querySelectorAll("#tabs > .tab-wrapper [role=tab][id]")].map((tab) => {
    const name = tab.id.replace(/^tab-|-button$/g, ""),
      box = el("input", { type: "checkbox", value: name, checked: true });
    return { box, label: el("label", {}, box, " ", tab.textContent.trim()) };
  });

  // A model has the tours of its direction.
  function offerTours() {
    const entries = choices.models[Number(models.value)].tours.map((name) => [
      name,
      toText(choices.tours[name]),
    ]);
    const { value } = tours;
    tours.replaceChildren(...createOptions([["", t("no tour")], ...entries], value));
    tours.value = entries.some(([name]) => name === value) ? value : "";
  }

  function copy() {
    const { direction, checkpoint, digest } = choices.models[Number(models.value)],
      shown = boxes.filter(({ box }) => box.checked).map(({ box }) => box.value);
    if (!shown.length) return status.replaceChildren(t("Choose at least one tab."));
    const link = new URLSearchParams({ direction, checkpoint, digest, wording: wording.value });
    if (tours.value) link.set("tour", tours.value);
    if (shown.length < boxes.length) link.set("tabs", shown.join(" "));
    copyLink(link, (content) => status.replaceChildren(content), undefined, t("Link copied."));
  }

  const root = el(
    "section",
    {
      class: "atlas-views",
      "aria-labelledby": "atlas-workshop-title",
      hidden: true,
    },
    el("div", { class: "bar" }, [
      el("h2", { id: "atlas-workshop-title", tabindex: "-1" }, t("A link for a workshop")),
      button("✕", () => layer.leave(), { "aria-label": t("Close") }),
    ]),
    choices.error
      ? el("p", {}, choices.error)
      : [
          labelled(t("Model"), models),
          labelled(t("Tour"), tours),
          labelled(t("Wording"), wording),
          el("fieldset", {}, [
            el("legend", {}, t("Visible tabs")),
            boxes.map(({ label }) => el("div", {}, label)),
          ]),
          el("div", { class: "bar" }, button(t("Copy link"), copy, { class: "strong" })),
        ],
    status,
  );
  if (!choices.error) offerTours();
  document.body.append(root);
  const layer = createLayer(root);
  return { open: layer.open };
}
