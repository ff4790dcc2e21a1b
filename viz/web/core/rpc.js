// Questions to the server and their answers, in one form for every component. viz/ui/rpc.py is the other end, and says
// what travels.

// told(content): called with what the server says unasked. replaces: each content takes the place of the one before,
// so that what was asked before what is shown is dropped.
export function connect(api, told, { replaces = false } = {}) {
  const questions = new Map(); // id -> {answered, at, again, beside}
  let lastId = 0,
    newest = 0;

  // Trigger an event; answered(content) is called with its answer, and with those that take that one's place.
  // patience: milliseconds after which an unanswered question is asked once more; only for what may be done twice.
  // beside: its answer replaces nothing, and nothing that comes before it makes it old.
  function ask(event, data, answered, patience = null, { beside = false } = {}) {
    if (!beside) for (const [id, old] of questions) if (old.at !== null) questions.delete(id);
    const id = ++lastId,
      question = { ...data, id };
    const again =
      patience === null ? null : setTimeout(() => api.trigger(event, question), patience);
    questions.set(id, { answered, at: null, again, beside });
    api.trigger(event, question);
  }

  // The component's next value, or the one that it begins with. Returns what the component made of it.
  function take(value) {
    if (!value?.json) return;
    const { id, at } = value,
      question = questions.get(id);
    if (id !== null && (!question || (question.at !== null && question.at !== at))) return; // nobody waits, or it came twice
    if (replaces && at !== undefined && !question?.beside) {
      if (at < newest) return;
      newest = at;
    }
    if (question) {
      clearTimeout(question.again);
      question.at = at;
    }
    return (question ? question.answered : told)(JSON.parse(value.json));
  }

  api.onValue(take);
  return { ask, take };
}
