// Questions to the server and their answers, in one form for every component. viz/ui/rpc.py is the other end, and says
// what travels.
const LATE = 100; // milliseconds after an event's end in which its value has long been passed on
let last = 0; // the page's questions are numbered, of whatever component
const unanswered = new Set(); // the numbers of all questions that have no answer yet, of whatever component

// Whether anything that was asked has no answer yet.
export const asking = () => unanswered.size > 0;

// told(content, number): called with what the server says unasked, or in answer to another component's question.
// replaces: each content takes the place of the one before, so that what was asked before what is shown is dropped.
// An error takes no place: an earlier answer that comes after it is shown, and the error again beside it.
export function connect(api, told, { replaces = false } = {}) {
  const questions = new Map(); // number -> {answered, mark, again, beside}
  let shown = 0, // the number of what is shown
    failed = null, // the last error: {number, show}
    asked = 0,
    open = 0; // events that Gradio has not dealt with yet, of a component that says so: ended(); none beside others

  // Trigger an event that nobody answers here. number: of the question that it belongs to.
  function tell(event, data, number = ++last) {
    api.trigger(event, { ...data, id: number });
  }

  // Trigger an event; answered(content, number) is called with its answer, and with those that take that one's place.
  // patience: milliseconds after which an unanswered question is asked once more; only for what may be done twice.
  // beside: its answer replaces nothing, and nothing that comes before it makes it old.
  function ask(event, data, answered, patience = null, { beside = false } = {}) {
    if (!beside) for (const [id, old] of questions) if (old.mark !== null) questions.delete(id);
    const id = ++last;
    if (!beside) asked = id;
    const send = () => {
      unanswered.add(id);
      if (!beside) open += 1;
      api.trigger(event, { ...data, id });
    };
    const again = patience === null ? null : setTimeout(send, patience);
    questions.set(id, { answered, mark: null, again, beside, send });
    send();
  }

  // For a component that hears of the end of each of its events: of answers that arrive together Gradio passes on one.
  // Where none is under way and the last question has no answer, it is asked again. failed: it cannot be answered.
  function ended({ failed = false } = {}) {
    open -= 1;
    const question = questions.get(asked);
    if (open || !question || question.mark !== null) return;
    if (failed) question.mark = "failed";
    else setTimeout(() => question.mark === null && !open && question.send(), LATE);
  }

  // Whether what was asked last has no answer yet.
  const waiting = () => questions.get(asked)?.mark === null;

  // The component's next value, or the one that it begins with. Returns what the component made of it.
  function take(value) {
    if (!value?.json) return;
    const { id, after, mark } = value,
      question = questions.get(id),
      number = id ?? after ?? null;
    unanswered.delete(id);
    if (id !== null && (!question || (question.mark !== null && question.mark !== mark))) return; // nobody waits, or it came twice
    if (question) {
      clearTimeout(question.again);
      question.mark = mark;
    }
    const content = JSON.parse(value.json);
    return pass(question, number, content);
  }

  function pass(question, number, content) {
    const show = () => (question ? question.answered : told)(content, number);
    if (!replaces || number === null || question?.beside) return show();
    if (number < shown) return;
    if (!content.error) shown = number;
    else if (!failed || failed.number <= number) failed = { number, show };
    const result = show();
    if (!content.error && failed && failed.number > number) failed.show();
    return result;
  }

  api.onValue(take);
  return { ask, tell, take, waiting, ended };
}

// Tell another component of the page: a DOM event, again until it is there and says that it has heard.
export function tell(name, detail, frames = 600) {
  const told = new CustomEvent(name, { detail, cancelable: true });
  if (document.dispatchEvent(told) && frames)
    requestAnimationFrame(() => tell(name, detail, frames - 1));
}
