// The selection as the server and the other tabs know it: they hear of this page's, and it takes on theirs.
import { selectionOf } from "../state.js";
import { createEcho } from "./echo.js";

const SETTLED = 150; // milliseconds without a change before the others hear of a selection

// scene: what is looked at; tell(selection): the server.
export function createSelection(scene, tell) {
  const fresh = () => createEcho(() => performance.now());
  let echo = fresh(),
    choosing = null; // the timer of what will be told in a moment

  return {
    // The server has heard and said nothing yet.
    forget: () => (echo = fresh()),
    tell() {
      clearTimeout(choosing);
      choosing = setTimeout(() => {
        choosing = null;
        const selection = selectionOf(scene.state);
        if (echo.tell(JSON.stringify(selection))) tell(selection);
      }, SETTLED);
    },
    // The server says that this is chosen: whether the page has to change for it.
    said(selection) {
      const text = JSON.stringify(selection);
      return (
        echo.said(text, choosing !== null) && text !== JSON.stringify(selectionOf(scene.state))
      );
    },
    // A sentence brings what was chosen when it was asked for: whether the page takes it on.
    brought: (selection) => echo.brought(JSON.stringify(selection), choosing !== null),
  };
}
