// Starts a presentation: by the button beside the tours, the key f, or a link (present=1). The
// presentation's modules are loaded when one is started.
import { loadOnce } from "../core/dom.js";
import { hasModifier, isTyping } from "../core/keys.js";
import { pageLink } from "../core/links.js";

const presentation = loadOnce(async () => (await import("./present.js")).createPresentation());
const views = loadOnce(async () => (await import("./views.js")).createViews(present));
const workshop = loadOnce(async () => (await import("./workshop.js")).createWorkshop());

/** Start a presentation. @param {any} [slides] views to play (views.js) */
export async function present(slides) {
  const opener = document.activeElement,
    pointed = document.querySelector(".pictured:hover, .pictured:focus-within");
  (await presentation())?.start({ opener, pointed: slides ? null : pointed, slides });
}

export const openViews = async () => (await views())?.open();

export const openWorkshop = async () => (await workshop())?.open();

/** Listen to the key and to links. */
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
