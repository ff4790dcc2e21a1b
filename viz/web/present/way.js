// The way into a presentation: a button beside that of the tours, the key f, and links (present=1). All else of it is
// fetched when one is started.
import { modified, typed } from "../core/keys.js";
import { pageLink } from "../core/links.js";

// Returns what starts one.
export function presenting() {
  let loading = null,
    views = null;

  // slides: views to be played (views.js).
  async function start(slides) {
    const opener = document.activeElement,
      pointed = document.querySelector(".pictured:hover, .pictured:focus-within");
    loading ||= import("./present.js")
      .then((module) => module.ready())
      .catch(() => (loading = null));
    (await loading)?.start({ opener, pointed: slides ? null : pointed, slides });
  }

  async function collect() {
    views ||= import("./views.js")
      .then((module) => module.ready(start))
      .catch(() => (views = null));
    (await views)?.open();
  }

  const follow = () => pageLink().get("present") && start();
  document.addEventListener("keydown", (event) => {
    if (event.key !== "f" || modified(event) || typed(event)) return;
    event.preventDefault();
    start();
  });
  document.addEventListener("atlas-views", collect);
  window.addEventListener("hashchange", follow);
  follow();
  return () => start();
}
