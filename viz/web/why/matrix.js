// The tokens' matrix (viz/wire/matrix.py): methods by words. A cell is a button that runs its test.
(function (atlas) {
  "use strict";
  const { element: el, t, said } = atlas;

  function header(block) {
    const word = (column, i) => el("th", { scope: "col", class: `word${column.special ? " special" : ""}${i === block.source ? " first" : ""}`, title: column.text, dir: "auto" }, column.text);
    const sides = el("tr", { class: "sides" }, el("td"), el("th", { scope: "colgroup", colspan: block.source }, t("source")),
      el("th", { scope: "colgroup", colspan: Math.max(1, block.columns.length - block.source), class: "first" }, t("written before")), el("td", { colspan: 2 }));
    return el("thead", {}, sides, el("tr", {}, el("td"), block.columns.map(word),
      el("th", { scope: "col", class: "margin" }, t("sum")),
      el("th", { scope: "col", class: "margin", title: t("Rank correlation with occlusion under the other replacement: 1 is the same order of words.") }, t("agreement"))));
  }

  function cell(block, line, i, run) {
    const found = line.cells[i], column = block.columns[i];
    const look = `${column.special ? " special" : ""}${i === block.source ? " first" : ""}`;
    if (!found) return el("td", { class: `cell none${look}`, title: t("This method says nothing of it.") }, "·");
    const button = el("button", { type: "button", tabindex: "-1", "data-column": i, "aria-label": t("{method}, {word}: {n}", { method: said(line.name), word: column.text, n: found.text }),
      style: `--share: ${Math.abs(found.share)}`, class: found.share < 0 ? "against" : "for", onclick: () => run(line, i, button) }, found.text);
    return el("td", { class: `cell${look}` }, button);
  }

  function margin(line) {
    const sum = line.sum ? [el("span", { class: line.sum.holds ? "holds" : "misses", title: line.sum.error }, said(line.sum.words), line.sum.holds ? " ✓" : " ✗")] : ["–"];
    return [el("td", { class: "margin" }, line.same ? el("small", { class: "same" }, line.same) : null, line.sum ? sum : line.same ? null : sum), el("td", { class: "margin" }, line.agreement)];
  }

  // hooks: run(line, column, button), again(line, layer)
  function row(block, line, hooks) {
    const { run } = hooks;
    const layers = Array.from({ length: line.layers + 1 }, (_, i) => el("option", { value: i, selected: i === line.layer }, i ? t("layer {n}", { n: i }) : t("all layers")));
    const name = el("th", { scope: "row" }, el("span", { class: "method" }, line.name), el("span", { class: `kind ${line.kind.replace(" ", "-")}` }, line.evidence),
      line.layers ? el("select", { "aria-label": t("{method}: which layer", { method: said(line.name) }), onchange: (event) => hooks.again(line, Number(event.target.value)) }, layers) : null);
    name.title = line.about.map(said).join(" ");
    const cells = line.cells ? block.columns.map((_, i) => cell(block, line, i, run))
      : [el("td", { class: "waiting", colspan: block.columns.length }, t("Computing …"))];
    return el("tr", { "data-method": line.method }, name, cells, line.cells ? margin(line) : [el("td"), el("td")]);
  }

  // One stop for the tabulator; arrow keys go from cell to cell.
  function walk(event) {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const at = event.target.closest("button[data-column]");
    if (!move || !at) return;
    event.preventDefault();
    const rows = [...event.currentTarget.querySelectorAll("tbody > tr")].filter((one) => one.querySelector("button"));
    let r = rows.indexOf(at.closest("tr")), c = Number(at.dataset.column), next = null;
    while (!next) {
      [r, c] = [r + move[0], c + move[1]];
      if (!rows[r] || c < 0 || c > 999) return;
      next = rows[r].querySelector(`button[data-column="${c}"]`);
    }
    at.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  atlas.panelBlocks.matrix = function (block, keep, api) {
    const body = el("tbody"), at = (line) => [...body.children].find((one) => one.dataset.method === line.method);
    const hooks = {
      run(line, column, button) {
        body.querySelector(".chosen")?.classList.remove("chosen");
        body.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
        button.tabIndex = 0;
        button.classList.add("chosen");
        api.act("test", "test", { column, method: line.method });
      },
      again(line, layer = 0) {
        api.request("row", { method: line.method, layer }, (value) => {
          const old = at(line), back = old?.contains(document.activeElement);
          if (!body.isConnected || !old) return;
          const now = value.error ? el("tr", { "data-method": line.method }, el("th", { scope: "row" }, line.name), el("td", { colspan: block.columns.length + 2 }, value.error))
            : row(block, value.blocks[0], hooks);
          old.replaceWith(now);
          if (back) now.querySelector("select")?.focus();
        });
      },
    };
    body.append(...block.lines.map((line) => row(block, line, hooks)));
    body.querySelector("td > button")?.setAttribute("tabindex", "0");
    for (const line of block.lines) if (!line.cells) keep.push(() => hooks.again(line));
    return el("div", { class: "scroll matrix", tabindex: "0", role: "region", "aria-label": t("Methods by words"), onkeydown: walk }, el("table", {}, header(block), body));
  };
})(globalThis.AttentionAtlas);
