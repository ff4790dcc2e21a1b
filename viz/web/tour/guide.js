// The way into the tours: the button beside the examples, and links to a stop (#tour=..&stop=..). All else of them is
// fetched when one is started.
import { learn } from "../core/language.js";
import { pageLink } from "../core/links.js";

export default function guide(root, api) {
  let loading = null;

  function load() {
    loading ||= Promise.all([import("./tour.js"), learn(api.options.words)])
      .then(([module]) => module.ready(root, api))
      .catch(() => (loading = null)); // whoever asks again has it tried again
    return loading;
  }

  async function start(place) {
    (await load())?.go(place);
  }

  // A link names a tour, its stop and a direction; while a stop is shown, its own view is a link, too.
  function follow() {
    const link = pageLink();
    if (link.get("tour"))
      start({
        tour: link.get("tour"),
        stop: Number(link.get("stop")) || 1,
        direction: link.get("direction") || "",
      });
    else if (loading) loading.then((tour) => tour?.leave());
  }

  document.addEventListener("atlas-tour", ({ detail }) => start({ ...detail, stop: 1 }));
  window.addEventListener("hashchange", follow);
  follow();
}
