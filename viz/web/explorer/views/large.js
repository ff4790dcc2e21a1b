// A map of more than 256 tokens a side, as one Plotly figure whose cells are tiles: images of its layout, of that level of
// the pyramid (viz/wire/tiles.py) whose cells are at least a pixel large, so that a single bright cell is seen at any zoom.
// Axes, what is pinned and the pointer are a layer of our own above it, as they are of a small map.
import { el, escape, shorten, themed } from "../../core/dom.js";
import { plotly } from "../../core/plotly.js";
import { CONFIG, createStage, FONT } from "./frame.js";
import { listenGestures } from "./gestures.js";

const LABELS = { left: 104, top: 92, right: 58 }; // pixels around the cells
const CLOSEST = 8; // cells a side that fill the picture at the closest
const REST = 120; // milliseconds that a pointer rests before the exact number is asked for

// hooks: as detail.js has them, and tiles(map, wanted): [level, row, column] each to be fetched; exact(map, row, column)
export function createLarge(hooks) {
  const { root, plot, frame, marks } = createStage("large");
  let current = null, // {map, colouring, size, titles, pinned}
    view = null, // {x, y, zoom}: the first cell that is seen, and how many times larger than all cells are
    painted = "", // which tiles the figure has
    drawn = 0,
    [cursor, rest] = [null, null];

  const cells = () => {
    const { map } = current;
    return { width: map.columns.length / view.zoom, height: map.rows.length / view.zoom };
  };

  function measure({ width, compact, height, highest = Infinity }) {
    const { map } = current,
      right = compact ? 14 : LABELS.right;
    const room = (height ?? Math.min(highest, 900)) - LABELS.top - 8,
      inner = Math.max(120, width - LABELS.left - right);
    const plotHeight = Math.max(
      160,
      Math.min(room, (inner * map.rows.length) / map.columns.length),
    );
    const plotWidth = Math.min(
      inner,
      Math.max(160, (plotHeight * map.columns.length) / map.rows.length),
    );
    return {
      left: LABELS.left,
      top: LABELS.top,
      right,
      plotWidth,
      plotHeight,
      width: LABELS.left + plotWidth + right,
      height: LABELS.top + plotHeight + 8,
    };
  }

  const ranges = () => {
    const { width, height } = cells();
    return {
      "xaxis.range": [view.x - 0.5, view.x + width - 0.5],
      "yaxis.range": [view.y + height - 0.5, view.y - 0.5],
    };
  };

  function layout(images) {
    const { size } = current,
      { "xaxis.range": x, "yaxis.range": y } = ranges();
    const axis = { visible: false, fixedrange: true };
    return {
      width: size.plotWidth,
      height: size.plotHeight,
      margin: { l: 0, r: 0, t: 0, b: 0, pad: 0 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      xaxis: { ...axis, range: x },
      yaxis: { ...axis, range: y },
      images,
      shapes: bounds(),
    };
  }

  // Where one sentence of a document ends and the next begins.
  function bounds() {
    const { map } = current,
      line = { color: themed("--atlas-accent"), width: 1, dash: "dot" };
    const ends = (items) => items.flatMap(({ ends }, i) => (ends ? [i + 0.5] : []));
    const across = ends(map.columns).map((x) => ({ x0: x, x1: x, y0: -0.5, y1: map.rows.length }));
    const down = ends(map.rows).map((y) => ({ y0: y, y1: y, x0: -0.5, x1: map.columns.length }));
    return [...across, ...down].map((place) => ({ type: "line", line, ...place }));
  }

  // The tiles to be seen, as images; below those of the right level the whole map's, as long as some are on their way.
  function images() {
    const { map, colouring, size } = current,
      { width, height } = cells();
    const finest = Math.max(width / size.plotWidth, height / size.plotHeight);
    const level = map.pyramid.level(finest),
      seen = map.pyramid.within(level, view.x, view.y, width, height);
    const missing = seen.filter((tile) => !map.pyramid.tile(...tile));
    if (missing.length) hooks.tiles(map, missing);
    const found = [
      ...(missing.length ? map.pyramid.within(map.pyramid.whole) : []),
      ...seen,
    ].filter((tile) => map.pyramid.tile(...tile));
    return found.map((tile) => map.pyramid.image(tile, colouring));
  }

  function render() {
    drawn = 0;
    if (!current || !window.Plotly) return;
    const shown = images(),
      { size } = current;
    const key = JSON.stringify([current.map.head, shown.map(({ name }) => name), size]);
    if (key !== painted) {
      painted = key;
      const data = [{ type: "scatter", x: [null], y: [null], hoverinfo: "skip" }];
      Plotly.react(plot, data, layout(shown), CONFIG);
    } else Plotly.relayout(plot, ranges());
    around();
  }

  const schedule = () => (drawn ||= requestAnimationFrame(render));

  // Labels, and what is marked, of the part that is seen.
  function around() {
    const { map, colouring, size, titles, pinned } = current,
      { width, height } = cells();
    frame.part(map, colouring, titles, size, { ...view, width, height });
    const nodes = [];
    // Of an axis: from where to where, within the picture; nothing of what is not seen.
    const span = (at, first, count, room) => {
      if (at === null) return [0, room];
      const cell = room / count,
        from = (at - first) * cell;
      return [Math.max(0, from), Math.min(room, from + cell)];
    };
    const box = (kind, row, column) => {
      const [left, right] = span(column, view.x, width, size.plotWidth),
        [top, bottom] = span(row, view.y, height, size.plotHeight);
      if (right <= left || bottom <= top) return;
      const node = el("div", { class: `mark ${kind}` });
      node.style.cssText = `left: ${size.left + left}px; width: ${Math.max(2, right - left)}px; top: ${size.top + top}px; height: ${Math.max(2, bottom - top)}px`;
      nodes.push(node);
    };
    if (pinned.row !== null) box("pinned", pinned.row, null);
    if (pinned.column !== null) box("pinned", null, pinned.column);
    if (cursor) box("cursor", cursor.row, cursor.column);
    marks.replaceChildren(...nodes);
  }

  // To a window inside the map.
  function look({ x = view.x, y = view.y, zoom = view.zoom }) {
    const { map } = current,
      most = Math.max(map.columns.length, map.rows.length) / CLOSEST;
    zoom = Math.min(most, Math.max(1, zoom));
    const within = (at, count) => Math.max(0, Math.min(at, count - count / zoom));
    view = { zoom, x: within(x, map.columns.length), y: within(y, map.rows.length) };
    root.style.touchAction = zoom > 1 ? "none" : "pan-y";
    schedule();
  }

  // By a factor, with the place at these shares of the picture staying where it is.
  function zoomed(by, across = 0.5, down = 0.5) {
    const { map } = current,
      before = cells(),
      most = Math.max(map.columns.length, map.rows.length) / CLOSEST;
    const zoom = Math.min(most, Math.max(1, view.zoom * by)),
      shrunk = 1 - view.zoom / zoom;
    look({
      zoom,
      x: view.x + before.width * across * shrunk,
      y: view.y + before.height * down * shrunk,
    });
  }

  // Shares of the picture at which an event points; beside it one or both are outside of 0 to 1.
  function place(event) {
    const { size } = current,
      box = root.getBoundingClientRect(),
      scale = size.width / box.width;
    return [
      ((event.clientX - box.left) * scale - size.left) / size.plotWidth,
      ((event.clientY - box.top) * scale - size.top) / size.plotHeight,
    ];
  }

  function cellAt(event) {
    const [across, down] = place(event),
      { width, height } = cells(),
      inside = (share) => share >= 0 && share < 1;
    const column = inside(across) ? Math.floor(view.x + across * width) : null,
      row = inside(down) ? Math.floor(view.y + down * height) : null;
    return row === null && column === null ? null : { row, column };
  }

  function point(cell) {
    cursor = cell;
    around();
    clearTimeout(rest);
    hooks.hover(cell?.row ?? null, cell?.column ?? null);
    if (cell && cell.row !== null && cell.column !== null)
      rest = setTimeout(() => hooks.exact(current.map, cell.row, cell.column), REST);
  }

  listenGestures(root, {
    ready: () => current !== null,
    seen: () => ({ ...view, ...cells() }),
    place,
    look,
    zoomed,
    point: (event) => point(event && cellAt(event)),
    pin(event) {
      const cell = cellAt(event);
      if (cell) hooks.pin(cell.row, cell.column);
    },
  });

  // The whole picture with its labels, for export.
  function figure() {
    const { map, size, titles } = current,
      { width, height } = cells();
    const axis = (items, first, count, room, title, more) => {
      const by = Math.max(1, Math.ceil(count / Math.floor(room / 14))), // 14 pixels a label
        shown = items
          .map((item, i) => [item.label, i])
          .filter(([, i]) => i % by === 0 && i >= first - 0.5 && i < first + count);
      return {
        tickmode: "array",
        tickvals: shown.map(([, i]) => i),
        ticktext: shown.map(([label]) => escape(shorten(label))),
        showgrid: false,
        zeroline: false,
        title: { text: title, font: { size: FONT } },
        ...more,
      };
    };
    const whole = layout(images());
    return {
      data: [{ type: "scatter", x: [null], y: [null] }],
      layout: {
        ...whole,
        width: size.width,
        height: size.height,
        margin: { l: size.left, r: size.right, t: size.top, b: 8, pad: 0 },
        font: { family: themed("--atlas-font"), size: FONT, color: themed("--atlas-ink") },
        xaxis: axis(map.columns, view.x, width, size.plotWidth, titles.columns, {
          side: "top",
          tickangle: -50,
          range: whole.xaxis.range,
        }),
        yaxis: axis(map.rows, view.y, height, size.plotHeight, titles.rows, {
          range: whole.yaxis.range,
        }),
      },
    };
  }

  return {
    root,
    // As detail.js draws a small one. The part that is seen stays, from head to head of a kind.
    draw(map, colouring, pinned, titles, given = {}) {
      const same = current && current.map.trace === map.trace && current.map.kind === map.kind;
      current = { map, colouring, titles, pinned };
      if (!same) view = { x: 0, y: 0, zoom: 1 };
      current.size = measure({ width: root.parentElement.clientWidth || 640, ...given });
      cursor = null;
      const { size } = current;
      Object.assign(plot.style, { left: `${size.left}px`, top: `${size.top}px` });
      Object.assign(root.style, { width: `${size.width}px`, height: `${size.height}px` });
      root.setAttribute("aria-label", titles.label);
      around();
      plotly().then(schedule);
    },
    pin(pinned) {
      current.pinned = pinned;
      around();
    },
    more: () => root.isConnected && render(), // tiles have come
    look: (to) => current && look(to),
    cursor: () => cursor,
    figure,
    pinned: () => current.pinned,
  };
}
