// The page's frame, until Gradio has built the page: in the visitor's words and colours, and gone once what it stands
// for is there. It stands in the page behind the frame, as it is, with language -> English -> text, and shows it.
{
  const words = JSON.parse(document.currentScript.dataset.words);
  const shell = document.querySelector(".atlas-shell");
  const own = words[document.documentElement.dataset.language] || {};
  for (const node of shell.querySelectorAll("[data-say]"))
    node.textContent = own[node.textContent] || node.textContent;
  // Gradio chooses by the same rule.
  const theme = new URLSearchParams(location.search).get("__theme");
  const dark =
    theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  shell.classList.toggle("dark", dark);
  // A link names another sentence.
  for (const node of location.hash.length > 1
    ? shell.querySelectorAll(".asked > .sentence, .written :is(span, b)")
    : [])
    node.textContent = "";
  shell.dataset.ready = "";
  const parts = [
    "#atlas-title h1",
    "#translate",
    ".atlas-translation[data-mounted]",
    "#tab-explorer-button",
  ];
  const watch = new MutationObserver(
    () => parts.every((part) => document.querySelector(part)) && leave(),
  );
  const leave = () => {
    watch.disconnect();
    clearTimeout(late);
    requestAnimationFrame(() => shell.remove()); // in the frame in which the page itself is painted
  };
  const late = setTimeout(leave, 20000); // whatever failed then has to be seen
  watch.observe(document.body, { childList: true, subtree: true });
}
