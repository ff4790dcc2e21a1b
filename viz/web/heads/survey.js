// All heads of a survey (viz/wire/survey.py): as a grid, a scatter or a table, filtered by name, with thresholds to move.
import { el } from "../core/dom.js";
import { said, say, t } from "../core/language.js";
import { copyLink, pageLink, tabLinks } from "../core/links.js";
import { scrolling } from "../lab/scroll.js";

const SHORT = {
  cross: say("Cross"),
  encoder_self: say("Encoder self"),
  decoder_self: say("Decoder self"),
}; // attention, on a label
const svg = (tag, attributes, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") node.style.cssText = value;
    else node.setAttribute(key, String(value));
  }
  node.append(...children);
  return node;
};

// Every head with its values; the names that it has under these thresholds, the surest first.
function flatten(block) {
  return block.kinds.flatMap((kind) =>
    Array.from({ length: kind.layers * kind.heads }, (_, i) => ({
      kind: kind.kind,
      title: kind.title,
      layer: Math.floor(i / kind.heads),
      head: i % kind.heads,
      graded: kind.graded[i], // what it does most, by degrees
      of: (name, part = "value") => kind.statistics[name]?.[part][i] ?? null,
    })),
  );
}
function namesOf(head, thresholds) {
  return Object.entries(thresholds)
    .filter(([name, limit]) => head.of(name, "sure") && head.of(name, "low") > limit)
    .sort((a, b) => head.of(b[0], "low") - b[1] - (head.of(a[0], "low") - a[1]))
    .map(([name]) => name);
}

// What a person or a link has chosen to see: a survey that is drawn anew, for another sentence, shows it again.
const LINKED = { view: "view", kind: "kind", x: "statistic", y: "against", label: "named" }; // a menu -> its field of a link
const kept = { head: null }; // and by the names of menus; head: {kind, layer, head}
let drawn = null; // how the survey that stands on the page takes it over
function follow() {
  const link = pageLink(),
    at = (name) => (/^\d{1,3}$/.test(link.get(name) || "") ? Number(link.get(name)) - 1 : null);
  if (link.get("panel") !== "heads-survey") return;
  for (const [name, field] of Object.entries(LINKED)) kept[name] = link.get(field);
  kept.head = { kind: link.get("kind"), layer: at("layer"), head: at("head") };
  drawn?.();
}
window.addEventListener("hashchange", follow);
follow();

const short = (value) => (value === null ? "–" : value.toFixed(2).replace("-", "−")); // a cell is narrow
const number = (value) => (value === null ? "–" : value.toFixed(3).replace("-", "−"));
const place = (head) =>
  t("layer {layer}, head {head}", { layer: head.layer + 1, head: head.head + 1 });

export function survey(block, keep, api) {
  const heads = flatten(block),
    statistics = block.statistics,
    names = Object.keys(statistics);
  const thresholds = Object.fromEntries(
    names
      .filter((name) => statistics[name].threshold !== null)
      .map((name) => [name, statistics[name].threshold]),
  );
  const hue = Object.fromEntries(Object.keys(thresholds).map((name, i) => [name, i])); // of a circle of 17, viz/web/lab/panel.css
  const importance = names.includes("ablation") ? "ablation" : "gradient";
  const state = {
    view: "grid",
    kind: block.kinds[0].kind,
    x: names[0],
    y: names.includes("confidence") ? "confidence" : names[1],
    label: "",
    sort: null,
    down: true,
    chosen: null,
  };
  const title = (name) => said(statistics[name].title);
  const stage = el("div", { class: "stage" }),
    count = el("span", { class: "count", role: "status" });

  const choose = (head, button) => {
    state.chosen = head;
    kept.head = { kind: head.kind, layer: head.layer, head: head.head };
    for (const old of stage.querySelectorAll(".chosen")) old.classList.remove("chosen");
    button?.classList.add("chosen");
    api.act("card", "card", kept.head);
  };
  const shown = () =>
    heads.filter((head) => {
      const own = namesOf(head, thresholds);
      return (
        state.label === "" || (state.label === "none" ? !own.length : own.includes(state.label))
      );
    });
  const words = (head) => namesOf(head, thresholds).map(title).join(", ");
  const does = (head) => {
    const own = namesOf(head, thresholds);
    return `${said(head.title)}, ${place(head)}: ${own.length ? own.map((name) => said(statistics[name].plain)).join("; ") : said(head.graded)}`;
  };

  function grid(chosen) {
    const kind = block.kinds.find((one) => one.kind === state.kind),
      most = Math.max(...heads.map((head) => Math.abs(head.of(state.x) ?? 0)), 1e-9);
    const limit = statistics[state.x].share ? Math.max(0.5, most) : most;
    const box = el("div", {
      class: "head-grid",
      style: `--heads: ${kind.heads}`,
      role: "group",
      "aria-label": `${said(kind.title)}: ${title(state.x)}`,
    });
    for (const head of heads.filter((one) => one.kind === kind.kind)) {
      const own = namesOf(head, thresholds),
        value = head.of(state.x);
      const button = el(
        "button",
        {
          type: "button",
          class: [
            "head-cell",
            chosen.has(head) ? "" : "faint",
            head === state.chosen ? "chosen" : "",
          ].join(" "),
          style: `--share: ${Math.max(0, Math.min(1, (value ?? 0) / limit))}`,
          "data-named": own.length > 0,
          title: does(head),
          "aria-label": `${does(head)}. ${title(state.x)}: ${number(value)}`,
          onclick: () => choose(head, button),
        },
        el("b", {}, `${head.layer + 1}.${head.head + 1}`),
        el("span", {}, short(value)),
        el("small", {}, own.length ? title(own[0]) : ""),
      );
      box.append(button);
    }
    return box;
  }

  function scatter(chosen) {
    const width = Math.max(280, Math.min(860, stage.clientWidth || 640)); // one unit is one pixel: letters keep their size
    const size = {
      width,
      height: Math.max(260, Math.round(width * 0.5)),
      left: 52,
      bottom: 40,
      top: 10,
      right: 12,
    };
    const points = heads.filter(
      (head) => chosen.has(head) && head.of(state.x) !== null && head.of(state.y) !== null,
    );
    const range = (name) => {
      const values = points.map((head) => head.of(name)),
        top = Math.max(...values, 1e-9);
      return statistics[name].share
        ? [0, Math.min(1, Math.ceil(top * 5 + 0.2) / 5)]
        : [Math.min(0, ...values), top * 1.05];
    };
    const [x, y] = [range(state.x), range(state.y)],
      heavy = Math.max(...points.map((head) => Math.abs(head.of(importance) ?? 0)), 1e-9);
    const at = (value, [low, high], from, to) =>
      from + ((value - low) / (high - low || 1)) * (to - from);
    const across = (value) => at(value, x, size.left, size.width - size.right),
      up = (value) => at(value, y, size.height - size.bottom, size.top);
    const labels = [],
      free = (box) =>
        !labels.some(
          ({ box: other }) =>
            Math.abs(box.x - other.x) < (box.width + other.width) / 2 &&
            Math.abs(box.y - other.y) < 12,
        );
    // Beside its bubble, where there is room: above or below it, to the right or to the left. Else its title says it.
    const label = (head, text) => {
      const [left, top] = [across(head.of(state.x)), up(head.of(state.y))],
        width = 6.2 * [...text].length;
      for (const [side, below] of [
        [1, -7],
        [1, 15],
        [-1, -7],
        [-1, 15],
      ]) {
        const from = left + 11 * side,
          box = { x: from + (side * width) / 2, y: top + below, width };
        if (box.x - width / 2 < size.left || box.x + width / 2 > size.width || !free(box)) continue;
        return labels.push({
          box,
          node: svg(
            "text",
            {
              x: from,
              y: top + below,
              "text-anchor": side > 0 ? "start" : "end",
              class: "point",
              "aria-hidden": "true",
            },
            text,
          ),
        });
      }
      return 0;
    };
    const root = svg("svg", {
      viewBox: `0 0 ${size.width} ${size.height}`,
      class: "scatter",
      role: "group",
      "aria-label": t("Heads by {x} and {y}", { x: title(state.x), y: title(state.y) }),
    });
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const [vx, vy] = [x[0] + share * (x[1] - x[0]), y[0] + share * (y[1] - y[0])];
      root.append(
        svg("line", {
          x1: across(vx),
          x2: across(vx),
          y1: size.top,
          y2: size.height - size.bottom,
        }),
        svg("line", { x1: size.left, x2: size.width - size.right, y1: up(vy), y2: up(vy) }),
        svg(
          "text",
          { x: across(vx), y: size.height - size.bottom + 15, "text-anchor": "middle" },
          String(+vx.toPrecision(2)),
        ),
        svg(
          "text",
          { x: size.left - 6, y: up(vy) + 4, "text-anchor": "end" },
          String(+vy.toPrecision(2)),
        ),
      );
    }
    root.append(
      svg(
        "text",
        {
          x: (size.width + size.left) / 2,
          y: size.height - 6,
          "text-anchor": "middle",
          class: "axis",
        },
        title(state.x),
      ),
      svg(
        "text",
        {
          x: 12,
          y: size.height / 2,
          "text-anchor": "middle",
          class: "axis",
          transform: `rotate(-90 12 ${size.height / 2})`,
        },
        title(state.y),
      ),
    );
    for (const head of points) {
      const own = namesOf(head, thresholds),
        go = () => choose(head, point);
      const point = svg(
        "circle",
        {
          cx: across(head.of(state.x)),
          cy: up(head.of(state.y)),
          r: 4 + 8 * Math.sqrt(Math.abs(head.of(importance) ?? 0) / heavy),
          tabindex: 0,
          role: "button",
          class: [own.length ? "" : "unnamed", head === state.chosen ? "chosen" : ""].join(" "),
          style: own.length ? `--hue: ${hue[own[0]]}` : "",
          "aria-label": `${does(head)}. ${title(state.x)}: ${number(head.of(state.x))}; ${title(state.y)}: ${number(head.of(state.y))}`,
          onclick: go,
          onkeydown: (event) =>
            ["Enter", " "].includes(event.key) && (event.preventDefault(), go()),
        },
        svg("title", {}, does(head)),
      );
      root.append(point);
      if (own.length)
        label(head, `${said(SHORT[head.kind] ?? head.title)} ${head.layer + 1}.${head.head + 1}`);
    }
    root.append(...labels.map(({ node }) => node)); // above all bubbles
    const seen = new Set(points.map((head) => namesOf(head, thresholds)[0]).filter(Boolean));
    return el(
      "div",
      {},
      root,
      el(
        "p",
        { class: "names" },
        Object.keys(hue)
          .filter((name) => seen.has(name))
          .map((name) => el("span", {}, el("i", { style: `--hue: ${hue[name]}` }), title(name))),
        el("span", {}, el("i", { class: "unnamed" }), t("no name")),
        el("span", {}, t("size: {statistic}", { statistic: title(importance) })),
      ),
    );
  }

  function table(chosen) {
    const columns = [...new Set([state.x, state.y, importance])].filter((name) =>
      names.includes(name),
    );
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
        el(
          "button",
          {
            type: "button",
            class: "plain",
            onclick: () => {
              state.down = name === sort ? !state.down : true;
              state.sort = name;
              draw();
            },
          },
          `${title(name)}${name === sort ? (state.down ? " ↓" : " ↑") : ""}`,
        ),
      );
    return scrolling(
      el(
        "table",
        {},
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", { scope: "col" }, t("head")),
            columns.map(by),
            el("th", { scope: "col" }, t("names")),
          ),
        ),
        el(
          "tbody",
          {},
          rows.map((head) => {
            const button = el(
              "button",
              { type: "button", class: "plain", onclick: () => choose(head, button) },
              `${said(head.title)} ${head.layer + 1}.${head.head + 1}`,
            );
            return el(
              "tr",
              {},
              el("th", { scope: "row" }, button),
              columns.map((name) =>
                el(
                  "td",
                  {
                    class: "right",
                    title:
                      head.of(name) === null
                        ? null
                        : `${number(head.of(name, "low"))} – ${number(head.of(name, "high"))}`,
                  },
                  number(head.of(name)),
                ),
              ),
              el("td", {}, words(head)),
            );
          }),
        ),
      ),
      { "aria-label": t("All heads") },
    );
  }

  function draw() {
    const chosen = new Set(shown());
    copied.replaceChildren(); // it was about what was shown before
    count.replaceChildren(t("{n} of {all} heads", { n: chosen.size, all: heads.length }));
    threshold.hidden = !(state.label in thresholds);
    if (!threshold.hidden) {
      slider.value = thresholds[state.label];
      told.textContent = thresholds[state.label].toFixed(2);
    }
    menus.kind.parentElement.hidden = state.view !== "grid";
    menus.y.parentElement.hidden = state.view === "grid";
    about.replaceChildren(
      `${title(state.x)}: ${said(statistics[state.x].plain)} (${said(statistics[state.x].exact)})`,
    );
    stage.replaceChildren({ grid, scatter, table }[state.view](chosen));
  }

  function takeOver() {
    for (const [name, menu] of Object.entries(menus)) {
      if ([...menu.options].some((option) => option.value === kept[name]))
        menu.value = state[name] = kept[name];
    }
    const named = (head) =>
      ["kind", "layer", "head"].every((name) => head[name] === kept.head?.[name]);
    state.chosen = heads.find(named) ?? state.chosen;
    draw();
    if (state.chosen) choose(state.chosen, stage.querySelector(".chosen"));
  }

  function linked() {
    const { kind, layer, head } =
      state.chosen && (state.view !== "grid" || state.chosen.kind === state.kind)
        ? state.chosen
        : state;
    return new URLSearchParams({
      ...block.link,
      tab: "heads",
      panel: "heads-survey",
      ...Object.fromEntries(Object.entries(LINKED).map(([name, field]) => [field, state[name]])),
      kind,
      ...(layer === undefined ? {} : { layer: layer + 1, head: head + 1 }),
    });
  }

  async function copy() {
    const field = await copyLink(linked(), t("Link to this view"));
    copied.replaceChildren(
      field ??
        t(
          "Link copied: it opens this very view. The sentence stands behind # and reaches no server log.",
        ),
    );
    field?.focus();
  }

  const select = (name, label, options) => {
    const box = el(
      "select",
      {
        onchange: () => {
          state[name] = kept[name] = box.value;
          draw();
        },
      },
      options.map(([value, text]) =>
        el("option", { value, selected: value === state[name] }, text),
      ),
    );
    return el("label", {}, el("span", {}, label), box).lastChild;
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
      block.kinds.map((kind) => [kind.kind, said(kind.title)]),
    ),
    x: select("x", t("statistic"), all),
    y: select("y", t("against"), all),
    label: select("label", t("heads named"), [
      ["", t("any")],
      ["none", t("no name")],
      ...Object.keys(thresholds).map((name) => [name, title(name)]),
    ]),
  };
  const told = el("output", {}),
    slider = el("input", {
      type: "range",
      min: 0,
      max: 1,
      step: 0.01,
      oninput: () => {
        thresholds[state.label] = Number(slider.value);
        draw();
      },
    });
  const threshold = el("label", {}, el("span", {}, t("threshold")), slider, told),
    about = el("p", { class: "text note" });
  const copied = el("span", { class: "copied", role: "status" });
  const link = el(
    "button",
    {
      type: "button",
      class: "plain",
      title: t("A link that restores this view"),
      onclick: copy,
    },
    t("Copy link"),
  );
  const root = el(
    "div",
    { class: "survey" },
    el(
      "div",
      { class: "survey-controls" },
      Object.values(menus).map((menu) => menu.parentElement),
      threshold,
      count,
      link,
      copied,
    ),
    about,
    stage,
  );
  keep.push(() => {
    drawn = () => root.isConnected && takeOver();
    tabLinks.heads = () => (root.offsetParent ? linked() : tabLinks.explorer());
    takeOver();
  });
  return root;
}

// A survey that can be taken here: the page asks for one window after another, so that it can stop at any time.
export function take(block, keep, api) {
  let going = false,
    asked = false;
  const bar = el("progress", { max: block.of, value: block.done, "aria-label": t("Survey") }),
    told = el("span", { role: "status" });
  const root = el("div", { class: "take" });
  const button = el("button", {
    type: "button",
    class: "plain",
    onclick: () => {
      going = !going;
      label();
      if (going && !asked) next(performance.now(), bar.value); // else what is under way goes on by itself
    },
  });
  const label = () =>
    (button.textContent = going ? t("Stop") : t("Survey {n} sentences", { n: block.sentences }));
  function next(started, from) {
    asked = true;
    api.request("step", {}, (value) => {
      asked = false;
      if (!root.isConnected) return;
      const found = value.blocks?.[0];
      if (found?.type !== "take") return value.error ? failed(value.error) : done(value.blocks);
      bar.value = found.done;
      const left =
        (((performance.now() - started) / Math.max(1, found.done - from)) *
          (found.of - found.done)) /
        1000;
      told.replaceChildren(
        t("{done} of {of} parts, about {n} seconds left", {
          done: found.done,
          of: found.of,
          n: Math.ceil(left),
        }),
      );
      if (going) next(started, from);
    });
  }
  function failed(error) {
    going = false;
    label();
    told.replaceChildren(error);
  }
  function done(blocks) {
    root.className = "stack";
    const after = [];
    root.replaceChildren(...blocks.map((one) => api.block(one, after)));
    for (const complete of after) complete();
  }
  label();
  root.append(
    el(
      "p",
      { class: "text" },
      t(
        "Nobody has surveyed these heads yet. A survey reads sentences of this project's own and measures every head on each.",
      ),
    ),
    el("div", { class: "row" }, button, bar, told),
  );
  return root;
}

// A menu whose choice is answered in a slot.
export const pick = (block, keep, api) =>
  el(
    "div",
    { class: "survey-controls" },
    el(
      "label",
      {},
      el("span", {}, block.title),
      el(
        "select",
        {
          onchange: (event) =>
            api.act(block.act, block.slot, { option: event.target.selectedIndex }),
        },
        block.options.map((name) => el("option", {}, name)),
      ),
    ),
  );

// A button that shows a head in the explorer.
export const open_head = (block) =>
  el(
    "p",
    {},
    el(
      "button",
      {
        type: "button",
        class: "plain",
        onclick: () => {
          document.dispatchEvent(
            new CustomEvent("atlas-look", {
              detail: { kind: block.kind, layer: block.layer, head: block.head },
            }),
          );
          document.querySelector("#tabs [role=tab]")?.click();
        },
      },
      t("Open this head in the explorer"),
    ),
  );
