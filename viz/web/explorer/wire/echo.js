// Which of the selections that the server says are chosen the page takes on. What this page told comes back, and by then the
// person may be further on.

export const PATIENCE = 15000; // milliseconds after which what did not come is no longer waited for

// clock(): milliseconds. A selection is a text. choosing: whether the person has chosen what will be told in a moment.
export function createEcho(clock) {
  let heard = []; // what the server said is chosen, the latest first: {text, until: when it said another}
  let told = []; // what went to the server and has not come back: {text, at}
  let due = []; // when it was told: a time for each answer that has not come yet
  let last = null; // what the server has, or will have once it has heard all

  const isRecent = (at) => clock() - at < PATIENCE;

  // Whether this must be told: the server does not have it. Then it counts as told.
  function tell(text) {
    if (text === last) return false;
    told.push({ text, at: clock() });
    due.push(clock());
    last = text;
    return true;
  }

  // The server says that this is chosen. Whether it said so before; when it says another, this one is out of date.
  function hear(text) {
    if (heard[0]?.text === text) return true;
    if (heard.length) heard[0].until = clock();
    heard = [
      { text, until: Infinity },
      ...heard.filter((one) => one.text !== text && isRecent(one.until)),
    ];
    return false;
  }

  // Whether the person is further on than what the server says: it has yet to hear of it, or to answer.
  const isAhead = (choosing) => choosing || told.some((one) => isRecent(one.at));

  // The server says that this is chosen: whether the page takes it on. Not while the person is further on, unless it is
  // news. It answers each change of its selection, and with what is chosen when the answer is made: what this page told may
  // come back twice, or what was chosen before it instead. Once there were as many answers as it told, all has come back.
  function said(text, choosing) {
    const again = hear(text);
    told = told.filter((one) => isRecent(one.at)); // what changed nothing never comes back
    due = due.filter(isRecent);
    const place = told.findIndex((one) => one.text === text),
      isNews = !again && place < 0;
    if (!isNews) due.shift();
    if (!due.length) told = [];
    else if (!again) told = told.slice(place + 1);
    last = told.at(-1)?.text ?? text;
    return isNews || !isAhead(choosing);
  }

  // A sentence brings what was chosen when it was asked for: whether the page takes it on. Not while the person is further
  // on, nor if the server has said another since.
  function brought(text, choosing) {
    const isOutdated = heard.some(
      (one) => one.text === text && one !== heard[0] && isRecent(one.until),
    );
    if (isAhead(choosing) || isOutdated) return false;
    hear(text);
    last = text;
    return true;
  }

  return { tell, said, brought };
}
