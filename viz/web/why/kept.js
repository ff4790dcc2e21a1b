// What a person has set in the panels of the tab "Why", by the translation that it is about: heads that are switched off,
// and a second sentence. A link takes it along and brings it back (question.js); the panels ask for it here.
const KEPT = 20; // translations
const KIND = ["encoder_self", "decoder_self", "cross"];
const all = new Map();
export const same = ([kind, layer, head]) => `${kind} ${layer} ${head}`;

// {off: Map of a head's name -> [kind, layer, head], second: the sentence, wanted: one that a link names and no panel
// has taken over yet, or null} of a translation.
export function keptOf(about) {
  const found = all.get(about) || { off: new Map(), second: "", wanted: null };
  all.delete(about);
  all.set(about, found);
  if (all.size > KEPT) all.delete(all.keys().next().value);
  return found;
}

// As fields of a link.
export function fields(about) {
  const { off, second, wanted } = keptOf(about);
  return {
    ...(off.size ? { off: [...off.values()].map((head) => head.join(".")).join(",") } : {}),
    ...(wanted || second ? { second: wanted || second } : {}),
  };
}

// What a link's fields say: anything at all may stand there. Returns whether they say something.
export function restore(about, link) {
  const found = keptOf(about),
    off = link.get("off"),
    second = link.get("second");
  if (off === null && !second) return false;
  for (const text of (off || "").split(",").slice(0, 2000)) {
    const [kind, layer, head] = text.split(".");
    const heads = [kind, Number(layer), Number(head)];
    if (KIND.includes(kind) && /^\d{1,3}$/.test(layer) && /^\d{1,3}$/.test(head))
      found.off.set(same(heads), heads);
  }
  if (second) found.wanted = second.slice(0, 10000);
  return true;
}
