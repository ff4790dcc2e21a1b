// Which of the selections that the server says are chosen the page takes on. What this page told comes back, and by then the
// person may be further on.
(function (atlas) {
  "use strict";

  const PATIENCE = 15000; // milliseconds after which what did not come is no longer waited for

  // clock(): milliseconds. A selection is a text. choosing: whether the person has chosen what will be told in a moment.
  function create(clock) {
    let heard = []; // what the server said is chosen, the latest first: {text, until: when it said another}
    let told = []; // what went to the server and has not come back: {text, at}
    let last = null; // what the server has, or will have once it has heard all

    const isRecent = (at) => clock() - at < PATIENCE;

    // Whether this must be told: the server does not have it. Then it counts as told.
    function tell(text) {
      if (text === last) return false;
      told.push({ text, at: clock() });
      last = text;
      return true;
    }

    // The server says that this is chosen. Whether it said so before; when it says another, this one is out of date.
    function hear(text) {
      if (heard[0]?.text === text) return true;
      if (heard.length) heard[0].until = clock();
      heard = [{ text, until: Infinity }, ...heard.filter((one) => one.text !== text && isRecent(one.until))];
      return false;
    }

    // The server says that this is chosen: whether the page takes it on. Not if it is one that this page told. It may come
    // back twice, since each of two changes in quick succession is answered with what is chosen when the answer is made.
    function said(text) {
      const again = hear(text);
      told = told.filter((one) => isRecent(one.at)); // what changed nothing never comes back
      const place = told.findIndex((one) => one.text === text);
      told = told.slice(place + 1);
      last = told.at(-1)?.text ?? text;
      return !again && place < 0;
    }

    // A sentence brings what was chosen when it was asked for: whether the page takes it on. Not if the person is further
    // on, which the server has yet to hear of or to answer, nor if the server has said another since.
    function brought(text, choosing) {
      const isOutdated = heard.some((one) => one.text === text && one !== heard[0] && isRecent(one.until));
      if (choosing || isOutdated || told.some((one) => isRecent(one.at))) return false;
      hear(text);
      return true;
    }

    return { tell, said, brought };
  }

  atlas.explorerEcho = { PATIENCE, create };
})(globalThis.AttentionAtlas);
