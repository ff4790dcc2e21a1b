// Export and share.
import { button, download, el } from "../core/dom.js";
import { t } from "../core/language.js";
import { copyLink } from "../core/links.js";
import * as model from "./model.js";
import * as states from "./state.js";
import { unpack } from "./trace.js";
import { viewPicture } from "./views/picture.js";
import { framed, png } from "../picture/copy.js";

// context: ask(event, data), formats (of viz/export/formats.py; none where no server can be asked), state(), trace(), map(),
// views, overlays, title() and caption() of what is shown, say(text)
export function createActions(context) {
  const name = (ending) => {
    const { kind, layer, head, overlay } = context.state();
    return `${overlay || "attention"}-${kind}-layer${layer + 1}-head${head + 1}.${ending}`;
  };

  async function picture(format) {
    try {
      const svgText = framed(await viewPicture(context), context.title(), context.caption());
      const blob =
        format === "svg" ? new Blob([svgText], { type: "image/svg+xml" }) : await png(svgText);
      download(name(format), blob);
    } catch (error) {
      context.say(t("No picture could be made: {why}.", { why: error.message }));
    }
  }

  // Without a server: the page's own weights are exact there.
  const csv = () =>
    download(name("csv"), new Blob([model.csv(context.map(), pairs())], { type: "text/csv" }));
  const pairs = () => states.rowPairs(context.state(), context.map(), context.trace());

  // A file of the server's: the whole trace, or the map of this view.
  function file(format) {
    const state = context.state();
    context.ask("export", {
      format,
      key: context.trace().key,
      view: states.viewOf(state),
      both: Boolean(pairs()),
      overlay: state.overlay,
      link: states.toFragment(state, context.trace()),
    });
  }

  function link() {
    const trace = context.trace(),
      whole = trace.interventions !== null;
    copyLink(
      states.toFragment(context.state(), trace),
      context.say,
      ...(whole
        ? []
        : [undefined, t("Link copied, without the change to the model: it has too many parts.")]),
    );
  }

  const files = context.formats
    ? [
        ...context.formats.map(({ name, about }) =>
          button(name.toUpperCase(), () => file(name), { title: about }),
        ),
        button(t("Copy link"), link, { title: t("A link that restores this view") }),
      ]
    : [button("CSV", csv, { title: t("The map as a table") })];
  const root = el(
    "div",
    { class: "exports", role: "group", "aria-label": t("Export and share") },
    el("span", { class: "caption" }, t("Export")),
    button("PNG", () => picture("png"), { title: t("What is shown, as a picture") }),
    button("SVG", () => picture("svg"), { title: t("What is shown, as a vector picture") }),
    ...files,
  );

  return {
    root,
    // {name, type, data}: base64 of a gzipped file, made by the server
    async receive(file) {
      download(file.name, new Blob([await unpack(file.data)], { type: file.type }));
    },
  };
}
