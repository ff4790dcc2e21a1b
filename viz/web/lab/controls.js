// The controls of a panel, as it declares them (viz/panels/panel.py), drawn with the browser's own elements.
import { el, form, menu } from "../core/dom.js";
import { pageLink } from "../core/links.js";
import { store } from "../store/store.js";

/**
 * Create the controls of a panel, or {element: null, ..} if it has none.
 * @param {string} panel its name
 * @param {Record<string, any>} declared field -> description
 * @param {{id: string, label: any} | null} button
 * @param {{onMove: () => void, onPress: () => void}} hooks onMove: a person has moved a control
 */
export function createControls(panel, declared, button, { onMove, onPress }) {
  const controls = Object.entries(declared).map(([field, description]) => [
    field,
    CONTROLS[description.type](`set-${panel}-${field}`, description, () => move(description)),
  ]);
  // A typed text may change what is suggested for others: their suggestions come with the next answer.
  const withSuggestion = new Set();
  function move({ type }) {
    if (type === "text") for (const control of withSuggestion) control.suggest("");
    onMove();
  }
  const submit = () => button && onPress();
  // The browser need not validate: createSlider keeps values within bounds.
  const element = form({ class: "controls", novalidate: true }, submit, [
    controls.map(([, control]) => control.element),
    button && el("button", { type: "submit", id: button.id, class: "plain strong" }, button.label),
  ]);

  return {
    element: controls.length || button ? element : null,
    // The values for the next request, by field, without those that the server chooses for the sentence.
    values: () =>
      Object.fromEntries(
        controls
          .map(([field, control]) => [field, control.value()])
          .filter(([, value]) => value !== undefined),
      ),
    // Set the controls that a link's fields name. Returns whether it names any.
    set(link) {
      const named = controls.filter(([field]) => field in link);
      for (const [field, control] of named) control.set(link[field]);
      return named.length > 0;
    },
    /**
     * Show the values that the server used, the ends of sliders, and suggestions.
     * @param {any} answer PanelAnswer of panel.js
     */
    update({ controls: values = {}, ends = {}, suggested = {}, lacks }) {
      for (const [field, control] of controls) {
        control.update(values[field], ends[field]);
        if (!(field in suggested)) continue;
        withSuggestion.add(control);
        control.suggest(suggested[field]);
      }
      element.hidden = Boolean(lacks); // the panel has no answer, so controls would do nothing
    },
    // Put a text into the panel's text field.
    fill(text) {
      controls.find(([field]) => declared[field].type === "text")[1].set(text);
    },
  };
}

// Put a label beside a control. id: that of the label; attributes: those of both together.
const addLabel = (id, { label, info, scale }, kind, attributes, ...parts) =>
  el(
    "div",
    { class: `control ${kind}`, style: scale ? `--scale: ${scale}` : null, ...attributes },
    el("span", { class: "label" }, el("span", { id }, label), info ? el("small", {}, info) : ""),
    parts,
  );

function createSlider(id, description, onMove) {
  const { low, high, start, step } = description;
  let value = start;
  const attributes = { min: low, max: high, step, value: start, "aria-labelledby": id };
  const range = el("input", { type: "range", ...attributes, oninput: () => change(range.value) });
  const number = el("input", {
    type: "number",
    style: `--digits: ${String(high).length}`,
    ...attributes,
    onchange: () => change(number.value),
  });
  // Set the value from a text. An empty or invalid text stands for the value that the control starts with.
  function set(text) {
    const parsed = text === "" || !Number.isFinite(Number(text)) ? start : Number(text);
    value = Math.max(low, Math.min(Number(range.max), Math.round(parsed)));
    range.value = number.value = value;
  }
  function change(text) {
    const before = value;
    set(text);
    if (value !== before) onMove();
  }
  return {
    element: addLabel(id, description, "slider", {}, el("div", { class: "set" }, range, number)),
    value: () => value,
    set,
    update(_, end) {
      if (end === undefined) return;
      range.max = number.max = end;
      if (value > end) set(end);
    },
  };
}

function createChoice(id, description, onMove) {
  const { options, start, folded } = description;
  const attributes = { "aria-labelledby": id, onchange: onMove };
  const choices = folded
    ? menu(options, start, attributes)
    : el("div", { class: "options", role: "radiogroup", ...attributes }, [
        options.map(([value, words]) =>
          el("label", {}, el("input", { type: "radio", name: id, value }), el("span", {}, words)),
        ),
      ]);
  const set = (value) => {
    if (!options.some(([option]) => option === value)) return; // a link may contain anything
    if (folded) choices.value = value;
    else choices.querySelector(`input[value="${CSS.escape(value)}"]`).checked = true;
  };
  set(start);
  return {
    element: addLabel(id, description, folded ? "menu" : "radio", {}, choices),
    value: () => (folded ? choices.value : choices.querySelector("input:checked").value),
    set,
    update() {},
  };
}

// known: whether the server may choose the text for a sentence, until a person types one.
function createText(id, description, onMove) {
  const { start, placeholder, known } = description;
  let about = null; // the sentence that a person typed the text for, as sentence() below; null: the text is not a person's
  const line = el("input", {
    type: "text",
    value: start,
    placeholder,
    autocomplete: "off",
    dir: "auto",
    "aria-labelledby": id,
    oninput: () => {
      about = sentence();
      onMove();
    },
  });
  return {
    element: addLabel(id, description, "line", { id: description.id }, line),
    value: () => (known && !isCurrent(about) ? undefined : line.value),
    set(text) {
      line.value = text;
      about = { text: pageLink().get("text") ?? sentence().text }; // a link's sentence may still be on its way
    },
    update(text) {
      if (known && !isCurrent(about) && text !== undefined) line.value = text;
    },
    suggest: (text) => (line.placeholder = text),
  };
}

const CONTROLS = { slider: createSlider, choice: createChoice, text: createText };

// The fields of an address that identify the sentence on the page.
const sentence = () => {
  const { text, direction, digest } = store.state.address ?? {};
  return { text, direction, digest };
};
const isCurrent = (about) =>
  about !== null && Object.entries(about).every(([name, value]) => sentence()[name] === value);
