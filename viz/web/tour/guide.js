// The way into the tours: the button beside the examples, and links to a stop (#tour=..&stop=..). All else of them is
// fetched when one is started.
AttentionAtlas.register("guide", (root, api) => {
  const atlas = AttentionAtlas;
  let loading = null;

  function load() {
    loading ||= Promise.all([atlas.fetched(api.options), atlas.learn(api.options.words)])
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
    if (link.get("tour"))
      start({
        tour: link.get("tour"),
        stop: Number(link.get("stop")) || 1,
        direction: link.get("direction") || "",
      });
    else if (loading) loading.then((tour) => tour?.leave());
  }

  document.addEventListener("atlas-tour", ({ detail }) => start({ ...detail, stop: 1 }));
  window.addEventListener("hashchange", follow);
  follow();
});
