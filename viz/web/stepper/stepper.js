// The stepper: decode token by token, choose otherwise, compare. The page holds whole branches, so that a step needs no
// server; what the model must compute is asked for one action at a time, in order.
import { ask as askServer } from "../core/ask.js";
import { button, debounce, el, showInvitation } from "../core/dom.js";
import { toText, say, t } from "../core/language.js";
import { copyLink, isAbout, linkFields, pageLink, tabLinks } from "../core/links.js";
import { createPicture } from "../picture/copy.js";
import { store } from "../store/store.js";
import { openAddress } from "../store/translation.js";
import { createHeads } from "./heads.js";
import { createBeam } from "./panels/beam.js";
import { branches } from "./panels/branches.js";
import { comparison } from "./panels/comparison.js";
import { lens } from "./panels/lens.js";
import { ownTarget } from "./panels/own.js";
import { Path, completed, holding, written } from "./path.js";
import { createCandidates, createSentences } from "./tokens.js";
import { createTransport } from "./transport.js";

// What stands below the steps: one panel at a time, chosen by its button.
const PANELS = [
  ["branches", say("Branches")],
  ["compare", say("Compare")],
  ["lens", say("Layer by layer")],
  ["beam", say("Beam search")],
  ["own", say("Your own target")],
];
const AHEAD = 4; // steps whose attention is asked for before they are gone to, of a path that is not sent whole

export default function stepper(root) {
  let tree = null,
    state = null, // the tree as the server reads it
    path = null,
    branch = null,
    heads = null,
    at = 0,
    temperature = 1,
    selection = { kind: "cross", layer: 0, head: 0 },
    stale = false,
    frame = 0,
    published = null; // the address that the other tabs are to show

  // --- what the server is asked, one action at a time, in order -----------------------------------------------------
  const questions = [], // [question, whether it opens a branch]
    later = []; // moves that wait for the branches that are on their way
  let isAsking = false,
    opening = 0; // actions that will open a branch

  const showBusy = () => root.setAttribute("aria-busy", String(questions.length > 0 || isAsking));

  function ask(action, data = {}, opens = false) {
    if (opens) opening += 1;
    questions.push([{ action, ...data }, opens]);
    showBusy();
    sendNext();
  }

  async function sendNext() {
    if (isAsking || !questions.length) return;
    const [question, opens] = questions.shift(),
      held = path, // shown when this is asked for
      holds = held && holding(tree, held),
      { address, selection: selected, asked } = store.state;
    isAsking = true;
    const fields = { ...question, holds, state, selection: selected, asked };
    const answer = await askServer("page_step", { address, fields });
    isAsking = false;
    await taken(question, answer, held);
    if (opens) opening -= 1;
    if (!opening) later.splice(0).forEach((act) => act());
    showBusy();
    sendNext();
  }

  function taken({ action }, answer, held) {
    if (answer.state) state = answer.state;
    if (answer.opened) published = answer.opened;
    if (action !== "changed") return take(answer, held);
    // Whether the other tabs show another sentence.
    stale ||= (answer.stale ?? true) || root.classList.contains("inviting");
    if (stale && root.offsetParent) restart();
  }

  function see(selected) {
    selection = selected;
    if (path) schedule();
  }

  async function take(value, held) {
    if (value.selection) see(value.selection);
    if (value.error || value.invitation) lay();
    message(toText(value.error) || "");
    if (value.error) {
      if (path) sentences.open(path, branch); // what was expected did not come
      path?.awaited.clear();
      schedule();
    }
    showInvitation(root, value.invitation);
    if (value.tree) tree = completed(value.tree, tree);
    if (value.path) await open(value.path, value.at, held);
    if (value.opened) publish();
    if (path && value.details?.number === path.number) {
      path.details = value.details;
      if (panel === "lens") panels.lens.draw(path, branch);
      schedule();
    }
    if (path && value.rows?.number === path.number) {
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
    followLink();
  }

  // The other tabs show the branch too, unless they have gone on to another sentence.
  const OF_SENTENCE = ["source_ids", "digest", "direction", "interventions"];
  const publish = debounce(() => {
    const { address, translating } = store.state,
      sentence = (one) => JSON.stringify(OF_SENTENCE.map((name) => one[name]));
    if (opening) publish();
    else if (address && !translating && sentence(address) === sentence(published))
      openAddress(published);
  }, 150);

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

  // --- moving -------------------------------------------------------------------------------------------------------
  function go(to) {
    at = Math.max(0, Math.min(path.length, to));
    schedule();
  }

  // While a new branch is on its way, a move waits for that: none is lost.
  function move(change) {
    const act = () => go(change(at));
    if (opening) later.push(act);
    else act();
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
    sentences.select(kind);
    store.set({ selection });
    schedule();
  }

  // --- links: the step in the page's address ------------------------------------------------------------------------
  let wanted = null; // what a link names, until its sentence is the one that is shown

  function readLink() {
    const link = pageLink(),
      isStep = link.get("tab") === "stepper" && /^\d{1,5}$/.test(link.get("step") || "");
    wanted = isStep ? link : null;
    followLink();
  }

  function followLink() {
    // The branch that a link brings back: what the model wrote by itself.
    const own = tree?.branches.find((one) => one.origin === "own");
    if (!wanted || !path || stale || !own || !isAbout(wanted, tree)) return;
    const step = Number(wanted.get("step")) - 1;
    wanted = null;
    transport.pause();
    if (path.number !== own.number) ask("open", { branch: own.number }, true);
    move(() => step);
  }

  const fields = () => linkFields(tree, { tab: "stepper", step: at + 1 });
  tabLinks.stepper = () => path && fields();
  const copied = el("span", { class: "caption", role: "status" }),
    copy = () => copyLink(fields(), (told) => copied.replaceChildren(told)),
    sharing = button(t("Copy link"), copy, { title: t("A link that restores this view") });

  // --- the page -----------------------------------------------------------------------------------------------------
  const alert = el("p", { class: "notice error", role: "alert", hidden: true });
  const message = (words) => {
    alert.textContent = words;
    alert.hidden = !words;
  };
  const jump = (step) => (transport.pause(), move(() => step));
  const news = el("p", { class: "caption said", "aria-live": "polite" });
  const sentences = createSentences({
    jump,
    say: (words) => (news.textContent = words),
    redraw: schedule,
  });
  const transport = createTransport({ go, move, isAtEnd: () => at >= path.length, force }, [
    el("label", { class: "caption shading" }, `${t("Shade by")} `, sentences.shading),
    sharing,
    copied,
  ]);
  const about = (title) => ({
    title: () => `${title} · ${transport.where()}`,
    caption: () => `${tree.text} → ${written(branch.tokens)}`,
  });
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
    branches: branches({ open: (number) => ask("open", { branch: number }, true) }),
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
  let panel = "branches"; // the one that is shown
  const stage = el("div", { class: "panel-stage" });
  const choices = PANELS.map(([name, title]) =>
    button(title, () => showPanel(name), { class: null, "data-panel": name }),
  );
  function showPanel(name) {
    panel = name;
    for (const choice of choices)
      choice.setAttribute("aria-pressed", String(choice.dataset.panel === name));
    stage.replaceChildren(panels[name].root);
    drawPanel();
  }
  const panes = el("div", { class: "panes" }, candidates.root);
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
    createPicture(el("div", { class: "steps" }, sentences.root, panes), steps),
    news,
    el("div", { class: "segmented choose-panel", role: "group", "aria-label": t("More") }, choices),
    stage,
  ];

  // In place of the empty frame, as late as there is something to show in it: nothing jumps.
  function lay() {
    if (!transport.root.isConnected) root.replaceChildren(...all);
  }

  function drawPanel() {
    if (!path) return;
    if (panel === "lens") {
      need("details");
      panels.lens.draw(path, branch);
      panels.lens.step(at);
    } else if (panel !== "beam") panels[panel].draw(tree, path.number);
  }

  function schedule() {
    if (!frame) frame = requestAnimationFrame(draw);
  }

  function draw() {
    cancelAnimationFrame(frame);
    frame = 0;
    if (!path) return;
    lay();
    if (at < path.length) need("rows");
    sentences.step(at, selection);
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
    (entries) => entries.at(-1).isIntersecting && (stale || !path) && !opening && restart(),
  ).observe(root);
  showPanel(panel);
  root.setAttribute("aria-busy", "false"); // what it opens with is here: nothing is asked for yet
  store.follow(["selection"], ({ selection: selected }) => see(selected));
  store.follow(["address"], () => (path || opening) && ask("changed"));
  window.addEventListener("hashchange", readLink);
  readLink();
}
