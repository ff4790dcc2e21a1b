// Which pictures the open tab has, and which of them a tour's stop is about.
import { openTab, seen } from "../core/links.js";
import { described } from "../picture/copy.js";

// The sheet of a tour, while it is there.
export const sheet = () => document.querySelector(".atlas-tour:not([hidden])");

const isMain = (picture) => Boolean(described.get(picture).main);

// The one that the tab is about comes first.
export const pictures = () =>
  [...(openTab()?.querySelectorAll(".pictured") ?? [])]
    .filter(seen)
    .sort((a, b) => isMain(b) - isMain(a));

// What a stop of a tour is about: a picture, or the part of the page with several, or with none.
export function pointed() {
  const about = document.querySelector(".atlas-pointed"),
    within = pictures().filter((one) => about?.contains(one));
  return (
    about?.closest(".pictured") ??
    (within.length === 1 || (within.length && isMain(within[0])) ? within[0] : about)
  );
}
