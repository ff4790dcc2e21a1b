// The block of a survey of all heads (viz/wire/survey.py): a grid, a scatter plot or a table,
// filtered by name, with adjustable thresholds.
import { button, el, menu, rangeField, table as tableOf } from "../core/dom.js";
import { formatFixed } from "../core/format.js";
import { createGrid, shareStyle } from "../core/grid.js";
import { toText, t } from "../core/language.js";
import { copyLink, linkFields, pageLink, tabLinks } from "../core/links.js";
import { createScrollBox } from "../lab/scroll.js";
import { createPicture } from "../picture/copy.js";
import { drawScatter } from "./scatter.js";

// Return all heads with a function `of(statistic, part)` for their values.
function flattenHeads(block) {
  return block.kinds.flatMap((kind) =>
    Array.from({ length: kind.layers * kind.heads }, (_, i) => ({
      kind: kind.kind,
      title: kind.title,
      layer: Math.floor(i / kind.heads),
      head: i % kind.heads,
      graded: kind.graded[i], // what it does most, in words
      of: (name, part = "value") => kind.statistics[name]?.[part][i] ?? null,
    })),
  );
}

// The choices of the visitor or a link, which a survey that is drawn for another sentence or model shows again.
const LINKED = { view: "view", kind: "kind", x: "statistic", y: "against", label: "named" }; // menu -> field of a link
const saved = { head: null }; // {kind, layer, head}; and by menu: its value
let restoreCurrent = null; // makes the survey on the page show what is saved
function followLink() {
  const link = pageLink(),
    at = (name) => (/^\d{1,3}$/.test(link.get(name) || "") ? Number(link.get(name)) - 1 : null);
  if (link.get("panel") !== "heads-survey") return;
  for (const [name, field] of Object.entries(LINKED)) saved[name] = link.get(field);
  saved.head = { kind: link.get("kind"), layer: at("layer"), head: at("head") };
  restoreCurrent?.();
}
window.addEventListener("hashchange", followLink);
followLink();

export function survey(block, afterInsert, api) {
  const heads = flattenHeads(block),
    statistics = block.statistics,
    names = Object.keys(statistics);
  const naming = names.filter((name) => statistics[name].threshold !== null);
  const thresholds = Object.fromEntries(naming.map((name) => [name, statistics[name].threshold]));
  const hue = Object.fromEntries(naming.map((name, i) => [name, i])); // index on a circle of 17 hues, see lab/panel.css
  const importance = names.includes("ablation") ? "ablation" : "gradient";
  const state = { sort: null, down: true, chosen: null }; // and the value of each menu, see draw()
  const title = (name) => toText(statistics[name].title);
  const stage = el("div", { class: "stage" }),
    count = el("span", { class: "count", role: "status" });

  const choose = (head, node) => {
    state.chosen = head;
    saved.head = { kind: head.kind, layer: head.layer, head: head.head };
    for (const old of stage.querySelectorAll(".chosen")) old.classList.remove("chosen");
    node?.classList.add("chosen");
    api.askForSlot("card", "card", saved.head);
  };
  // Return the statistics that name a head, the one furthest above its threshold first.
  function named(head) {
    const excess = (name) => head.of(name, "low") - thresholds[name];
    return naming
      .filter((name) => head.of(name, "sure") && excess(name) > 0)
      .sort((a, b) => excess(b) - excess(a));
  }
  const isShown = (head) =>
    state.label === "" ||
    (state.label === "none" ? !named(head).length : named(head).includes(state.label));
  const describeHead = (head) => {
    const plain = named(head).map((name) => toText(statistics[name].plain)),
      place = t("layer {layer}, head {head}", { layer: head.layer + 1, head: head.head + 1 });
    return `${toText(head.title)}, ${place}: ${plain.join("; ") || toText(head.graded)}`;
  };

  function grid(visible) {
    const kind = block.kinds.find((block) => block.kind === state.kind),
      most = Math.max(...heads.map((head) => Math.abs(head.of(state.x) ?? 0)), 1e-9);
    const limit = statistics[state.x].share ? Math.max(0.5, most) : most;
    const kindHeads = heads.filter((head) => head.kind === kind.kind);
    const cell = (head) => {
      const names = named(head),
        value = head.of(state.x);
      return {
        ...shareStyle(value === null ? null : Math.max(0, value) / limit),
        class: [
          "head-cell",
          visible.has(head) ? "" : "faint",
          head === state.chosen ? "chosen" : "",
        ].join(" "),
        title: describeHead(head),
        name: `${describeHead(head)}. ${title(state.x)}: ${formatFixed(value, 3)}`,
        data: { "data-named": names.length > 0 },
        content: [
          el("b", {}, `${head.layer + 1}.${head.head + 1}`),
          el("span", {}, formatFixed(value, 2)),
          el("small", {}, names.length ? title(names[0]) : ""),
        ],
      };
    };
    const act = (layer, head) => choose(kindHeads[layer * kind.heads + head], nodes[layer][head]);
    const { root, nodes } = createGrid(
      {
        name: `${toText(kind.title)}: ${title(state.x)}`,
        kind: "named",
        cells: Object.values(Object.groupBy(kindHeads, ({ layer }) => layer)).map((row) =>
          row.map(cell),
        ),
      },
      { act },
    );
    return root;
  }

  function table(visible) {
    const columns = [...new Set([state.x, state.y, importance])].filter(
      (name) => name in statistics,
    );
    const sort = columns.includes(state.sort) ? state.sort : columns[0];
    const rows = heads
      .filter((head) => visible.has(head))
      .sort((a, b) => (state.down ? 1 : -1) * ((b.of(sort) ?? -1) - (a.of(sort) ?? -1)));
    const heading = (name) => {
      const isSorted = name === sort,
        order = isSorted ? (state.down ? "descending" : "ascending") : null;
      const by = () => {
        Object.assign(state, { sort: name, down: !isSorted || !state.down });
        draw();
      };
      const arrow = { descending: " ↓", ascending: " ↑" }[order] ?? "";
      return el("th", { scope: "col", class: "right", "aria-sort": order }, [
        button(`${title(name)}${arrow}`, by),
      ]);
    };
    const number = (head, name) => {
      const [value, low, high] = ["value", "low", "high"].map((part) => head.of(name, part));
      const range = value === null ? null : `${formatFixed(low, 3)} – ${formatFixed(high, 3)}`;
      return el("td", { class: "right", title: range }, formatFixed(value, 3));
    };
    const row = (head) => {
      const name = `${toText(head.title)} ${head.layer + 1}.${head.head + 1}`,
        chooses = button(name, () => choose(head, chooses));
      return el("tr", {}, [
        el("th", { scope: "row" }, chooses),
        columns.map((name) => number(head, name)),
        el("td", {}, named(head).map(title).join(", ")),
      ]);
    };
    return createScrollBox(
      tableOf([t("head"), ...columns.map(heading), t("names")], rows.map(row)),
      {
        "aria-label": t("All heads"),
      },
    );
  }

  function draw() {
    for (const [name, { value }] of Object.entries(menus)) state[name] = value;
    // Alignment, for instance, is a statistic of cross-attention only.
    const kind = block.kinds.find(({ kind }) => kind === state.kind);
    if (state.view === "grid" && !(state.x in kind.statistics))
      menus.x.value = state.x = names.find((name) => name in kind.statistics);
    const visible = new Set(heads.filter(isShown));
    copyStatus.replaceChildren(); // the message was about the view before
    count.replaceChildren(t("{n} of {all} heads", { n: visible.size, all: heads.length }));
    threshold.hidden = !(state.label in thresholds);
    if (!threshold.hidden) {
      slider.value = thresholds[state.label];
      thresholdText.textContent = thresholds[state.label].toFixed(2);
    }
    menus.kind.parentElement.hidden = state.view !== "grid";
    menus.y.parentElement.hidden = state.view === "grid";
    about.replaceChildren(
      `${title(state.x)}: ${toText(statistics[state.x].plain)} (${toText(statistics[state.x].exact)})`,
    );
    stage.replaceChildren(views[state.view](visible));
  }
  const survey = { heads, state, statistics, title, importance, choose, named, describeHead, hue };
  const views = {
    grid,
    scatter: (visible) => drawScatter(visible, { ...survey, room: stage.clientWidth }),
    table,
  };

  // Show what a person or a link chose, as far as this survey has it.
  function restore() {
    for (const [name, { options }] of Object.entries(menus))
      for (const option of options) option.selected ||= option.value === saved[name];
    const isSaved = (head) =>
      ["kind", "layer", "head"].every((name) => head[name] === saved.head?.[name]);
    state.chosen = heads.find(isSaved) ?? state.chosen;
    draw();
    if (state.chosen) choose(state.chosen, stage.querySelector(".chosen"));
  }

  function linkOfView() {
    const { kind, layer, head } =
      state.chosen && (state.view !== "grid" || state.chosen.kind === state.kind)
        ? state.chosen
        : state;
    return linkFields(block.link, {
      tab: "more",
      panel: "heads-survey",
      ...Object.fromEntries(Object.entries(LINKED).map(([name, field]) => [field, state[name]])),
      kind,
      ...(layer === undefined ? {} : { layer: layer + 1, head: head + 1 }),
    });
  }

  const select = (name, label, options, selected) => {
    const onchange = () => {
      saved[name] = node.value;
      draw();
    };
    const node = menu(options, selected, { onchange });
    el("label", {}, el("span", {}, label), node);
    return node;
  };
  const all = names.map((name) => [name, title(name)]);
  const menus = {
    view: select("view", t("show as"), [
      ["grid", t("layers by heads")],
      ["scatter", t("scatter")],
      ["table", t("table")],
    ]),
    kind: select(
      "kind",
      t("attention"),
      block.kinds.map((kind) => [kind.kind, toText(kind.title)]),
    ),
    x: select("x", t("statistic"), all),
    y: select("y", t("against"), all, names.includes("confidence") ? "confidence" : names[1]),
    label: select("label", t("heads named"), [
      ["", t("any")],
      ["none", t("no name")],
      ...naming.map((name) => [name, title(name)]),
    ]),
  };
  const thresholdText = el("output", {}),
    slider = rangeField(null, { min: 0, max: 1, step: 0.01 }, (value) => {
      thresholds[state.label] = value;
      draw();
    });
  const threshold = el("label", {}, el("span", {}, t("threshold")), slider, thresholdText),
    about = el("p", { class: "text note" });
  const copyStatus = el("span", { class: "copied", role: "status" });
  const copy = () => copyLink(linkOfView(), (message) => copyStatus.replaceChildren(message)),
    link = button(t("Copy link"), copy, { title: t("A link that restores this view") });
  const root = el("div", { class: "survey" }, [
    el("div", { class: "survey-controls" }, [
      Object.values(menus).map((menu) => menu.parentElement),
      threshold,
      count,
      link,
      copyStatus,
    ]),
    about,
    createPicture(stage, {
      title: () =>
        `${title(state.x)} · ${toText(block.kinds.find(({ kind }) => kind === state.kind).title)}`,
      caption: () => about.textContent,
      main: true,
    }),
  ]);
  afterInsert.push(() => {
    restoreCurrent = () => root.isConnected && restore();
    tabLinks.more = () => (root.offsetParent ? linkOfView() : tabLinks.explorer());
    restore();
  });
  return root;
}
