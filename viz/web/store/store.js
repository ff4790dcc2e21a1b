// The state of the page, which all its parts share.
//   address      of the translation (model/trace/address.py); null: nothing is translated, or nobody else can make it
//   translation  the last answer of page_translate (viz/questions/header.py): what the page shows of a translation, or an error
//   translating  the fields of the question for another translation that is under way, and the text that the field is to hold
//               (typed), or null
//   direction    {entry, pair, menus, offer}: the menu's entry, the languages of a model of many ("de-en", or null) and their
//                menus, and the examples (viz/directions.py)
//   beam         the width of the beam, as text
//   isOutdated      whether another direction was chosen since: what was translated does not belong to it
//   drawCount        how many translations the explorer has drawn
//   toy          the recipe of the visitor's own network (model/trace/recipe.py), once it was opened; or null
//   selection    {kind, layer, head, query, key}: the attention that is looked at
//   asked        the pinned token and its contrast (viz/panels/scene.py); null: those that the server proposes
//   pinned       the step of that token in the translation that is shown, or null
const LARGE = ["translation"]; // fields that count as changed whenever they are set: comparing them as JSON would be slow

export function createStore(state) {
  const followers = []; // {names, called}
  const isSame = (name, value) =>
    !LARGE.includes(name) && JSON.stringify(value) === JSON.stringify(state[name]);
  return {
    state,
    // Change fields, then call each follower of a field whose value has changed, once.
    set(changes) {
      const changed = Object.keys(changes).filter((name) => !isSame(name, changes[name]));
      Object.assign(state, changes);
      for (const { names, called } of followers)
        if (names.some((name) => changed.includes(name))) called(state);
    },
    // Call a function with the state after each change of these fields.
    follow: (names, called) => followers.push({ names, called }),
  };
}

export const store = createStore({
  address: null,
  translation: null,
  translating: null,
  direction: { entry: null, pair: null, menus: null, offer: { sentences: [], cost: null } },
  beam: "1",
  isOutdated: false,
  drawCount: 0,
  toy: null,
  selection: null,
  asked: null,
  pinned: null,
});
