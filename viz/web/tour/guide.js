// The ways into the tours and the worksheets: the page's buttons, and links to a stop (#tour=..&stop=..) or a worksheet
// (#sheet=..). All else of them is fetched when one is started.
import { addWords } from "../core/language.js";
import { pageLink } from "../core/links.js";
import { loadOnce } from "../present/start.js";

const { promise: mounted, resolve: mount } = Promise.withResolvers(); // of {root, words}
const words = loadOnce(async () => addWords((await mounted).words));
let isTouring = false; // whether a tour was started

const withWords = (load) => loadOnce(async () => (await Promise.all([load(), words()]))[0]);
const sheets = withWords(async () => (await import("../sheet/sheet.js")).ready());
const tours = withWords(async () =>
  (await import("./tour.js")).ready((await mounted).root, openSheet),
);

// place: {tour, stop, direction}.
export async function startTour(place) {
  isTouring = true;
  (await tours())?.go(place);
}

// place: as sheet.js opens it.
export const openSheet = async (place) => (await sheets())?.open(place);

// A link names a tour, its stop and a direction; while a stop is shown, its own view is a link, too.
function follow() {
  const link = pageLink(),
    direction = link.get("direction") ?? "";
  if (link.has("sheet")) openSheet({ sheet: link.get("sheet"), direction });
  else if (link.get("tour"))
    startTour({ tour: link.get("tour"), stop: Number(link.get("stop")) || 1, direction });
  else if (isTouring) tours().then((tour) => tour?.leave());
}

export default function guide(root, api) {
  mount({ root, words: api.options.words });
  window.addEventListener("hashchange", follow);
  follow();
}
