// The block of the whole model: the picture of viz/web/inside/, whose modules are loaded when it is first shown.
import { el, loadStyle, svg } from "../core/dom.js";
import { t } from "../core/language.js";
import { createPicture } from "../picture/copy.js";

/**
 * @param {any} block of viz/panels/picture.py
 * @param {(() => unknown)[]} afterInsert
 * @param {import("./blocks.js").Panel} api
 */
export function inside(block, afterInsert, api) {
  const root = el("div", { class: "inside" }, el("p", { class: "text note" }, t("Loading …")));
  /** @type {any} */
  let picture = null;
  afterInsert.push(async () => {
    const sheet = new URL("../inside/inside.css", import.meta.url).href,
      [module] = await Promise.all([import("../inside/inside.js"), loadStyle(sheet)]);
    if (root.isConnected) picture = module.default(root, block, api);
  });
  return createPicture(root, {
    ...api.describePicture(""),
    main: true,
    fit: (room) => picture?.fit(room),
    move: (down, right) => picture?.move(down, right),
    hint: t("← → stages · ↑ ↓ words"),
    svg() {
      const { href, width, height } = picture.image();
      return svg(
        "svg",
        { width, height, viewBox: `0 0 ${width} ${height}` },
        svg("image", { href, width, height }),
      );
    },
  });
}
