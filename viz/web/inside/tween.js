// The transition between two scenes. An item of both moves. An item of the new scene alone unfolds from where its place was, and
// one of the old scene alone folds back into where its place is now.
import { carry } from "./layout.js";

const MOVING = ["x", "y", "w", "h", "x0", "y0", "x1", "y1", "w0", "w1", "a", "s", "r"];
const ease = (t) => (t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2);
const ramp = (t, from, to) => Math.min(1, Math.max(0, (t - from) / (to - from)));

// The item at its place in the other layout. i: which of a knot's two coordinates is the item's.
function moved(item, knots, tall, i) {
  const [alongX, alongY] = tall ? [knots.across, knots.flow] : [knots.flow, knots.across];
  const x = (value) => carry(value, alongX, i);
  const y = (value) => carry(value, alongY, i);
  const other = { ...item };
  if ("x" in item) {
    other.x = x(item.x);
    other.y = y(item.y);
    if ("w" in item && "h" in item) {
      other.w = x(item.x + item.w) - other.x;
      other.h = y(item.y + item.h) - other.y;
    }
  }
  if ("x0" in item)
    Object.assign(other, { x0: x(item.x0), x1: x(item.x1), y0: y(item.y0), y1: y(item.y1) });
  return other;
}

// fade: 1 appears, -1 vanishes, 0 stays. window: when it appears, as shares of the duration.
function track(from, to, fade, window = [0.3, 1]) {
  const fields = MOVING.filter(
    (name) => to[name] !== undefined && from[name] !== undefined && to[name] !== from[name],
  );
  return { from: { ...from }, to, now: { ...(fade < 0 ? from : to) }, fade, fields, window };
}

export class Transition {
  constructor() {
    this.items = [];
    this.tracks = [];
    this.duration = 0;
  }

  // Start from the present items. knots null: items that only one scene has fade in place. sweep: the length of the flow along
  // which new items appear one after another.
  to(scene, { duration, knots, tall, sweep = 0 }) {
    const old = new Map(this.items.map((item) => [item.id, item]));
    this.tracks = [];
    for (const item of scene.items) {
      const before = old.get(item.id);
      old.delete(item.id);
      if (before && before.t === item.t) this.tracks.push(track(before, item, 0));
      else {
        const from = knots ? moved(item, knots, tall, 1) : { ...item };
        const delay =
          sweep && 0.6 * ramp(tall ? (item.y ?? item.y0) : (item.x ?? item.x0), 0, sweep);
        this.tracks.push(
          track({ ...from, a: 0 }, item, 1, sweep ? [delay, delay + 0.4] : undefined),
        );
      }
    }
    if (duration)
      for (const item of old.values()) {
        if (item.a < 0.01) continue;
        const target = knots ? moved(item, knots, tall, 0) : item;
        this.tracks.push(track(item, { ...target, a: 0 }, -1));
      }
    this.tracks.sort((p, q) => p.now.z - q.now.z);
    this.start = null;
    this.duration = duration;
  }

  // Return the items at a time, and whether they have arrived.
  frame(time) {
    this.start ??= time;
    const t = this.duration ? Math.min(1, (time - this.start) / this.duration) : 1;
    const share = ease(t);
    for (const { from, to, now, fade, fields, window } of this.tracks) {
      for (const name of fields) now[name] = from[name] + (to[name] - from[name]) * share;
      if (fade) now.a = fade > 0 ? to.a * ramp(t, ...window) : from.a * (1 - ramp(t, 0, 0.55));
    }
    const done = t === 1;
    if (done) this.tracks = this.tracks.filter(({ fade }) => fade >= 0);
    this.items = this.tracks.map(({ now }) => now);
    return { items: this.items, done };
  }
}
