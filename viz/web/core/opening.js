// The page's opening in browsers set to English (viz/questions/opening.py), in place of the values in the page. early.js
// has begun to fetch it, unless a link names what to open with.

/** @type {Record<string, any> | null} {text, entry, and the values of components by name} */
let opening = null;

export async function loadOpening() {
  const address = document.documentElement.dataset.opening;
  if (!address) return;
  try {
    const answer = await fetch(address, { signal: AbortSignal.timeout(10000) });
    if (answer.ok) opening = await answer.json();
  } catch {
    // the page opens with the values in it
  }
  if (!opening) delete document.documentElement.dataset.opening;
}

/** Return the opening's value of a component, undefined to use the value in the page. @param {string} name */
export const openingValue = (name) => opening?.[name];

/** Return the text and the entry of the menu of directions; undefined to use those in the page. */
export const openingControls = () => opening && { text: opening.text, entry: opening.entry };

/** Whether an address is that of the opening. @param {any} address */
export const isOpening = (address) =>
  opening !== null && JSON.stringify(address) === JSON.stringify(opening.explorer.address);
