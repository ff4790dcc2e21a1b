// The page's own gestures: on the first visit it lights a few translated words, once; "Show me" also tests the last one, and then
// shows heads that attend to the decisive word. Any input ends them.
import { showNotice } from "../core/dom.js";
import { t } from "../core/language.js";

const SEEN = "atlas-shown", // in the browser's storage: the first visit is over
  PAUSE = { first: 900, word: 620, read: 1400, head: 1500 }; // milliseconds

const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

function isFirstVisit() {
  try {
    const isFirst = !localStorage.getItem(SEEN);
    localStorage.setItem(SEEN, "1");
    return isFirst;
  } catch {
    return false; // storage is not available
  }
}

/**
 * Create the gestures.
 * @param {object} hooks
 * @param {() => number[]} hooks.rows translated words to light
 * @param {(row: number) => Promise<any>} hooks.measure tests a word without showing it
 * @param {() => number | null} hooks.surprising the measured word whose answer surprises most
 * @param {(row: number | null) => void} hooks.light
 * @param {() => Promise<number[][]>} hooks.test tests the lit word and returns heads that attend to what matters
 * @param {(pair: number[] | null) => void} hooks.preview
 * @param {() => void} hooks.prepare makes the words visible
 */
export function createDemo({ rows, measure, surprising, light, test, preview, prepare }) {
  let number = 0; // of the gesture under way
  let isPlaying = false;

  // Wait; false if the gesture was ended meanwhile.
  const wait = (own, milliseconds) =>
    new Promise((done) => setTimeout(() => done(own === number), milliseconds));

  function stop() {
    number++;
    if (!isPlaying) return;
    isPlaying = false;
    showNotice("");
    preview(null);
  }
  // A pointer that trembles where the button was pressed ends nothing.
  const isOwn = ({ type, target, movementX, movementY }) =>
    type === "pointermove" &&
    (Math.hypot(movementX, movementY) < 4 || Boolean(target.closest?.(".play")));
  const end = (/** @type {any} */ event) => {
    if (isPlaying && event.isTrusted && !isOwn(event)) stop();
  };
  for (const name of ["pointerdown", "keydown", "wheel", "touchstart", "pointermove"])
    addEventListener(name, end, { passive: true, capture: true });

  async function lightWords(own, words) {
    for (const row of words) {
      light(row);
      if (!(await wait(own, PAUSE.word))) return false;
    }
    return true;
  }

  function begin() {
    stop();
    isPlaying = true;
    return number;
  }

  return {
    stop,
    /** Light a few words, if this is the first visit and things may move. */
    async greet() {
      if (location.hash.length > 1 || isStill() || !isFirstVisit()) return;
      const own = begin();
      if (!(await wait(own, PAUSE.first))) return;
      const words = rows();
      await lightWords(own, [...new Set([...words.slice(0, 2), ...words.slice(-2)])]);
      if (own === number) isPlaying = false;
    },
    /** Play the whole loop. */
    async play() {
      prepare();
      const own = begin();
      showNotice(t("Each translated word lights up the words that one head looked at."));
      const words = rows();
      const measuring = words.reduce(
        (before, row) => before.then(() => own === number && measure(row)),
        Promise.resolve(),
      );
      if (!(await lightWords(own, words))) return;
      await measuring;
      light(surprising() ?? words.at(-1));
      if (!(await wait(own, PAUSE.read))) return;
      showNotice(t("Is that why? Hide one word after the other and see."));
      const heads = await test();
      if (own !== number || !(await wait(own, PAUSE.read))) return;
      if (heads.length)
        showNotice(t("Each head looks elsewhere. Some look at the word that matters."));
      for (const head of heads) {
        preview(head);
        if (!(await wait(own, PAUSE.head))) return;
      }
      stop();
    },
  };
}
