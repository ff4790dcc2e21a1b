// What lies under the pointer. pointer: {x, y} in the picture's pixels.
import { isDecoder, subsOf } from "./place.js";

const isInside = ({ x, y }, area) =>
  x >= area.x && x <= area.x + area.w && y >= area.y && y <= area.y + area.h;

/** The topmost area that a click acts on. */
export const hitAt = (scene, pointer) => scene.hits.findLast((hit) => isInside(pointer, hit));

/** The row of a side at the pointer, or null. */
export function rowAt(layout, side, { x, y }) {
  const v = layout.tall ? x : y;
  return layout[side].find((row) => Math.abs(row.c - v) <= row.pitch / 2) ?? null;
}

/** The sub-layer of a layer at the pointer; without one, cross-attention or self-attention. */
export function subAt(layout, model, stage, pointer) {
  if (!pointer) return isDecoder(stage) ? "cross" : "self";
  const u = layout.tall ? pointer.y : pointer.x,
    subs = subsOf(model, stage);
  return subs.find((sub) => u <= layout.spans[`${stage}.${sub}`].b) ?? subs.at(-1);
}

/** The line of attention nearest to the pointer, or null if none is near. */
export function lineAt(scene, { x, y }) {
  let best = null,
    nearest = 6;
  for (const item of scene.items) {
    if (!item.cell || item.a < 0.1) continue;
    const [from, to, along] = item.tall ? [item.y0, item.y1, y] : [item.x0, item.x1, x];
    if (along < from || along > to) continue;
    const share = (along - from) / (to - from);
    // Newton's method for the Bézier's parameter; its control points stand in the middle of the flow.
    let at = share;
    for (let i = 0; i < 4; i++)
      at -=
        (1.5 * at * (1 - at) + at ** 3 - share) / Math.max(0.3, 1.5 * (1 - 2 * at) + 3 * at * at);
    const [v0, v1, v] = item.tall ? [item.x0, item.x1, x] : [item.y0, item.y1, y],
      distance = Math.abs(v0 + (v1 - v0) * at * at * (3 - 2 * at) - v) - item.w0 / 2;
    if (distance < nearest) [nearest, best] = [distance, item];
  }
  return best;
}

/** The number of a strip at the pointer, in words, or null. */
export function numberAt(scene, pointer) {
  const strip = scene.items.findLast((item) => item.tip && isInside(pointer, item));
  if (!strip) return null;
  const { count, tip, tall, x, y, w, h } = strip,
    share = tall ? (pointer.y - y) / h : (pointer.x - x) / w;
  return tip(Math.max(0, Math.min(count - 1, Math.floor(share * count))), count);
}
