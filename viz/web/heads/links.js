// Word links (viz/wire/links.py): two lines of words with lines between them; a click on a word of each side adds a link
// or takes it away.
(function (atlas) {
  "use strict";
  const { element: el, t } = atlas;
  const SVG = "http://www.w3.org/2000/svg";

  atlas.panelBlocks.links = function (block, keep, api) {
    const links = new Set(block.links.map((link) => link.join("-")));
    const picked = { source: null, target: null };
    const told = el("span", { class: "count", role: "status" });
    const lines = document.createElementNS(SVG, "svg");
    lines.setAttribute("aria-hidden", "true");
    const pairs = () => [...links].map((link) => link.split("-").map(Number)).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const text = (side, i) => block.words[side][i].text;

    const side = (name) => el("div", { class: "link-words", role: "group", "aria-label": name === "source" ? t("source") : t("target") },
      block.words[name].map((word, i) => el("button", { type: "button", class: "link-word", dir: "auto", "aria-pressed": "false", onclick: () => pick(name, i) }, word.text)));
    const rows = { source: side("source"), target: side("target") };
    const stage = el("div", { class: "link-stage" }, rows.source, lines, rows.target);

    function pick(name, i) {
      picked[name] = picked[name] === i ? null : i;
      if (picked.source !== null && picked.target !== null) {
        const link = `${picked.source}-${picked.target}`, values = { source: text("source", picked.source), target: text("target", picked.target) };
        if (links.delete(link)) told.replaceChildren(t("{source} and {target}: no longer linked", values));
        else {
          links.add(link);
          told.replaceChildren(t("{source} and {target}: linked", values));
        }
        picked.source = picked.target = null;
      }
      for (const one of ["source", "target"]) [...rows[one].children].forEach((button, at) => button.setAttribute("aria-pressed", picked[one] === at));
      draw();
    }

    function draw() {
      const box = stage.getBoundingClientRect();
      if (!box.width) return;
      const top = rows.source.offsetHeight, bottom = stage.offsetHeight - rows.target.offsetHeight;
      lines.setAttribute("viewBox", `0 0 ${box.width} ${stage.offsetHeight}`);
      lines.replaceChildren(...pairs().map(([source, target]) => {
        const line = document.createElementNS(SVG, "line"), [a, b] = [rows.source.children[source], rows.target.children[target]];
        const middle = (button) => button.getBoundingClientRect().left - box.left + button.offsetWidth / 2;
        const at = { x1: middle(a), y1: Math.min(top, a.offsetTop + a.offsetHeight), x2: middle(b), y2: Math.max(bottom, b.offsetTop), "stroke-width": 1 + 5 * (block.scores[target][source] ?? 0) };
        for (const [key, value] of Object.entries(at)) line.setAttribute(key, value);
        return line;
      }));
      list.replaceChildren(...pairs().map(([source, target]) => el("li", {}, `${text("source", source)} – ${text("target", target)}: ${Math.round(100 * block.scores[target][source])} %`)));
    }

    const list = el("ul", { class: "link-list" });
    const root = el("div", { class: "links" }, stage,
      el("div", { class: "row" },
        el("button", { type: "button", class: "plain", onclick: () => api.act("score", "score", { links: pairs() }) }, t("Score every head by these links")),
        el("button", { type: "button", class: "plain", onclick: () => atlas.download("links.txt", new Blob([`${pairs().map((pair) => pair.join("-")).join(" ")}\n`], { type: "text/plain" })) }, t("Save the links (Pharaoh)")), told),
      el("details", {}, el("summary", {}, t("The links as a list")), list));
    new ResizeObserver(draw).observe(stage);
    return root;
  };
})(globalThis.AttentionAtlas);
