// What the explorer says in words: titles, readings, the status line. Every sentence is data put together as text.
(function (atlas) {
  "use strict";

  const { weightText } = atlas.explorerModel;
  const TITLES = { encoder_self: "Encoder self-attention", decoder_self: "Decoder self-attention", cross: "Cross-attention" };
  const GUIDES = {
    cross: "Each row is a step of the translation: bright cells are the source words the model looked at while it wrote that token.",
    encoder_self: "Each row is a source token: bright cells are the tokens of the sentence it drew on for its own meaning.",
    decoder_self: "Each row is a step of the translation: bright cells are the earlier tokens it looked back at. The upper right is empty: nothing looks ahead.",
  };

  function titles(state, map) {
    const decoder = state.kind !== "encoder_self";
    const rows = decoder ? (state.predicted[state.kind] ? "query: token predicted" : "query: token read") : "query: source token";
    const columns = map.joint ? "key: source tokens, then target prefix"
      : state.kind === "decoder_self" ? "key: target token read" : "key: source token";
    return { rows, columns };
  }

  function heading(state, used) {
    if (state.combine === "single" && state.view === "lines" && state.heads.length > 1) return `${state.heads.length} heads, each in its colour`;
    if (state.combine === "single") return `Layer ${state.layer + 1} · Head ${state.head + 1}`;
    if (state.combine === "rollout") return `Rollout up to layer ${state.layer + 1}`;
    const layers = new Set(used.map(([layer]) => layer));
    const where = state.heads.length ? `${used.length} chosen heads` : `all ${used.length} heads of layer ${[...layers][0] + 1}`;
    return `${state.combine === "mean" ? "Mean" : "Maximum"} of ${where}`;
  }

  // The line below the heading: what the numbers are, and the pattern of a single head.
  function reading(state, trace, map) {
    const parts = [];
    if (state.combine === "single" && state.view === "lines" && state.heads.length > 1) parts.push("attention weights, head by head");
    else if (state.combine === "single") {
      const { reading: words, entropy } = trace.kinds[state.kind].patterns[state.layer][state.head];
      parts.push(words, `entropy ${entropy.toFixed(2)} bits`);
    } else {
      parts.push(map.unit);
      if (state.combine === "rollout") parts.push("0.5 × attention + 0.5 × residual, layer after layer (Abnar and Zuidema 2020)");
    }
    if (map.hidden !== null) parts.push(`${(100 * map.hidden).toFixed(1)}% of the mass was on hidden tokens`);
    return parts.join("  ·  ");
  }

  function top(map, count, valueAt, items) {
    return items.map((item, i) => ({ label: item.label, value: valueAt(i) })).filter((entry) => entry.value > 0)
      .sort((a, b) => b.value - a.value).slice(0, count);
  }

  // [{text} or {token}, ..] for a cell, a row or a column of the map
  function pointing(map, row, column) {
    const width = map.columns.length, at = (r, c) => map.values[r * width + c];
    const list = (entries) => entries.flatMap((entry, i) => [{ text: i ? ", " : " " }, { token: entry.label }, { text: ` ${weightText(entry.value)}` }]);
    if (row !== null && column !== null) {
      return [{ token: map.rows[row].label }, { text: " → " }, { token: map.columns[column].label },
        { text: ": " }, { number: weightText(at(row, column)) }];
    }
    if (row !== null) {
      return [{ token: map.rows[row].label }, { text: map.attention ? " attends to" : " scores highest with" },
        ...list(top(map, 5, (c) => at(row, c), map.columns))];
    }
    return [{ token: map.columns[column].label }, { text: " gets most from" }, ...list(top(map, 5, (r) => at(r, column), map.rows))];
  }

  function nodes(parts) {
    const el = atlas.element;
    return parts.map((part) => part.token !== undefined ? el("bdi", { class: "token" }, part.token)
      : part.number !== undefined ? el("strong", {}, part.number) : part.text);
  }

  // For screen readers: the selected map in a sentence or two.
  function summary(state, trace, map, used) {
    const strongest = [];
    const width = map.columns.length;
    for (let row = 0; row < map.rows.length; row++) {
      for (let column = 0; column < width; column++) {
        const value = map.values[row * width + column];
        if (value > 0.05) strongest.push({ row, column, value });
      }
    }
    strongest.sort((a, b) => b.value - a.value);
    const edges = strongest.slice(0, 3).map((edge) =>
      `${map.rows[edge.row].label} to ${map.columns[edge.column].label} ${weightText(edge.value)}`);
    return `${TITLES[state.kind]}, ${heading(state, used)}. ${reading(state, trace, map)}. ` +
      `${map.rows.length} rows, ${width} columns. Strongest: ${edges.join("; ") || "none above 0.05"}.`;
  }

  atlas.explorerWords = { TITLES, GUIDES, titles, heading, reading, pointing, nodes, summary };
})(globalThis.AttentionAtlas);
