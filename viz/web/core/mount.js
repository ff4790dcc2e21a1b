// Mounts a component on Gradio's page; viz/component.py calls mount() from each component's script.
import { loadStyle } from "./dom.js";
import { loadWords, wordFiles } from "./language.js";
import { loadOpening, openingValue } from "./opening.js";
import "./wording.js";

const loaded = [loadWords(wordFiles), loadOpening()];

/**
 * Call a component's function `(root, api)` once its words, its value and style sheets have loaded.
 * @param {(root: HTMLElement, api: any) => void} component a module's default export
 * @param {HTMLElement} element Gradio's element around the component
 * @param {object} setup
 * @param {string} setup.name of the component
 * @param {any} setup.props Gradio's props: `value` is the component's value as JSON
 * @param {(event: string, data: any) => void} setup.trigger a Gradio event
 * @param {any} setup.options constant options of the component
 * @param {string[]} setup.styles addresses of style sheets; a sheet that fails is left out
 */
export async function mount(component, element, { name, props, trigger, options, styles }) {
  await Promise.all([...loaded, ...styles.map((style) => loadStyle(style).catch(() => {}))]);
  const root = /** @type {HTMLElement} */ (element.querySelector(".atlas-root") || element);
  root.dataset.mounted = document.documentElement.dataset.mounted = "";
  const value = () => openingValue(name) ?? JSON.parse(props.value);
  component(root, { value, trigger, options });
}
