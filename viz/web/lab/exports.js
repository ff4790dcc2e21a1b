// What a panel lets people take away (viz/ui/lab/downloads.py): its matrix or its grids as a picture, and files that the server writes.
import { download, el } from "../core/dom.js";
import { said, t } from "../core/language.js";
import { png } from "../picture/copy.js";
import { element } from "../picture/drawing.js";

function save({ file, media, data }) {
  download(file, new Blob([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], { type: media }));
}

export function exports(block, keep, api) {
  const status = el("span", { class: "caption", role: "status" });
  const button = (text, title, onclick) =>
    el("button", { type: "button", class: "action", title, onclick }, text);
  async function picture(event, format) {
    const shown = event.target
      .closest(".atlas-panel")
      .querySelector(".matrix .scroll > table, .heads .kinds, .heads .cells");
    try {
      const svg = element(shown);
      const blob = format === "svg" ? new Blob([svg], { type: "image/svg+xml" }) : await png(svg);
      download(`why.${format}`, blob);
    } catch (error) {
      status.textContent = t("No picture could be made: {why}.", { why: error.message });
    }
  }
  const file = (format) => {
    status.textContent = t("Computing …");
    api.request(block.act, { ...block.data, format }, (value) => {
      status.textContent = said(value.error) || "";
      if (value.blocks) save(value.blocks[0]);
    });
  };
  return el(
    "div",
    { class: "exports", role: "group", "aria-label": t("Export and share") },
    el("span", { class: "caption" }, t("Export")),
    block.picture
      ? [
          button("PNG", t("What is shown, as a picture"), (event) => picture(event, "png")),
          button("SVG", t("What is shown, as a vector picture"), (event) => picture(event, "svg")),
        ]
      : null,
    block.formats.map(({ text, about }) => button(text.toUpperCase(), about, () => file(text))),
    status,
  );
}
