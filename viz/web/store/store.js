// The state of the page, which all its parts share.
//   address    of the translation (model/trace/address.py); null: nothing is translated, or nobody else can make it
//   selection  {kind, layer, head, query, key}: the attention that is looked at
//   asked      the pinned token and its contrast (viz/ui/asked.py), or null
export function createStore(initial) {
  const state = { ...initial },
    listeners = new Set(); // of {names, called}
  return {
    state,
    // Change fields, then call each follower of a field whose value has changed, once.
    set(changes) {
      const changed = Object.keys(changes).filter(
        (name) => JSON.stringify(changes[name]) !== JSON.stringify(state[name]),
      );
      Object.assign(state, changes);
      for (const { names, called } of listeners)
        if (names.some((name) => changed.includes(name))) called(state);
    },
    // Call a function with the state after each change of these fields. Returns a function that stops this.
    follow(names, called) {
      const listener = { names, called };
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export const store = createStore({ address: null, selection: null, asked: null });
