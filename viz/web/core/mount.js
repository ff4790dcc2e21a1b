// How a component of ours comes onto Gradio's page (viz/component.py).
import { loadStyle } from "./dom.js";
import { loadWords } from "./language.js";
import { setPlotlyAddress } from "./plotly.js";

const page = document.querySelector("script[data-languages]");
const spoken = page && loadWords(JSON.parse(page.dataset.languages));

// component: a module's default, (root, api) => {}. options: what it is told once; styles: addresses of its style sheets;
// plotly: where Plotly.js is.
export async function mount(component, element, { props, trigger, options, styles, plotly }) {
  if (plotly) setPlotlyAddress(plotly);
  await Promise.all([spoken, ...styles.map((one) => loadStyle(one).catch(() => {}))]); // drawn plainly rather than not
  const root = element.querySelector(".atlas-root") || element;
  root.dataset.mounted = document.documentElement.dataset.mounted = "";
  component(root, { value: () => JSON.parse(props.value), trigger, options });
}
