// The way into a presentation: a button beside that of the tours, the key f, and links (present=1). All else of it is
// fetched when one is started.
(function (atlas) {
  "use strict";

  // files: {script, style}. Returns what starts one.
  atlas.presenting = function (files) {
    let loading = null;

    async function start() {
      const opener = document.activeElement,
        pointed = document.querySelector(".pictured:hover, .pictured:focus-within");
      loading ||= atlas
        .fetched(files)
        .then(() => atlas.presentation())
        .catch(() => (loading = null));
      (await loading)?.start({ opener, pointed });
    }

    const follow = () => atlas.link().get("present") && start();
    document.addEventListener("keydown", (event) => {
      if (event.key !== "f" || event.altKey || event.ctrlKey || event.metaKey) return;
      if (
        event.target.closest("input:not([type=range]), textarea, select, [contenteditable], dialog")
      )
        return;
      event.preventDefault();
      start();
    });
    window.addEventListener("hashchange", follow);
    follow();
    return start;
  };
})(globalThis.AttentionAtlas);
