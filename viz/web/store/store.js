// What the page shows, for all its parts.
//   address    of the translation (model/trace/address.py); null: nothing is translated, or nobody else can make it
//   selection  {kind, layer, head, query, key}: the attention that is looked at
//   asked      the pinned token and its contrast (viz/ui/asked.py), or null
export function createStore(initial) {
  const state = { ...initial },
    listeners = new Set(); // of {names, called}
  return {
    state,
    // Change fields; whoever follows one that has another value now is called, once.
    set(changes) {
      const changed = Object.keys(changes).filter(
        (name) => JSON.stringify(changes[name]) !== JSON.stringify(state[name]),
      );
      Object.assign(state, changes);
      for (const { names, called } of listeners)
        if (names.some((name) => changed.includes(name))) called(state);
    },
    // Call a function with the state after a change of these fields. Returns what ends that.
    follow(names, called) {
      const one = { names, called };
      listeners.add(one);
      return () => listeners.delete(one);
    },
  };
}

export const store = createStore({ address: null, selection: null, asked: null });
