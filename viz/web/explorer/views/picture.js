// What is shown, as one SVG: of the map by Plotly, of the other views from what stands on the page.
(function (atlas) {
  "use strict";

  const SCALE = 2; // PNG pixels a CSS pixel
  const xml = (text) => atlas.escape(text).replaceAll('"', "&quot;");
  const style = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();

  function fromSource(uri) {
    const comma = uri.indexOf(",");
    return uri.slice(0, comma).includes("base64") ? atob(uri.slice(comma + 1)) : decodeURIComponent(uri.slice(comma + 1));
  }

  async function mapPicture(detail) {
    const { data, layout } = detail.figure(), pinned = detail.pinned();
    const line = { color: style("--atlas-accent"), width: 2 };
    const last = { row: layout.yaxis.range[0], column: layout.xaxis.range[1] };
    const band = (x0, x1, y0, y1) => ({ type: "rect", x0, x1, y0, y1, line });
    const shapes = [...layout.shapes];
    if (pinned.row !== null) shapes.push(band(-0.5, last.column, pinned.row - 0.5, pinned.row + 0.5));
    if (pinned.column !== null) shapes.push(band(pinned.column - 0.5, pinned.column + 0.5, -0.5, last.row));
    await atlas.plotly();
    const uri = await Plotly.toImage({ data, layout: { ...layout, shapes, paper_bgcolor: style("--atlas-paper") } },
      { format: "svg", width: layout.width, height: layout.height });
    return fromSource(uri);
  }

  // Canvases, boxes with text and lines of an element, as they stand on the page.
  function elementPicture(root) {
    const frame = root.getBoundingClientRect();
    const width = Math.ceil(frame.width), height = Math.ceil(frame.height);
    const parts = [`<rect width="100%" height="100%" fill="${style("--atlas-paper")}"/>`];
    const place = (node) => {
      const box = node.getBoundingClientRect();
      return { x: box.left - frame.left, y: box.top - frame.top, w: box.width, h: box.height };
    };
    root.querySelectorAll("svg:not(.main-svg)").forEach((node) => parts.push(svgPart(node, place(node))));
    root.querySelectorAll("canvas").forEach((canvas) => {
      const { x, y, w, h } = place(canvas);
      parts.push(`<image x="${x}" y="${y}" width="${w}" height="${h}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${canvas.toDataURL()}"/>`);
    });
    root.querySelectorAll(".piece, .value, .heads .cell").forEach((node) => {
      const { x, y, w, h } = place(node);
      parts.push(`<rect x="${x}" y="${y}" width="${w}" height="${h}" rx="4" fill="${xml(getComputedStyle(node).backgroundColor)}" stroke="${xml(getComputedStyle(node).borderColor)}"/>`);
    });
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode, parent = node.parentElement;
      if (!node.data.trim() || parent.closest("svg, select, .compare-bar, .lines-bar")) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const { x, y, w, h } = place(range), font = getComputedStyle(parent);
      if (w) parts.push(`<text x="${x}" y="${y + h * 0.78}" font-size="${font.fontSize}" font-weight="${font.fontWeight}" font-family="${xml(font.fontFamily)}" fill="${xml(font.color)}">${xml(node.data)}</text>`);
    }
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${parts.join("")}</svg>`;
  }

  function svgPart(node, { x, y }) {
    const copy = node.cloneNode(true);
    const originals = node.querySelectorAll("text, rect"), copies = copy.querySelectorAll("text, rect");
    originals.forEach((original, i) => {
      const computed = getComputedStyle(original);
      copies[i].setAttribute("fill", computed.fill);
      if (original.tagName === "text") {
        copies[i].setAttribute("font-size", computed.fontSize);
        copies[i].setAttribute("font-family", computed.fontFamily);
      }
    });
    copy.setAttribute("x", x);
    copy.setAttribute("y", y);
    return new XMLSerializer().serializeToString(copy);
  }

  function svg({ views, state }) {
    if (views.shown() === "map") return mapPicture(views.detail);
    if (views.shown() === "compare" && state().compare === "pair" && views.compare.pair().length) return pairPicture(views.compare);
    return elementPicture(views.root);
  }

  // Two pictures beside each other.
  async function pairPicture(compare) {
    const parts = [];
    let at = 0, height = 0;
    for (const { title, detail } of compare.pair()) {
      const text = await mapPicture(detail), { layout } = detail.figure();
      parts.push(`<text x="${at + 8}" y="18" font-size="13" font-family="sans-serif" fill="${style("--atlas-ink")}">${xml(title)}</text>`,
        text.replace("<svg ", `<svg x="${at}" y="26" `));
      at += layout.width + 16;
      height = Math.max(height, layout.height + 26);
    }
    return `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="${at}" height="${height}">` +
      `<rect width="100%" height="100%" fill="${style("--atlas-paper")}"/>${parts.join("")}</svg>`;
  }

  function png(svgText) {
    return new Promise((resolve, reject) => {
      const image = new Image();
      image.onload = () => {
        const canvas = document.createElement("canvas");
        canvas.width = image.width * SCALE;
        canvas.height = image.height * SCALE;
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error(atlas.t("the picture is too large")))), "image/png");
      };
      image.onerror = () => reject(new Error(atlas.t("the picture could not be drawn")));
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText)}`;
    });
  }

  atlas.explorerPicture = { svg, png, element: elementPicture };
})(globalThis.AttentionAtlas);
