// Shows the status: problems, counters, classes, charts, recent changes.

import { addRate, drawRate, showAccuracy, showConfidence } from "./charts.js";
import { makeChip, setClasses, showClasses } from "./classes.js";
import { calm, find, make, setText } from "./elements.js";
import { formatCount, formatDuration, formatShare, isNumber } from "./text.js";
import { openReasons } from "./why.js";

const N_CHANGES = 9;

export let status = null;
let statusAt = 0; // performance.now() of its arrival
let edgesShown = 0;
const history = []; // [seconds, edges, nodes] of the last minutes

export function showStatus(next) {
  const before = status;
  status = next;
  statusAt = performance.now();
  const now = statusAt / 1000;
  if (before && next.uptime_seconds < before.uptime_seconds) history.length = 0; // another process
  history.push([now, next.edges, next.nodes]);
  while (history.length > 2 && history[0][0] < now - 60) history.shift();
  addRate(now, next.edges_per_second ?? 0);

  const classes = next.classes ?? [];
  setClasses(classes);
  document.title = next.name ? `${next.name} – ohmlearn` : "ohmlearn";
  setText("name", next.name ?? "");
  showProblems(next);
  showCounters(next);
  showClasses(classes, next.n_unreached ?? 0, next.n_abstained ?? 0);
  showConfidence(next);
  showAccuracy(next);
  showChanges(next.recent_changes ?? []);
  showFacts(next);
  showVersions();
  drawRate();
}

// The map and the suggestions are made after each answer, if there is time. They say of which
// answer they are, and are grey if there is a later one.
export function showVersions() {
  const latest = status?.answers?.version ?? 0;
  for (const id of ["map", "suggest"]) {
    const version = Number(find(id).dataset.version);
    const isOld = version < latest;
    find(id).classList.toggle("old", isOld);
    const of = isOld ? `Of answer ${formatCount(version)}, not yet of ${formatCount(latest)}.` : `Of answer ${formatCount(version)}.`;
    setText(`${id}-of`, version ? of : "");
  }
  if (latest) setText("map-empty", `The map of answer ${formatCount(latest)} is not drawn yet. It comes a moment after the answer.`);
}

function showLines(id, tag, lines) {
  const shown = [...find(id).children].map((line) => line.textContent);
  if (lines.join("\n") === shown.join("\n")) return;
  find(id).replaceChildren(...lines.map((line) => make(tag, "", line)));
}

function showProblems({ problems = [], read_only: readOnly, notes = [], accuracy }) {
  const lines = [...problems];
  const alarm = accuracy?.alarm;
  if (readOnly && !problems.length) {
    lines.unshift("The disk is full: new edges and labels are refused. Answers are still given.");
  }
  if (alarm) lines.push(`${alarm[0].toUpperCase()}${alarm.slice(1)}.`);
  showLines("problems", "p", lines);
  showLines("notes", "li", notes);
}

function showCounters(next) {
  const [then, , nodesThen] = history[0];
  const seconds = statusAt / 1000 - then;
  const added = next.nodes - nodesThen;
  const kept = next.edges > 0 ? next.rows / next.edges : 1;
  const nClasses = (next.classes ?? []).length;
  const version = next.answers?.version;
  showMoving();
  setText("edges-more", `${formatCount(next.edges_per_second)} per second`);
  setText("nodes", formatCount(next.nodes));
  setText("nodes-more", added > 0 ? `+${formatCount(added)} in ${formatDuration(seconds)}` : "");
  setText("labels", formatCount(next.labels));
  setText("labels-more", nClasses === 1 ? "1 class" : `${nClasses} classes`);
  setText("age-more", version ? `answer ${formatCount(version)}` : "no answer yet");
  setText("lag", formatCount(next.answers?.lag_edges ?? next.lag_edges));
  const isQueueing = next.queued_edges > Math.max(1000, next.edges_per_second);
  setText("lag-more", isQueueing ? `${formatCount(next.queued_edges)} not stored` : "not in it yet");
  setText("rows", formatCount(next.rows));
  setText("rows-more", !next.edges ? "" : kept < 0.5 ? `1 of ${formatCount(1 / kept)}` : `${formatShare(Math.min(1, kept))} of all`);
  const gib = next.memory_mib / 1024;
  setText("memory", gib < 10 ? `${formatCount(next.memory_mib)} MiB` : `${formatCount(gib)} GiB`);
  setText("memory-more", `up ${formatDuration(next.uptime_seconds)}`);
}

// Between two events, time and edges go on at their known rates.
function showMoving() {
  if (!status) return;
  const seconds = (performance.now() - statusAt) / 1000;
  const isLive = find("connection").dataset.state === "live";
  const ahead = isLive && !calm.matches ? Math.min(seconds, 1) * (status.edges_per_second ?? 0) : 0;
  edgesShown = Math.max(status.edges, Math.min(edgesShown, status.edges * 1.01));
  setText("edges", formatCount(Math.max(edgesShown, status.edges + ahead), 1e11));
  const age = status.answers?.age_seconds;
  const shown = isNumber(age) ? Math.max(0, age + seconds) : NaN;
  setText("age", shown < 100 ? `${shown.toFixed(1)} s` : formatDuration(shown));
}
setInterval(() => document.hidden || showMoving(), 200);

function showChanges(changes) {
  const list = find("changes");
  const isFirst = list.children.length === 0;
  const old = new Map([...list.children].map((item) => [item.dataset.key, item]));
  const now = (status.answers?.computed_at ?? 0) + (status.answers?.age_seconds ?? 0);
  const newest = [...changes].sort((a, b) => b.at - a.at).slice(0, N_CHANGES);
  const wanted = newest.map((change) => {
    const key = JSON.stringify([change.node, change.at]);
    let item = old.get(key);
    if (!item) {
      const how = make("span", "how", makeChip(change.before), make("span", "arrow", make("span", "hidden", "became")));
      how.append(makeChip(change.after), make("span", "sure", formatShare(change.probability)));
      const name = Object.assign(make("button", "link node", String(change.node)), { type: "button" });
      name.addEventListener("click", () => openReasons(change.node, change.before));
      item = make("li", isFirst ? "" : "new", name);
      item.append(make("span", "when"), how);
      item.dataset.key = key;
    }
    const when = item.querySelector(".when");
    const age = Math.round(now - change.at);
    when.textContent = age < 1 ? "now" : `${age < 100 ? `${age} s` : formatDuration(age)} ago`;
    return item;
  });
  list.replaceChildren(...wanted);
  find("changes-empty").hidden = wanted.length > 0;
}

function showFacts(next) {
  const facts = [];
  if (next.half_life) facts.push(`half-life ${formatUnit(next.half_life)}`);
  if (next.window) facts.push(`window ${formatUnit(next.window)}`);
  if (isNumber(next.recompute_seconds)) {
    facts.push(`last answer took ${formatDuration(next.recompute_seconds)}`);
  }
  for (const [name, value] of Object.entries(next.kafka ?? {})) {
    if (typeof value !== "object") facts.push(`Kafka ${name.replaceAll("_", " ")} ${value}`);
  }
  setText("facts", facts.join(" · "));
}

const formatUnit = (value) => (isNumber(value) ? formatDuration(value) : String(value));
