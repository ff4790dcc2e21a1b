// The way into the tours: the button beside the examples, and links to a stop (#tour=..&stop=..). All else of them is
// fetched when one is started.
AttentionAtlas.register("guide", (root, api) => {
  const atlas = AttentionAtlas, { element: el } = atlas;
  let loading = null;

  function load() {
    const { script, style, words } = api.options;
    const fetched = (tag, attributes) => new Promise((resolve, reject) => {
      document.head.append(el(tag, { ...attributes, onload: resolve, onerror: () => reject(new Error(script)) }));
    });
    loading ||= Promise.all([fetched("link", { rel: "stylesheet", href: style }), fetched("script", { src: script }), atlas.learn(words)])
      .then(() => atlas.tour(root, api))
      .catch(() => (loading = null)); // whoever asks again has it tried again
    return loading;
  }

  async function start(place) {
    (await load())?.go(place);
  }

  // A link names a tour, its stop and a direction; while a stop is shown, its own view is a link, too.
  function follow() {
    const link = atlas.link();
    if (link.get("tour")) start({ tour: link.get("tour"), stop: Number(link.get("stop")) || 1, direction: link.get("direction") || "" });
    else if (loading) loading.then((tour) => tour?.leave());
  }

  document.addEventListener("atlas-tour", ({ detail }) => start({ ...detail, stop: 1 }));
  window.addEventListener("hashchange", follow);
  follow();
});
