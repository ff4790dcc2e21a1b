// Example sentences as a row of buttons.
AttentionAtlas.register("examples", (root, api) => {
  const el = AttentionAtlas.element;
  const draw = (sentences) => {
    root.replaceChildren(
      el("span", { class: "label" }, "Try"),
      ...(sentences || []).map((text) =>
        el("button", { type: "button", class: "example", onclick: () => api.trigger("pick", { text }) }, text)
      )
    );
  };
  draw(api.value());
  api.onValue(draw);
});
