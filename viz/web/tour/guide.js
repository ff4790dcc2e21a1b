// Opens the tours and the worksheets: for the page's buttons, and for links to a stop (#tour=..&stop=..) or a worksheet (#sheet=..).
// Their modules and words are loaded when the first one is opened.
import { addWords } from "../core/language.js";
import { pageLink } from "../core/links.js";
import { loadOnce } from "../core/dom.js";

const { promise: mounted, resolve: setMounted } = Promise.withResolvers(); // of {root, words}
const loadWords = loadOnce(async () => addWords((await mounted).words));
let hasStarted = false; // whether a tour was started

const loadWithWords = (load) => loadOnce(async () => (await Promise.all([load(), loadWords()]))[0]);
const loadSheets = loadWithWords(async () =>
  (await import("../sheet/sheet.js")).createWorksheets(),
);
const loadTours = loadWithWords(async () =>
  (await import("./tour.js")).createTours((await mounted).root, openSheet),
);

/** Start a tour. @param {import("./tour.js").Place} place */
export async function startTour(place) {
  hasStarted = true;
  (await loadTours())?.go(place);
}

/** Open a worksheet, or the list of them. @param {{sheet?: string, direction?: string}} place */
export const openSheet = async (place) => (await loadSheets())?.open(place);

// Open what the page's link names. A link without a tour ends the tour, since the view of a stop is a link that names it.
function followLink() {
  const link = pageLink(),
    direction = link.get("direction") ?? "";
  if (link.has("sheet")) openSheet({ sheet: link.get("sheet"), direction });
  else if (link.get("tour"))
    startTour({
      tour: link.get("tour"),
      stop: Number(link.get("stop")) || 1,
      direction,
      digest: link.get("digest") ?? undefined,
    });
  else if (hasStarted) loadTours().then((tours) => tours?.leave());
}

/**
 * @param {Element} root the element for the tours
 * @param {{options: {words: any}}} api options.words: those of tours and worksheets, by language
 */
export default function guide(root, api) {
  setMounted({ root, words: api.options.words });
  window.addEventListener("hashchange", followLink);
  followLink();
}
