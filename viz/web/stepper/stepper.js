// The stepper: decode token by token, choose otherwise, compare. The page holds whole branches, so that a step needs no
// server; what the model must compute is asked for one action at a time, in order.
import { ask as askServer } from "../core/ask.js";
import { debounce, el, invite } from "../core/dom.js";
import { said, t } from "../core/language.js";
import { pictured } from "../picture/copy.js";
import { store } from "../store/store.js";
import { openAddress } from "../store/translation.js";
import { createHeads } from "./heads.js";
import { createLink } from "./link.js";
import { createBeam } from "./panels/beam.js";
import { branches } from "./panels/branches.js";
import { comparison } from "./panels/comparison.js";
import { lens } from "./panels/lens.js";
import { ownTarget } from "./panels/own.js";
import { createPanels } from "./panels/panels.js";
import { Path, completed, holding, written } from "./path.js";
import { createQueue } from "./queue.js";
import { createCandidates, createSentences } from "./tokens.js";
import { createTransport } from "./transport.js";

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

  // --- what the server is asked, and says ---------------------------------------------------------------------------
  const queue = createQueue(root, { send, take: taken }),
    { ask } = queue;

  async function send(question, answered) {
    const held = path, // shown when this is asked for
      holds = held && holding(tree, held),
      { address, selection: selected, asked } = store.state,
      fields = { ...question, holds, state, selection: selected, asked };
    answered({ ...(await askServer("page_step", { address, fields })), held });
  }

  function taken({ action }, answer) {
    if (answer.state) state = answer.state;
    if (answer.opened) published = answer.opened;
    if (action !== "changed") return take(answer);
    // Whether the other tabs show another sentence.
    stale ||= (answer.stale ?? true) || root.classList.contains("inviting");
    if (stale && root.offsetParent) restart();
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
    if (value.tree) tree = completed(value.tree, tree);
    if (value.path) await open(value.path, value.at, value.held);
    if (value.opened) publish();
    if (value.details && value.details.number === path.number) {
      path.details = value.details;
      if (below.shown() === "lens") panels.lens.draw(path, branch);
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
    link.follow();
  }

  // The other tabs show the branch too, unless they have gone on to another sentence.
  const OF_SENTENCE = ["source_ids", "digest", "direction", "interventions"];
  const publish = debounce(() => {
    const { address, translating } = store.state,
      sentence = (one) => JSON.stringify(OF_SENTENCE.map((name) => one[name]));
    if (queue.opening()) publish();
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

  const move = (change) => queue.move(() => go(change(at)));

  function force(i) {
    if (at >= path.length || queue.opening()) return;
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

  // --- the page -----------------------------------------------------------------------------------------------------
  const alert = el("p", { class: "notice error", role: "alert", hidden: true });
  const message = (words) => {
    alert.textContent = words;
    alert.hidden = !words;
  };
  const link = createLink(
    () => ({ tree, path, at, stale }),
    (own, step) => {
      transport.pause();
      if (path.number !== own.number) ask("open", { branch: own.number }, true);
      move(() => step);
    },
  );
  const jump = (step) => (transport.pause(), move(() => step));
  const news = el("p", { class: "caption said", "aria-live": "polite" });
  const say = (words) => (news.textContent = words);
  const sentences = createSentences({ jump, say, redraw: schedule });
  const transport = createTransport({ go, move, isAtEnd: () => at >= path.length, force }, [
    el("label", { class: "caption shading" }, `${t("Shade by")} `, sentences.shading),
    ...link.nodes,
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
  const below = createPanels(panels, drawPanel);
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
    pictured(el("div", { class: "steps" }, sentences.root, panes), steps),
    news,
    ...below.nodes,
  ];

  // In place of the empty frame, as late as there is something to show in it: nothing jumps.
  function lay() {
    if (!transport.root.isConnected) root.replaceChildren(...all);
  }

  function drawPanel() {
    const name = below.shown();
    if (!path) return;
    if (name === "lens") {
      need("details");
      panels.lens.draw(path, branch);
      panels.lens.step(at);
    } else if (name !== "beam") panels[name].draw(tree, path.number);
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
    const { finished } = branch;
    transport.show(at, { length: path.length, finished, opening: queue.opening() });
    link.show(branch);
    root.dataset.step = String(at);
  }

  transport.listen(root, () => path);
  new IntersectionObserver(
    (entries) => entries.at(-1).isIntersecting && (stale || !path) && !queue.opening() && restart(),
  ).observe(root);
  below.show("branches");
  root.setAttribute("aria-busy", "false"); // what it opens with is here: nothing is asked for yet
  store.follow(["selection"], ({ selection: selected }) => see(selected));
  store.follow(["address"], () => (path || queue.opening()) && ask("changed"));
  link.read();
}
