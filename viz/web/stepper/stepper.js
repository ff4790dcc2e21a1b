// The stepper: decode token by token, choose otherwise, compare. The page holds whole branches, so that a step needs no
// server; what the model must compute is asked for one action at a time, in order.
import { button, debounce, el, invite } from "../core/dom.js";
import { said, t } from "../core/language.js";
import { copyLink, isAbout, linkTo, pageLink, tabLinks } from "../core/links.js";
import { connect } from "../core/rpc.js";
import { pictured } from "../picture/copy.js";
import { createBeam } from "./beam.js";
import { createHeads } from "./heads.js";
import { branches } from "./branches.js";
import { comparison } from "./comparison.js";
import { lens } from "./lens.js";
import { ownTarget } from "./own.js";
import { Path, written } from "./path.js";
import { createCandidates, createSentences } from "./tokens.js";
import { createTransport } from "./transport.js";

export default function stepper(root, api) {
  const PATIENCE = 15000; // milliseconds after which an action is asked for once more: each may be done twice
  const AHEAD = 4; // steps whose attention is asked for before they are gone to, of a path that is not sent whole
  const PANELS = [
    ["branches", t("Branches")],
    ["compare", t("Compare")],
    ["lens", t("Layer by layer")],
    ["beam", t("Beam search")],
    ["own", t("Your own target")],
  ];

  let tree = null,
    path = null,
    branch = null,
    heads = null,
    at = 0,
    temperature = 1,
    panel = "branches";
  let selection = { kind: "cross", layer: 0, head: 0 },
    shade = "mean",
    stale = false,
    frame = 0;
  let opening = 0, // actions that will open a branch
    published = 0; // the question that opened what the other tabs are to show
  const later = []; // moves made meanwhile
  let wanted = null; // what a link names, until its sentence is the one that is shown

  // --- what the server is asked -------------------------------------------------------------------------------------
  const queue = [];
  let waiting = false;

  function ask(action, data = {}, opens = false) {
    if (opens) opening += 1;
    queue.push([{ action, ...data }, opens]);
    root.setAttribute("aria-busy", "true");
    sendNext();
  }

  function sendNext() {
    if (waiting || !queue.length) return;
    const [data, opens] = queue.shift(),
      held = path; // shown when this is asked for
    const holds = held && {
      tree: tree.key,
      branches: tree.branches.map((b) => b.number),
      path: held.number,
    };
    waiting = true;
    rpc.ask(
      "act",
      { ...data, holds },
      async (answer, number) => {
        waiting = false;
        if (answer.publish) published = number;
        if (data.action === "changed")
          told({ stale: (answer.stale ?? true) || root.classList.contains("inviting") });
        else await take({ ...answer, held });
        if (opens) opening -= 1;
        if (!opening) later.splice(0).forEach((move) => go(move(at)));
        root.setAttribute("aria-busy", queue.length || waiting ? "true" : "false");
        sendNext();
      },
      PATIENCE,
    );
  }

  // Unasked: what the page opens with, or another selection. Asked: whether the other tabs show another sentence.
  function told(value) {
    if (value.stale !== undefined) {
      stale = stale || value.stale;
      if (stale && root.offsetParent) restart();
    } else if (value.path || value.invitation) take({ ...value, held: null });
    else see(value.selection);
  }

  function see(selected) {
    selection = selected;
    if (path) schedule();
  }

  async function take(value) {
    if (value.selection) see(value.selection);
    if (value.error || value.invitation) lay();
    message(said(value.error) || "");
    if (value.error) {
      if (path) sentences.open(path, branch); // what was expected did not come
      path?.awaited.clear();
      schedule();
    }
    invite(root, value.invitation);
    if (value.tree)
      tree = {
        ...value.tree,
        branches: value.tree.branches.map((b) =>
          typeof b === "number" ? tree.branches.find((old) => old.number === b) : b,
        ),
      };
    if (value.path) await open(value.path, value.at, value.held);
    if (value.publish) publish();
    if (value.details && value.details.number === path.number) {
      path.details = value.details;
      if (panel === "lens") panels.lens.draw(path, branch);
      schedule();
    }
    if (value.rows && value.rows.number === path.number) {
      path.addRows(value.rows);
      schedule();
    }
    if (value.comparison) panels.compare.show(value.comparison);
    if (value.beam) panels.beam.show(value.beam);
  }

  async function open(payload, to, held) {
    const other = !path || tree.text !== path.text;
    path = await Path.from(payload, held);
    if (!heads) {
      heads = createHeads({ select, about }, payload.colours);
      panes.append(heads.root);
    }
    path.text = tree.text;
    branch = tree.branches.find((b) => b.number === path.number);
    if (other) panels.beam.clear();
    at = Math.min(to ?? at, path.length);
    sentences.open(path, branch);
    heads.open(path);
    drawPanel();
    draw();
    if (temperature !== 1) need("details");
    root.dataset.opened = String(Number(root.dataset.opened || 0) + 1);
    follow();
  }

  // In the name of the question that opened it: what was asked since on other tabs stays.
  const publish = debounce(() => (opening ? publish() : rpc.tell("publish", {}, published)), 150);

  function need(what) {
    if (what === "details" && !path.details) ask("details", { branch: path.number });
    if (what !== "rows") return;
    const step = path.has(at) ? path.lacking(at, at + AHEAD) : path.lacking(at, at + 1);
    if (step === null) return;
    path.awaited.add(step);
    ask("rows", { branch: path.number, step });
  }

  function restart() {
    stale = false;
    ask("start", {}, true);
  }

  // --- links --------------------------------------------------------------------------------------------------------
  // The branch that a link brings back: what the model wrote by itself.
  const own = () => tree.branches.find((one) => one.origin === "own");

  function openLink() {
    const link = pageLink();
    wanted =
      link.get("tab") === "stepper" && /^\d{1,5}$/.test(link.get("step") || "") ? link : null;
    follow();
  }

  function follow() {
    if (!wanted || !path || stale || !own() || !isAbout(wanted, tree)) return;
    const step = Number(wanted.get("step")) - 1;
    wanted = null;
    transport.pause();
    if (path.number !== own().number) ask("open", { branch: own().number }, true);
    move(() => step);
  }

  const linked = () => linkTo(tree, { tab: "stepper", step: at + 1 });
  tabLinks.stepper = () => path && linked();

  const copy = () => copyLink(linked(), (said) => copied.replaceChildren(said));

  // --- moving -------------------------------------------------------------------------------------------------------
  function go(to) {
    at = Math.max(0, Math.min(path.length, to));
    schedule();
  }

  // While a new branch is on its way, moves wait for it: none is lost.
  function move(change) {
    if (opening) later.push(change);
    else go(change(at));
  }

  function force(i) {
    if (at >= path.length || opening) return;
    const candidate = path.steps[at].candidates[i];
    if (!candidate) return;
    transport.pause();
    if (candidate.id === path.steps[at].id) return move((now) => now + 1);
    sentences.expect(at, candidate.text);
    ask("force", { branch: path.number, step: at, token: candidate.id }, true);
  }

  function forceText(text, joined) {
    transport.pause();
    ask("force", { branch: path.number, step: at, text, joined }, true);
    candidates.clearText();
  }

  function select(kind, layer, head) {
    selection = { kind, layer, head, query: null, key: null };
    shade = kind === "cross" ? "head" : shade;
    shading.value = shade;
    rpc.tell("select", selection);
    schedule();
  }

  // --- the page -----------------------------------------------------------------------------------------------------
  const alert = el("p", { class: "notice error", role: "alert", hidden: true });
  const message = (words) => {
    alert.textContent = words;
    alert.hidden = !words;
  };
  const shading = el(
    "select",
    { "aria-label": t("Source shaded by"), onchange: () => ((shade = shading.value), schedule()) },
    el("option", { value: "mean" }, t("mean of all heads")),
    el("option", { value: "head" }, t("selected head")),
  );
  const sharing = button(t("Copy link"), copy, { title: t("A link that restores this view") });
  const copied = el("span", { class: "caption", role: "status" });
  const transport = createTransport({ go, move, isAtEnd: () => at >= path.length, force }, [
    el("label", { class: "caption shading" }, `${t("Shade by")} `, shading),
    sharing,
    copied,
  ]);
  const jump = (step) => (transport.pause(), move(() => step));
  const about = (title) => ({
    title: () => `${title} · ${transport.where()}`,
    caption: () => `${tree.text} → ${written(branch.tokens)}`,
  });
  const say = (words) => (news.textContent = words);
  const news = el("p", { class: "caption said", "aria-live": "polite" });
  const sentences = createSentences({ jump, say });
  const candidates = createCandidates({
    force,
    forceText,
    about,
    temperature: (value) => {
      temperature = value;
      if (value !== 1) need("details");
      schedule();
    },
  });
  const panels = {
    branches: branches({
      open: (number) => ask("open", { branch: number }, true),
    }),
    compare: comparison({
      compare: (a, b) => ask("compare", { first: a, second: b }),
      select,
      about,
    }),
    lens: lens({ jump, about }),
    beam: createBeam({
      search: (width, penalty) => ask("beam", { width, penalty }),
      node: (ids) => ask("node", { ids }, true),
      about,
    }),
    own: ownTarget({ target: (text) => ask("target", { text }, true) }),
  };
  const tabs = Object.fromEntries(
    PANELS.map(([name, title]) => [
      name,
      el(
        "button",
        {
          type: "button",
          "aria-pressed": "false",
          "data-panel": name,
          onclick: () => showPanel(name),
        },
        title,
      ),
    ]),
  );
  const stage = el("div", { class: "panel-stage" }),
    panes = el("div", { class: "panes" }, candidates.root);
  const steps = {
    title: transport.where,
    caption: about("").caption,
    main: true,
    hint: t("← → steps"),
    move: (down, right) => {
      transport.pause();
      move((now) => now + (right || down));
    },
  };
  const all = [
    alert,
    transport.root,
    pictured(el("div", { class: "steps" }, sentences.root, panes), steps),
    news,
    el(
      "div",
      { class: "segmented choose-panel", role: "group", "aria-label": t("More") },
      Object.values(tabs),
    ),
    stage,
  ];

  // In place of the empty frame, as late as there is something to show in it: nothing jumps.
  function lay() {
    if (!stage.isConnected) root.replaceChildren(...all);
  }

  function showPanel(name) {
    panel = name;
    for (const [key, tab] of Object.entries(tabs))
      tab.setAttribute("aria-pressed", String(key === name));
    stage.replaceChildren(panels[name].root);
    drawPanel();
  }

  function drawPanel() {
    if (!path) return;
    if (panel === "branches") panels.branches.draw(tree, path.number);
    if (panel === "compare") panels.compare.draw(tree, path.number);
    if (panel === "own") panels.own.draw(tree, path.number);
    if (panel === "lens") {
      need("details");
      panels.lens.draw(path, branch);
      panels.lens.step(at);
    }
  }

  function schedule() {
    if (!frame) frame = requestAnimationFrame(draw);
  }

  function draw() {
    cancelAnimationFrame(frame);
    frame = 0;
    if (!path) return;
    lay();
    const inside = at < path.length;
    if (inside) need("rows");
    const shown = inside && path.has(at),
      head = shade === "head" && selection.kind === "cross";
    const weights = !shown
      ? null
      : head
        ? path.row("cross", selection.layer, selection.head, at)
        : path.meanRow("cross", at);
    sentences.step(
      at,
      weights,
      head
        ? t("layer {layer}, head {head}", { layer: selection.layer + 1, head: selection.head + 1 })
        : t("the mean of all heads"),
    );
    candidates.draw(path, at, temperature);
    heads.step(at, selection);
    panels.lens.step(at);
    transport.show(at, { length: path.length, finished: branch.finished, opening });
    copied.replaceChildren(); // it was about what was shown before
    sharing.hidden = branch.origin !== "own"; // what was forced is in no link
    root.dataset.step = String(at);
  }

  transport.listen(root, () => path);
  new IntersectionObserver(
    (entries) =>
      entries[entries.length - 1].isIntersecting && (stale || !path) && !opening && restart(),
  ).observe(root);
  showPanel("branches");
  root.setAttribute("aria-busy", "false"); // what it opens with is here: nothing is asked for yet
  const rpc = connect(api, told);
  rpc.take(api.value());
  document.addEventListener("atlas-changed", () => (path || opening) && ask("changed"));
  window.addEventListener("hashchange", openLink);
  openLink();
}
