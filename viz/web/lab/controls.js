// The controls of a panel, as it declares them (viz/panels/panel.py), drawn with the browser's own elements.
import { el, menu } from "../core/dom.js";
import { pageLink } from "../core/links.js";
import { store } from "../store/store.js";

// Create the controls of a panel. declared: field -> description; button: or null. moved: called when a person has moved a
// control; pressed: when the button was pressed. Returns {element, values, set, take, fill}; element is null without controls.
export function createControls(panel, declared, button, { moved, pressed }) {
  const controls = Object.entries(declared).map(([field, description]) => [
    field,
    CONTROLS[description.type](`set-${panel}-${field}`, description, moved),
  ]);
  function submit(event) {
    event.preventDefault();
    if (button) pressed();
  }
  const form = el(
    "form",
    { class: "controls", novalidate: true, onsubmit: submit }, // values are put within bounds
    controls.map(([, control]) => control.element),
    button && el("button", { type: "submit", id: button.id, class: "plain strong" }, button.label),
  );
  const element = controls.length || button ? form : null;

  return {
    element,
    // The values for the next request, by field. A value that the server chooses for the sentence is left out.
    values: () =>
      Object.fromEntries(
        controls
          .map(([field, control]) => [field, control.value()])
          .filter(([, value]) => value !== undefined),
      ),
    // Set the controls that a link's fields name. Returns whether there are any.
    set(link) {
      const named = controls.filter(([field]) => field in link);
      for (const [field, control] of named) control.set(link[field]);
      return named.length > 0;
    },
    // The answer for a sentence: what the controls were taken for, and the ends of sliders.
    take({ controls: values = {}, ends = {}, lacks }) {
      for (const [field, control] of controls) control.take(values[field], ends[field]);
      form.hidden = Boolean(lacks); // they would do nothing
    },
    // Put a text into the panel's line.
    fill(text) {
      controls.find(([field]) => declared[field].type === "text")[1].set(text);
    },
  };
}

// A labelled control. id: of the label; attributes: of the whole.
const labelled = (id, { label, info, scale }, kind, attributes, ...parts) =>
  el(
    "div",
    { class: `control ${kind}`, style: scale ? `--scale: ${scale}` : null, ...attributes },
    el("span", { class: "label" }, el("span", { id }, label), info ? el("small", {}, info) : ""),
    ...parts,
  );

const CONTROLS = {
  slider(id, description, moved) {
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
    // An emptied field is what the control begins with.
    function put(given) {
      const wanted = given === "" || !Number.isFinite(Number(given)) ? start : Number(given);
      value = Math.max(low, Math.min(Number(range.max), Math.round(wanted)));
      range.value = number.value = value;
    }
    function change(given) {
      const before = value;
      put(given);
      if (value !== before) moved();
    }
    return {
      element: labelled(id, description, "slider", {}, el("div", { class: "set" }, range, number)),
      value: () => value,
      set: put,
      take(_, end) {
        if (end === undefined) return;
        range.max = number.max = end;
        if (value > end) put(end);
      },
    };
  },

  choice(id, description, moved) {
    const { options, start, folded } = description;
    const attributes = { "aria-labelledby": id, onchange: moved };
    const choices = folded
      ? menu(options, start, attributes)
      : el(
          "div",
          { class: "options", role: "radiogroup", ...attributes },
          options.map(([value, words]) =>
            el("label", {}, el("input", { type: "radio", name: id, value }), el("span", {}, words)),
          ),
        );
    const put = (wanted) => {
      if (!options.some(([value]) => value === wanted)) return; // a link may say anything
      if (folded) choices.value = wanted;
      else choices.querySelector(`input[value="${CSS.escape(wanted)}"]`).checked = true;
    };
    put(start);
    return {
      element: labelled(id, description, folded ? "menu" : "radio", {}, choices),
      value: () => (folded ? choices.value : choices.querySelector("input:checked").value),
      set: put,
      take() {},
    };
  },

  text(id, description, moved) {
    const { start, placeholder, known } = description;
    let about = null; // the sentence that the text was typed for: fields of its address; null: it is not a person's
    const line = el("input", {
      type: "text",
      value: start,
      placeholder,
      autocomplete: "off",
      dir: "auto",
      "aria-labelledby": id,
      oninput: () => {
        about = sentence();
        moved();
      },
    });
    return {
      element: labelled(id, description, "line", { id: description.id }, line),
      value: () => (known && !isOf(about) ? undefined : line.value),
      set(text) {
        line.value = text;
        about = { text: pageLink().get("text") ?? sentence().text }; // a link's own sentence may still be on its way
      },
      take(text) {
        if (known && !isOf(about) && text !== undefined) line.value = text;
      },
    };
  },
};

const sentence = () => {
  const { text, direction, digest } = store.state.address ?? {};
  return { text, direction, digest };
};
const isOf = (about) =>
  about !== null && Object.entries(about).every(([name, value]) => sentence()[name] === value);
