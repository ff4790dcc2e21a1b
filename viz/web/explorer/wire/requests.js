// Asking for what was not sent with a translation: one question at a time, since an answer carries up to about 1 MB. What is
// missing then is asked for next.

const PATIENCE = 15000; // milliseconds after which an answer is no longer waited for

// ask(event, question): of the server. clock(): milliseconds.
export function createRequests(ask, clock) {
  let asked = null; // when something was asked for that has not come yet
  const beside = new Set(); // translations of which a view waits for thumbnails

  // Whether it was asked: one question waits for another.
  function request(event, question) {
    if (asked !== null && clock() - asked < PATIENCE) return false;
    asked = clock();
    ask(event, question);
    return true;
  }

  // Layers, and the thumbnails of a kind where it lacks them.
  function layers(one, wanted, kind) {
    request("layers", { key: one.key, wanted, thumbnails: one.lacks(kind) ? [kind] : [] });
  }

  // While a person looks at one layer, the thumbnails of the other kinds come, then the other layers of this one, one by one.
  function ahead(trace, shown) {
    if (asked !== null) return;
    const waiting = [...beside].find((one) => one.lacks(shown));
    if (waiting) {
      beside.delete(waiting); // asked for once: what is no longer remembered would be asked for without end
      return layers(waiting, [], shown);
    }
    if (!trace.lazy) return;
    const strip = trace.kinds[shown].large ? trace.kinds[shown].readings.indexOf(null) : -1;
    if (strip >= 0) return request("layers", { key: trace.key, strips: [[shown, strip]] });
    const small = [shown, ...Object.keys(trace.kinds)].find((kind) => trace.lacks(kind));
    if (small) return layers(trace, [], small);
    if (trace.kinds[shown].large) return;
    const next = trace.weights[shown].findIndex((weights) => !weights);
    if (next >= 0) layers(trace, [[shown, next]], shown);
  }

  return {
    request,
    layers,
    ahead,
    answered: () => (asked = null),
    // A view waits for the thumbnails of another translation; a new drawing says anew for which.
    waitFor: (one) => beside.add(one),
    waitForNone: () => beside.clear(),
  };
}
