// The ways into the tours and the worksheets: the button beside the examples, the menu for a class, and links to a stop
// (#tour=..&stop=..) or a worksheet (#sheet=..). All else of them is fetched when one is started.
import { learn } from "../core/language.js";
import { pageLink } from "../core/links.js";

export default function guide(root, api) {
  const learnt = () => (learnt.words ||= learn(api.options.words));

  // What is fetched once; whoever asks again after a failure has it tried again.
  function fetched(load) {
    let loading = null;
    return {
      get: () =>
        (loading ||= Promise.all([load(), learnt()]).then(([it]) => it)).catch(
          () => (loading = null),
        ),
      there: () => loading,
    };
  }
  const tours = fetched(async () => (await import("./tour.js")).ready(root)),
    sheets = fetched(async () => (await import("../sheet/sheet.js")).ready());

  const start = async (place) => (await tours.get())?.go(place);
  const lay = async (place) => (await sheets.get())?.open(place);

  // A link names a tour, its stop and a direction; while a stop is shown, its own view is a link, too.
  function follow() {
    const link = pageLink();
    if (link.has("sheet"))
      return lay({ sheet: link.get("sheet"), direction: link.get("direction") ?? "" });
    if (link.get("tour"))
      start({
        tour: link.get("tour"),
        stop: Number(link.get("stop")) || 1,
        direction: link.get("direction") || "",
      });
    else if (tours.there()) tours.get().then((tour) => tour?.leave());
  }

  document.addEventListener("atlas-tour", ({ detail }) => start({ ...detail, stop: 1 }));
  document.addEventListener("atlas-sheet", ({ detail }) => lay(detail));
  window.addEventListener("hashchange", follow);
  follow();
}
