// Creates the items of the picture. A coordinate u runs along the flow and v across it; items have screen coordinates, so a
// picture whose flow runs down is drawn by the same calls.

// At most `count` of the values: of each group of neighbours the one of the largest absolute value.
function squeeze(values, count) {
  const size = Math.ceil(values.length / count);
  if (size <= 1) return values;
  const larger = (a, b) => (Math.abs(b) > Math.abs(a) ? b : a);
  return Array.from({ length: Math.ceil(values.length / size) }, (_, i) =>
    values.slice(i * size, (i + 1) * size).reduce(larger),
  );
}

export class Pen {
  constructor(tall) {
    this.tall = tall;
    this.items = [];
    this.hits = [];
  }

  add(item) {
    this.items.push({ a: 1, z: 5, ...item });
  }

  point(u, v) {
    return this.tall ? [v, u] : [u, v];
  }

  ends(u0, v0, u1, v1) {
    const [x0, y0] = this.point(u0, v0);
    const [x1, y1] = this.point(u1, v1);
    return { x0, y0, x1, y1 };
  }

  area(u0, u1, v0, v1) {
    const [x, y] = this.point(Math.min(u0, u1), Math.min(v0, v1));
    const [w, h] = this.point(Math.abs(u1 - u0), Math.abs(v1 - v0));
    return { x, y, w, h };
  }

  box(id, u0, u1, v0, v1, more) {
    this.add({ t: "box", id, ...this.area(u0, u1, v0, v1), ...more });
  }

  curve(id, u0, v0, u1, v1, more) {
    this.add({ t: "curve", id, ...this.ends(u0, v0, u1, v1), tall: this.tall, ...more });
  }

  ribbon(id, u0, v0, u1, v1, more) {
    this.add({ t: "ribbon", id, ...this.ends(u0, v0, u1, v1), tall: this.tall, ...more });
  }

  line(id, u0, v0, u1, v1, more) {
    this.add({ t: "line", id, ...this.ends(u0, v0, u1, v1), ...more });
  }

  plus(id, u, v, more) {
    const [x, y] = this.point(u, v);
    this.add({ t: "plus", id, x, y, ...more });
  }

  // along: the text runs with the flow, as a row's label does; any other text stands upright.
  /** @param {string} id @param {number} u @param {number} v @param {any} str @param {any} [look] */
  text(id, u, v, str, { along = false, align = "center", ...more } = {}) {
    const [x, y] = this.point(u, v);
    const turn = along && this.tall;
    const upright = this.tall && !along ? (more.tallAlign ?? "center") : align;
    this.add({
      t: "text",
      id,
      x,
      y,
      str: String(str),
      s: 12,
      c: "ink",
      z: 8,
      ...more,
      turn,
      align: turn ? align : upright,
    });
  }

  // Values as cells along the flow, `thick` across it. key: names the values in the painter's cache; scale: the value of the
  // full colour.
  strip(id, u0, u1, v, thick, key, values, scale, more) {
    const area = this.area(u0, u1, v - thick / 2, v + thick / 2);
    const cells = Math.max(4, Math.floor(Math.abs(u1 - u0) / 1.6));
    const drawn = squeeze(values, cells);
    this.add({
      t: "strip",
      id,
      ...area,
      key: `${key}.${drawn.length}`,
      values: drawn,
      count: values.length,
      scale,
      tall: this.tall,
      z: 6,
      ...more,
    });
  }

  // An area that does something when it is clicked.
  hit(u0, u1, v0, v1, action) {
    this.hits.push({ ...this.area(u0, u1, v0, v1), action });
  }
}
