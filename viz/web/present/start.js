// The way into a presentation: a button beside that of the tours, the key f, and links (present=1). All else of it is
// fetched when one is started.
import { hasModifier, isTyping } from "../core/keys.js";
import { pageLink } from "../core/links.js";

// What is fetched when it is first needed; after a failure it is tried again.
export function loadOnce(load) {
  let loading = null;
  return () => (loading ||= load().catch(() => (loading = null)));
}
const presentation = loadOnce(async () => (await import("./present.js")).ready());
const views = loadOnce(async () => (await import("./views.js")).ready(present));

// slides: views to be played (views.js).
export async function present(slides) {
  const opener = document.activeElement,
    pointed = document.querySelector(".pictured:hover, .pictured:focus-within");
  (await presentation())?.start({ opener, pointed: slides ? null : pointed, slides });
}

export const openViews = async () => (await views())?.open();

// Listen to the key and to links.
export function listenForPresentation() {
  const follow = () => pageLink().get("present") && present();
  document.addEventListener("keydown", (event) => {
    if (event.key !== "f" || hasModifier(event) || isTyping(event)) return;
    event.preventDefault();
    present();
  });
  window.addEventListener("hashchange", follow);
  follow();
}
