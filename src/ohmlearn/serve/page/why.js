// Why a node has its label: a dialog with a sentence, a picture, and the labels that count most.

import { allLabels, classColour, makeChip } from "./classes.js";
import { draw, find, make, setText } from "./elements.js";
import { Failure, callJson, reportOnce } from "./service.js";
import { formatShare, isNumber } from "./text.js";

const WIDTH = 560;
const [LEFT, RIGHT] = [120, 345]; // where the node is, and the labels
const STEP = 44; // between labels
const WIDEST = 7;
const TIE = 3; // as in estimators/reasons.py
const LONGEST = 16; // characters of a name in the picture

let asked = 0; // the last question, whose answer is shown
let shown = null;

// Opens the reasons for the label of a node; `before` is the label that it had, after a change.
export async function openReasons(node, before = null) {
  const dialog = find("why");
  if (!dialog.open) dialog.showModal();
  shown = { node, query: before === null ? {} : { against: before } };
  find("why-change").hidden = true;
  if (before !== null) tellChange(node);
  await ask({});
}

async function ask(more) {
  const question = ++asked;
  const { node } = shown;
  setText("why-title", `Why ${node}?`);
  setText("why-state", "Computing the reasons …");
  find("why").ariaBusy = "true";
  Object.assign(shown.query, more);
  try {
    const reasons = await fetchReasons(node, shown.query);
    if (question === asked) show(reasons);
  } catch (error) {
    if (!(error instanceof Failure)) reportOnce(error);
    if (question === asked) showNothing(error.message);
  } finally {
    if (question === asked) find("why").ariaBusy = "false";
  }
}

async function fetchReasons(node, query) {
  const address = `v1/labels/${encodeURIComponent(String(node))}/why`;
  try {
    return await callJson(`${address}?${new URLSearchParams(query)}`);
  } catch (error) {
    // Its label may have changed again, or the class it had may be gone.
    if (error.status !== 400 || !("against" in query)) throw error;
    delete query.against;
    return await callJson(`${address}?${new URLSearchParams(query)}`);
  }
}

async function tellChange(node) {
  try {
    const { changes_next: end } = (await callJson("v1/status")).answers;
    const { changes } = await callJson(`v1/changes?since=${Math.max(0, end - 20)}&limit=20&reasons=true`);
    const reason = changes.findLast((one) => one.node === node)?.reason;
    if (!reason || shown.node !== node) return;
    find("why-change").hidden = false;
    setText("why-change", reason.text);
  } catch (error) {
    if (!(error instanceof Failure)) reportOnce(error);
  }
}

function showNothing(message) {
  setText("why-state", message);
  setText("why-text", "");
  find("why-head").replaceChildren();
  find("why-picture").toggleAttribute("hidden", true);
  for (const id of ["why-labels", "why-keys", "why-more", "why-all"]) find(id).hidden = true;
}

function show(reasons) {
  const { label, against, labels, probability } = reasons;
  setText("why-state", "");
  setText("why-text", reasons.text);
  const head = find("why-head");
  head.replaceChildren(makeChip(label), isNumber(probability) ? formatShare(probability) : "");
  if (against !== null) head.append(make("span", "soft", "not"), makeChoice(label, against));
  find("why-labels").hidden = labels.length === 0;
  const unit = unitOf(reasons);
  const isNear = labels.some((one) => isNumber(one.distance));
  find("why-labels").tBodies[0].replaceChildren(...labels.map((one) => makeRow(one, unit, isNear, reasons)));
  find("why-distance").hidden = !isNear;
  const hasPicture = labels.length > 0;
  find("why-picture").toggleAttribute("hidden", !hasPicture);
  find("why-keys").hidden = !hasPicture;
  if (hasPicture) drawReasons(find("why-picture"), reasons);
  find("why-more").hidden = !hasPicture || "changes_if" in reasons;
  find("why-all").hidden = against === null || reasons.edges !== null || "all_edges" in shown.query;
  setText("why-basis", reasons.basis && hasPicture ? `From ${reasons.basis}.` : "");
}

// If much speaks on both sides, percentages are those of all contributions, as in the sentence.
function unitOf({ labels, margin, rest }) {
  const total = labels.reduce((sum, one) => sum + Math.abs(one.contribution), Math.abs(rest));
  return total > TIE * Math.abs(margin ?? 0) ? total : Math.abs(margin);
}

const percent = (part, unit) => `${part < 0 ? "−" : "+"}${Math.round((100 * Math.abs(part)) / (unit || 1))} %`;

// The other class; another one may be chosen to be compared with.
function makeChoice(label, against) {
  const select = make("select");
  select.ariaLabel = "Why not this class?";
  const others = allLabels().filter((one) => String(one) !== label && String(one) !== against);
  select.append(...[against, ...others].map((one) => make("option", "", String(one))));
  select.addEventListener("change", () => {
    delete shown.query.changes;
    ask({ against: select.value });
  });
  return select;
}

function makeRow({ node, label, contribution, distance, if_removed: without }, unit, isNear, { margin }) {
  const button = Object.assign(make("button", "link", String(node)), { type: "button" });
  button.addEventListener("click", () => openReasons(node));
  const row = make("tr", "", make("th", "", button), make("td", "", makeChip(label)));
  row.append(make("td", "", percent(contribution, unit)));
  const left = without < 0 ? "another label" : `${Math.round((100 * without) / margin)} % left`;
  row.append(make("td", "", isNumber(without) && margin > 0 ? left : "–"));
  if (isNear) row.append(make("td", "", isNumber(distance) ? String(distance) : "–"));
  row.cells[0].scope = "row";
  return row;
}

// The picture: the node on the left, labels on the right, the strongest at the top, full if they
// speak for its label and hollow if against. Colours are those of classes. Solid lines are paths of
// edges, as wide as the current that they carry; dashed ones stand for all other paths.

function drawReasons(svg, reasons) {
  const { node, label, labels, paths, text } = reasons;
  const unit = unitOf(reasons);
  const key = (one) => JSON.stringify(one);
  const others = labels.filter((one) => one.node !== node);
  const ends = paths.map((path) => path.nodes.at(-1)).filter((end) => end !== node);
  const names = [...new Map([...others.map((one) => one.node), ...ends].map((one) => [key(one), one])).values()];
  const height = Math.max(2, names.length) * STEP + 30;
  const middle = height / 2;
  const top = middle - ((names.length - 1) * STEP) / 2;
  const places = new Map([[key(node), [LEFT, middle]]]);
  names.forEach((name, at) => places.set(key(name), [RIGHT, top + at * STEP]));
  paths.forEach(({ nodes }, number) => {
    const [, last] = places.get(key(nodes.at(-1)));
    nodes.slice(1, -1).forEach((name, at) => {
      const share = (at + 1) / (nodes.length - 1);
      const bend = 26 * (number - (paths.length - 1) / 2) * (1 - Math.abs(2 * share - 1) / 2);
      if (!places.has(key(name))) {
        places.set(key(name), [LEFT + (RIGHT - LEFT) * share, middle + (last - middle) * share + bend]);
      }
    });
  });
  const most = Math.max(...labels.map((one) => Math.abs(one.contribution)), 1e-300);
  const widest = Math.max(...paths.map((path) => path.fraction), 1e-300);
  const kind = ({ contribution }) => (contribution < 0 ? "against" : "for");
  const line = (a, b) => `M${a.map((x) => x.toFixed(1)).join(" ")}L${b.map((x) => x.toFixed(1)).join(" ")}`;
  const parts = [];
  for (const one of others) {
    if (ends.some((end) => end === one.node)) continue;
    const width = 0.8 + ((WIDEST - 0.8) * Math.abs(one.contribution)) / most;
    parts.push(draw("path", { class: "pull", d: line(places.get(key(node)), places.get(key(one.node))), "stroke-width": width.toFixed(1) }));
  }
  for (const path of paths) {
    const width = (1 + ((WIDEST - 1) * path.fraction) / widest).toFixed(1);
    const found = path.nodes.slice(1).map((name, at) =>
      draw("path", { class: "way", d: line(places.get(key(path.nodes[at])), places.get(key(name))), "stroke-width": width }),
    );
    found[0]?.append(draw("title", {}, `carries ${formatShare(path.fraction)} of the current`));
    parts.push(...found);
  }
  const said = new Map(others.map((one) => [key(one.node), one]));
  for (const [name, [x, y]] of places) {
    const one = said.get(name);
    const plain = String(JSON.parse(name));
    if (name === key(node)) continue;
    if (x === RIGHT) {
      const radius = one ? 4 + (6 * Math.abs(one.contribution)) / most : 4;
      const circle = draw("circle", { class: one ? kind(one) : "step", cx: x, cy: y, r: radius.toFixed(1) });
      if (one) circle.style.setProperty("--chip", classColour(one.label));
      parts.push(circle);
      parts.push(draw("text", { class: "strong", x: x + 16, y: one ? y - 2 : y + 4 }, shorten(plain)));
      if (one) parts.push(draw("text", { x: x + 16, y: y + 13 }, `${shorten(String(one.label))}, ${percent(one.contribution, unit)}`));
    } else {
      parts.push(draw("circle", { class: "step", cx: x, cy: y, r: 3.5 }));
      parts.push(draw("text", { x, y: y + 16, "text-anchor": "middle" }, shorten(plain)));
    }
  }
  const self = draw("rect", { class: "for", x: LEFT - 7, y: middle - 7, width: 14, height: 14, rx: 2 });
  self.style.setProperty("--chip", classColour(label));
  parts.push(self);
  parts.push(draw("text", { class: "strong", x: LEFT - 14, y: middle - 2, "text-anchor": "end" }, shorten(String(node))));
  parts.push(draw("text", { x: LEFT - 14, y: middle + 13, "text-anchor": "end" }, shorten(String(label))));
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
  svg.ariaLabel = text;
  svg.replaceChildren(...parts);
}

const shorten = (text) => ([...text].length > LONGEST ? `${[...text].slice(0, LONGEST - 1).join("")}…` : text);

find("why-more").addEventListener("click", () => ask({ changes: true }));
find("why-all").addEventListener("click", () => ask({ all_edges: true }));
find("why-close").addEventListener("click", () => find("why").close());
find("search").addEventListener("submit", (event) => {
  event.preventDefault();
  openReasons(find("search-node").value.trim());
});
