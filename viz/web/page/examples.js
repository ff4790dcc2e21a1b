// Example sentences as a row of buttons, and the ways into what goes through the page.
AttentionAtlas.register("examples", (root, api) => {
  const { element: el, t } = AttentionAtlas;
  const { tour, presentation } = api.options;
  const present = AttentionAtlas.presenting(presentation);
  const begin = () =>
    document.dispatchEvent(new CustomEvent("atlas-tour", { detail: { tour: tour.name } }));
  const draw = ({ sentences, cost }) => {
    root.replaceChildren(
      el(
        "div",
        { class: "ways" },
        tour
          ? el(
              "button",
              { type: "button", class: "way tour", onclick: begin },
              t("Take the tour ({n} minutes)", { n: tour.minutes }),
            )
          : null,
        el(
          "button",
          {
            type: "button",
            class: "way present",
            title: t("One picture fills the screen, for a class (f)"),
            onclick: present,
          },
          t("Present"),
        ),
      ),
      cost ? el("p", { class: "cost" }, cost) : "",
      sentences.length ? el("span", { class: "label" }, t("Try")) : "",
      ...sentences.map((text) =>
        el(
          "button",
          { type: "button", class: "example", onclick: () => api.trigger("pick", { text }) },
          text,
        ),
      ),
    );
  };
  // Gradio translates labels, but no placeholders.
  document
    .querySelector("#source-text :is(textarea, input)")
    ?.setAttribute("placeholder", t("Type a sentence and press Enter"));
  draw(api.value());
  api.onValue(draw);
});
