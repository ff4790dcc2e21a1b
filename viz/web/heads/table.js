// The heads of a survey as a table that can be sorted.
import { button, el, table } from "../core/dom.js";
import { fixed } from "../core/format.js";
import { said, t } from "../core/language.js";
import { scrolling } from "../lab/scroll.js";

export function drawTable(
  chosen,
  { heads, state, title, importance, statistics, choose, named, draw },
) {
  const columns = [...new Set([state.x, state.y, importance])].filter((name) => name in statistics);
  const sort = columns.includes(state.sort) ? state.sort : columns[0];
  const rows = heads
    .filter((head) => chosen.has(head))
    .sort((a, b) => (state.down ? 1 : -1) * ((b.of(sort) ?? -1) - (a.of(sort) ?? -1)));
  const by = (name) =>
    el(
      "th",
      {
        scope: "col",
        class: "right",
        "aria-sort": name === sort ? (state.down ? "descending" : "ascending") : null,
      },
      button(`${title(name)}${name === sort ? (state.down ? " ↓" : " ↑") : ""}`, () => {
        state.down = name === sort ? !state.down : true;
        state.sort = name;
        draw();
      }),
    );
  return scrolling(
    table(
      [t("head"), ...columns.map(by), t("names")],
      rows.map((head) => {
        const chooses = button(`${said(head.title)} ${head.layer + 1}.${head.head + 1}`, () =>
          choose(head, chooses),
        );
        return el(
          "tr",
          {},
          el("th", { scope: "row" }, chooses),
          columns.map((name) =>
            el(
              "td",
              {
                class: "right",
                title:
                  head.of(name) === null
                    ? null
                    : `${fixed(head.of(name, "low"), 3)} – ${fixed(head.of(name, "high"), 3)}`,
              },
              fixed(head.of(name), 3),
            ),
          ),
          el("td", {}, named(head).map(title).join(", ")),
        );
      }),
    ),
    { "aria-label": t("All heads") },
  );
}
