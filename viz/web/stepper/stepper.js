// The tab "Step by step": decode token by token, choose other tokens, compare the branches. The page holds whole branches, so
// moving between steps needs no server; what the model has to compute is requested one action at a time, in order.
import { ask as askServer } from "../core/ask.js";
import { button, debounce, el, group, showInvitation } from "../core/dom.js";
import { toText, say, t } from "../core/language.js";
import { copyLink, followStepLinks, linkFields, tabLinks } from "../core/links.js";
import { markPanel } from "../lab/glossary.js";
import { createPicture } from "../picture/copy.js";
import { store } from "../store/store.js";
import { openAddress } from "../store/translation.js";
import { createBeam } from "./beam.js";
import { createComparison, createOwnTarget, createTree } from "./branches.js";
import { createHeads } from "./heads.js";
import { createLens } from "./lens.js";
import { Path, textOf } from "./path.js";
import { createCandidates, createSentences } from "./tokens.js";
import { createTransport } from "./transport.js";

// The panels below the steps. One is shown at a time.
const PANELS = [
  ["branches", say("Branches")],
  ["compare", say("Compare")],
  ["lens", say("Layer by layer")],
  ["beam", say("Beam search")],
  ["own", say("Your own target")],
];
const AHEAD = 4; // of a long path, the attention of this many steps is requested early
const OF_SENTENCE = ["source_ids", "digest", "direction", "interventions"]; // fields of an address

/**
 * @param {any} root the element of the tab
 * @param {{options: {colours: string[]}}} api options.colours: those of weights from 0 to 1
 */
export default function stepper(root, api) {
  /** @type {any} */
  let tree = null, // viz/wire/steps.py, tree_payload
    treeState = null, // the tree in the server's form, which goes back with each request
    branch = null, // of the tree; that of the path
    published = null; // the address that the other tabs are to show
  /** @type {any} */
  let path = null;
  /** @type {any} */
  let selection = { kind: "cross", layer: 0, head: 0 };
  let step = 0,
    temperature = 1,
    isStale = false, // whether the other tabs show another sentence
    frame = 0; // of the browser, in which draw() is due

  // --- requests, one at a time, in order ------------------------------------------------------------------------------
  let last = Promise.resolve(), // the last request
    pending = 0, // how many requests have no answer yet
    openings = 0; // how many of them will open a branch

  const showBusy = () => root.setAttribute("aria-busy", String(pending > 0));

  // opens: whether the answer opens a branch.
  function ask(action, data = {}, opens = false) {
    pending += 1;
    if (opens) openings += 1;
    showBusy();
    last = last
      .then(() => send({ action, ...data }))
      .catch(reportError)
      .then(() => {
        pending -= 1;
        if (opens) openings -= 1;
        showBusy();
      });
  }

  async function send(fields) {
    const { address, selection: selected, asked } = store.state;
    const answer = await askServer("page_step", {
      address,
      fields: { ...fields, state: treeState, selection: selected, asked },
    });
    if (answer.state) treeState = answer.state;
    if (answer.opened) published = answer.opened;
    if (fields.action === "changed") followAddress(answer);
    else receive(answer);
  }

  function followAddress(answer) {
    isStale ||= (answer.stale ?? true) || root.classList.contains("inviting");
    if (isStale && root.offsetParent) restart();
  }

  function receive(answer) {
    if (answer.selection) follow(answer.selection);
    if (answer.error || answer.invitation) fillRoot();
    alert.textContent = toText(answer.error) || "";
    alert.hidden = !answer.error;
    if (answer.error) {
      if (path) sentences.open(path, branch); // in place of the token that was expected
      path?.requested.clear();
      schedule();
    }
    showInvitation(root, answer.invitation);
    if (answer.path) open(answer);
    if (answer.opened) publish();
    if (path && answer.details?.number === path.number) {
      path.details = answer.details;
      if (panel === "lens") panels.lens.draw(path, branch);
      schedule();
    }
    if (path && answer.rows?.number === path.number) {
      path.addRows(answer.rows);
      schedule();
    }
    if (answer.comparison) panels.compare.show(answer.comparison);
    if (answer.beam) panels.beam.show(answer.beam);
  }

  function open({ tree: newTree, path: payload, at }) {
    if (newTree.text !== tree?.text) panels.beam.clear();
    tree = newTree;
    path = new Path(payload);
    branch = tree.branches.find(({ number }) => number === path.number);
    step = Math.min(at ?? step, path.length);
    sentences.open(path, branch);
    heads.open(path);
    showPanels();
    drawPanel();
    draw();
    if (temperature !== 1) requestDetails();
    root.dataset.opened = String(Number(root.dataset.opened || 0) + 1);
    followLink();
  }

  // Show the branch in the other tabs, unless they have gone on to another sentence.
  const publish = debounce(() => {
    const { address, translating } = store.state,
      sentence = (fields) => JSON.stringify(OF_SENTENCE.map((name) => fields[name]));
    if (openings) publish();
    else if (address && !translating && sentence(address) === sentence(published))
      openAddress(published);
  }, 150);

  const requestDetails = () => path.details ?? ask("details", { branch: path.number });

  function requestRows() {
    const missing = path.firstMissing(step, step + (path.has(step) ? AHEAD : 1));
    if (missing === null) return;
    path.requested.add(missing);
    ask("rows", { branch: path.number, step: missing });
  }

  function restart() {
    isStale = false;
    ask("start", {}, true);
  }

  // --- moving ---------------------------------------------------------------------------------------------------------
  function go(newStep) {
    step = Math.max(0, Math.min(path.length, newStep));
    schedule();
  }

  // Go to the step change(step). While a branch is on its way, the move waits for it.
  function move(change) {
    if (openings) last.then(() => move(change));
    else go(change(step));
  }

  function jump(newStep) {
    transport.pause();
    move(() => newStep);
  }

  function force(rank) {
    const candidate = path.steps[step]?.candidates[rank];
    if (!candidate || openings) return;
    transport.pause();
    if (candidate.id === path.steps[step].id) return move((current) => current + 1);
    sentences.expect(step, candidate.text);
    ask("force", { branch: path.number, step, token: candidate.id }, true);
  }

  function forceText(text, joined) {
    transport.pause();
    ask("force", { branch: path.number, step, text, joined }, true);
  }

  function select(kind, layer, head) {
    sentences.select(kind);
    store.set({ selection: { kind, layer, head, query: null, key: null } });
    schedule();
  }

  function follow(newSelection) {
    selection = newSelection;
    if (path) schedule();
  }

  // --- links: the step in the page's address --------------------------------------------------------------------------
  // A link opens the branch that the model wrote on its own.
  const ownBranch = () => tree.branches.find(({ origin }) => origin === "own");
  const followLink = followStepLinks(
    "stepper",
    () => path && !isStale && ownBranch() && tree,
    (linked) => {
      const { number } = ownBranch();
      if (path.number !== number) ask("open", { branch: number }, true);
      jump(linked);
    },
  );

  const fields = () => linkFields(tree, { tab: "stepper", step: step + 1 });
  tabLinks.stepper = () => path && fields();
  const copied = el("span", { class: "caption", role: "status" }),
    copy = () => copyLink(fields(), (words) => copied.replaceChildren(words)),
    copyButton = button(t("Copy link"), copy, { title: t("A link that restores this view") });

  // --- the page -------------------------------------------------------------------------------------------------------
  const alert = el("p", { class: "notice error", role: "alert", hidden: true }),
    news = el("p", { class: "caption said", "aria-live": "polite" });
  const sentences = createSentences({
    jump,
    announce: (words) => (news.textContent = words),
    redraw: schedule,
  });
  const transport = createTransport({ move, isAtEnd: () => step >= path.length, force }, [
    sentences.shading,
    copyButton,
    copied,
  ]);
  const about = (title) => ({
    title: () => `${title} · ${transport.position()}`,
    caption: () => `${tree.text} → ${textOf(branch.tokens)}`,
  });
  function setTemperature(value) {
    temperature = value;
    if (temperature !== 1) requestDetails();
    schedule();
  }
  const candidates = createCandidates({ force, forceText, about, setTemperature }),
    heads = createHeads({ select, about }, api.options.colours);
  /** @type {Record<string, any>} */
  const panels = {
    branches: createTree({ open: (number) => ask("open", { branch: number }, true) }),
    compare: createComparison({
      compare: (first, second) => ask("compare", { first, second }),
      select,
      about,
    }),
    lens: createLens({ jump, about }),
    beam: createBeam({
      search: (width, penalty) => ask("beam", { width, penalty }),
      open: (ids) => ask("node", { ids }, true),
      about,
    }),
    own: createOwnTarget({ force: (text) => ask("target", { text }, true) }),
  };
  let panel = "branches"; // the panel on the page
  const stage = el("div", { class: "panel-stage" });
  const panelButtons = PANELS.map(([name, title]) =>
    button(title, () => showPanel(name), { class: null, "data-panel": name }),
  );
  function showPanel(name) {
    panel = name;
    for (const node of panelButtons)
      node.setAttribute("aria-pressed", String(node.dataset.panel === name));
    stage.replaceChildren(panels[name].root);
    drawPanel();
  }
  // A recurrent network has no layers to look through.
  function showPanels() {
    for (const node of panelButtons)
      node.hidden = node.dataset.panel === "lens" && Boolean(path.states);
    if (panel === "lens" && path.states) showPanel("branches");
  }
  const panes = el("div", { class: "panes" }, candidates.root, heads.root);
  const picture = {
    title: transport.position,
    caption: about("").caption,
    main: true,
    hint: t("← → steps"),
    move: (down, right) => {
      transport.pause();
      move((current) => current + (right || down));
    },
  };
  const content = [
    alert,
    transport.root,
    createPicture(el("div", { class: "steps" }, sentences.root, panes, sentences.note), picture),
    news,
    group("segmented choose-panel", t("More"), panelButtons),
    stage,
  ];

  // Replace the server's empty frame, but only once there is something to show: nothing jumps.
  function fillRoot() {
    if (!transport.root.isConnected) {
      root.replaceChildren(...content);
      markPanel(root);
    }
  }

  function drawPanel() {
    if (!path) return;
    if (panel === "lens") {
      requestDetails();
      panels.lens.draw(path, branch);
      panels.lens.step(step);
    } else if (panel !== "beam") panels[panel].draw(tree, path.number);
  }

  function schedule() {
    if (!frame) frame = requestAnimationFrame(draw);
  }

  function draw() {
    cancelAnimationFrame(frame);
    frame = 0;
    if (!path) return;
    fillRoot();
    if (step < path.length) requestRows();
    sentences.step(step, selection);
    candidates.draw(path, step, temperature);
    heads.step(step, selection);
    panels.lens.step(step);
    const { finished, origin } = branch;
    transport.show(step, { length: path.length, finished, isOpening: openings > 0 });
    copied.replaceChildren(); // it was about an earlier view
    copyButton.hidden = origin !== "own"; // no link contains what a person forced
    root.dataset.step = String(step);
  }

  transport.listen(root, () => path);
  new IntersectionObserver(
    (entries) => entries.at(-1)?.isIntersecting && (isStale || !path) && !openings && restart(),
  ).observe(root);
  showPanel(panel);
  root.setAttribute("aria-busy", "false"); // nothing is requested yet
  store.follow(["selection"], (state) => follow(state.selection));
  store.follow(["address"], () => (path || openings) && ask("changed"));
}
