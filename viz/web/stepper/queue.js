// What the server is asked: one action at a time, in order.

// send(question, answered): to the server; take(question, answer): what comes of an answer, or a promise of it.
export function createQueue(root, { send, take }) {
  const questions = [], // [question, whether it opens a branch]
    later = []; // what waits for the branches that are on their way
  let waiting = false,
    opening = 0; // actions that will open a branch

  const busy = () => root.setAttribute("aria-busy", String(Boolean(questions.length || waiting)));

  function ask(action, data = {}, opens = false) {
    if (opens) opening += 1;
    questions.push([{ action, ...data }, opens]);
    busy();
    sendNext();
  }

  function sendNext() {
    if (waiting || !questions.length) return;
    const [question, opens] = questions.shift();
    waiting = true;
    send(question, async (answer) => {
      waiting = false;
      await take(question, answer);
      if (opens) opening -= 1;
      if (!opening) later.splice(0).forEach((act) => act());
      busy();
      sendNext();
    });
  }

  return {
    ask,
    opening: () => opening,
    // While a new branch is on its way, it waits for that: none is lost.
    move: (act) => (opening ? later.push(act) : act()),
  };
}
