// The state of the page, which all its parts share: store.set() changes fields, store.follow() listens to them.

/**
 * @typedef {object} State
 * @property {any} address of the translation (model/trace/address.py); null: none, or one that no server can repeat
 * @property {any} translation the last answer of page_translate (viz/questions/header.py), or {error}; linkState: the
 *   explorer's state to open, if a link asked for it
 * @property {any} translating fields of the translation under way, and the text that the field shows (typed); or null
 * @property {any} direction {entry, pair, menus, offer}: the menu's entry; a multilingual model's languages ("de-en", or null)
 *   and their menus; the examples
 * @property {string} beam width of the beam search
 * @property {boolean} isOutdated another direction was chosen since: the translation does not belong to it
 * @property {number} drawCount how many translations the explorer has drawn
 * @property {any} toy recipe of the visitor's own network (model/trace/recipe.py), once it was opened; or null
 * @property {any} selection {kind, layer, head, query, key}: the attention that is looked at
 * @property {any} asked the question of the tab "Why": the pinned token and what to compare it with; null: the server's default
 * @property {number | null} pinned step of the pinned token
 * @property {{place: string, cell: string}} inside what the picture of the tab Inside shows, as a link names it
 *   (inside/place.js); place "": the whole model
 */

/** @type {State} */
const state = {
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
  inside: { place: "", cell: "" },
};
/** @type {Set<{names: string[], callback: (state: State) => void}>} */
const followers = new Set();

/** Whether a field has a value already. A translation is large: each counts as another. @param {string} name @param {any} value */
const isSame = (name, value) =>
  name !== "translation" && JSON.stringify(value) === JSON.stringify(state[name]);

export const store = {
  state,
  /** Set fields, then call each follower of a changed field once. @param {Partial<State>} changes */
  set(changes) {
    const changed = Object.keys(changes).filter((name) => !isSame(name, changes[name]));
    Object.assign(state, changes);
    for (const { names, callback } of followers)
      if (names.some((name) => changed.includes(name))) callback(state);
  },
  /**
   * Call a function with the state after each change of these fields.
   * @param {string[]} names @param {(state: State) => void} callback
   * @returns {() => void} stops the calls
   */
  follow(names, callback) {
    const follower = { names, callback };
    followers.add(follower);
    return () => {
      followers.delete(follower);
    };
  },
};
