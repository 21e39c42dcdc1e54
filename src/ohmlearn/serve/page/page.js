// The page of `ohmlearn serve`: listens to v1/events and shows what it says.
//
//   talk to the service   call, listen
//   show the status       showStatus and what it calls; charts are SVG
//   the map               CommunityMap: a force layout on a canvas, drawn only while it moves
//   label nodes           sendLabel, showSuggestions
//
// Names come from users of the service. They enter the page as text only, never as markup.

const N_CLASS_COLOURS = 10;
const RATE_SECONDS = 120;
const N_CLASSES = 14; // rows of the table
const N_CHANGES = 9;
const N_SUGGESTIONS = 6;
const STRETCH = 1.4;
const SILENCE_MS = 20_000; // after so long without an event, ask whether the service is there

const find = (id) => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function formatCount(value, largest = 1e7) {
  if (!isNumber(value)) return "–";
  return value < largest ? whole.format(Math.round(value)) : short.format(value);
}

function formatDuration(seconds) {
  if (!isNumber(seconds)) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  for (const [unit, size, next] of [["s", 1, 100], ["min", 60, 5400], ["h", 3600, 129_600]]) {
    if (seconds < next) return `${Math.round(seconds / size)} ${unit}`;
  }
  return `${whole.format(Math.round(seconds / 86_400))} days`;
}

function formatShare(share) {
  if (!isNumber(share)) return "–";
  return `${share > 0.99 && share < 1 ? ">99" : Math.round(share * 100)} %`;
}

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children); // strings become text
  return element;
}

function draw(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function setText(id, text) {
  const element = find(id);
  if (element.textContent !== text) element.textContent = text; // no needless announcements
}

// ---------------------------------------------------------------- talking to the service

const TOKEN = "ohmlearn-token";

class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function call(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { cache: "no-store", credentials: "omit", ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, "The service cannot be reached.");
  }
  if (response.ok) return response;
  let message = `The service answered with status ${response.status}.`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // Some other server, such as a proxy, has answered.
  }
  if (response.status === 401) askForToken(token !== null);
  throw new Failure(response.status, message);
}

const callJson = async (path, options) => (await call(path, options)).json();

function askForToken(wasWrong) {
  const dialog = find("token");
  const text = find("token-text");
  sessionStorage.removeItem(TOKEN);
  text.classList.toggle("wrong", wasWrong);
  if (wasWrong) text.textContent = "The service does not know this token. Please try another.";
  if (!dialog.open) dialog.showModal();
}

find("token-form").addEventListener("submit", () => {
  sessionStorage.setItem(TOKEN, find("token-value").value.trim());
  find("token-value").value = "";
  retryNow();
});

async function* readEvents(response, alive) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch(() => {
      throw new Failure(0, "The connection broke.");
    });
    if (done) return;
    alive();
    const events = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const fields = { event: "message", data: "" };
      for (const line of event.split("\n")) {
        const [, name, content] = /^(\w*):? ?(.*)$/s.exec(line) ?? [];
        if (name === "data" && fields.data) fields.data += "\n";
        if (name === "data") fields.data += content;
        if (name === "event") fields.event = content;
      }
      if (fields.data) yield fields;
    }
  }
}

const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
let lostAt = null;
let wake = () => {}; // ends the pause before the next attempt
const retryNow = () => wake();
find("retry").addEventListener("click", retryNow);
window.addEventListener("online", retryNow);

async function listenOnce() {
  const stop = new AbortController();
  let timer = 0;
  const watch = () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      try {
        showStatus(await callJson("v1/status", { signal: AbortSignal.timeout(8000) }));
        watch();
      } catch {
        stop.abort();
      }
    }, SILENCE_MS);
  };
  try {
    watch();
    const response = await call("v1/events", { signal: stop.signal });
    setConnection("live", "Live");
    for await (const { event, data } of readEvents(response, watch)) {
      if (event === "status") showStatus(JSON.parse(data));
      if (event === "map") await showMap(JSON.parse(data));
    }
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}

async function listen() {
  let delay = 1;
  for (;;) {
    const begun = performance.now();
    let reason = "The service ended the connection.";
    try {
      await listenOnce();
    } catch (error) {
      if (error instanceof Failure) reason = error.message;
      else if (error.name !== "AbortError") reportOnce(error);
      if (error.status === 401) {
        lostAt = null;
        setConnection("lost", "A token is needed");
        await new Promise((resolve) => (wake = resolve));
        continue;
      }
    }
    if (performance.now() - begun > 10_000) delay = 1;
    const until = performance.now() + delay * 1000;
    const woken = new Promise((resolve) => (wake = resolve));
    let isOver = false;
    woken.then(() => (isOver = true));
    lostAt ??= new Date();
    setConnection("lost", `Disconnected since ${clock.format(lostAt)}`);
    find("connection").title = reason;
    while (!isOver && performance.now() < until) {
      const left = Math.ceil((until - performance.now()) / 1000);
      setText("retry", `Try now (${left} s)`);
      await Promise.race([woken, new Promise((resolve) => setTimeout(resolve, 250))]);
    }
    delay = isOver ? 1 : Math.min(30, delay * 1.7 + Math.random());
    setConnection("waiting", "Connecting");
  }
}

const reported = new Set();
function reportOnce(error) {
  if (reported.has(error.message)) return;
  reported.add(error.message);
  console.error(error);
}

function setConnection(state, text) {
  find("connection").dataset.state = state;
  setText("connection-text", text);
  find("retry").hidden = state !== "lost" || lostAt === null;
  document.body.classList.toggle("lost", state === "lost");
  if (state === "live") {
    find("connection").title = "";
    lostAt = null;
  }
}

// ---------------------------------------------------------------- the status

let status = null;
let statusAt = 0; // performance.now() of its arrival
let labelOf = new Map(); // what users type -> label as the service has it
let colourOf = new Map();
const history = []; // [seconds, edges, nodes] of the last minutes
const rates = [];

const classColour = (label) =>
  colourOf.has(label) ? `var(--c${colourOf.get(label) % N_CLASS_COLOURS})` : "var(--grey)";

function makeChip(label) {
  const isNone = label === null || label === undefined;
  const chip = make("span", isNone ? "chip none" : "chip", isNone ? "none" : String(label));
  if (!isNone) chip.style.setProperty("--chip", classColour(label));
  return chip;
}

function showStatus(next) {
  const before = status;
  status = next;
  statusAt = performance.now();
  const now = statusAt / 1000;
  if (before && next.uptime_seconds < before.uptime_seconds) history.length = 0; // another process
  history.push([now, next.edges, next.nodes]);
  while (history.length > 2 && history[0][0] < now - 60) history.shift();
  rates.push([now, next.edges_per_second ?? 0]);
  while (rates.length > 2 && rates[1][0] < now - RATE_SECONDS) rates.shift();

  const classes = next.classes ?? [];
  colourOf = new Map(classes.map((one) => [one.label, one.colour]));
  labelOf = new Map(classes.map((one) => [String(one.label), one.label]));
  document.title = next.name ? `${next.name} – ohmlearn` : "ohmlearn";
  setText("name", next.name ?? "");
  showProblems(next);
  showCounters(next);
  showClasses(classes, next.n_unreached ?? 0);
  showConfidence(next);
  showChanges(next.recent_changes ?? []);
  showFacts(next);
  drawRate();
  const version = next.answers?.version;
  if (version !== before?.answers?.version) refreshSuggestions();
  const certified = next.answers?.certificate?.at;
  if (!before || certified !== before.answers?.certificate?.at) refreshCertificates();
}

function showLines(id, tag, lines) {
  const shown = [...find(id).children].map((line) => line.textContent);
  if (lines.join("\n") === shown.join("\n")) return;
  find(id).replaceChildren(...lines.map((line) => make(tag, "", line)));
}

function showProblems({ problems = [], read_only: readOnly, notes = [] }) {
  const lines = [...problems];
  if (readOnly && !problems.length) {
    lines.unshift("The disk is full: new edges and labels are refused. Answers are still given.");
  }
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
  showMoving.edges = Math.max(status.edges, Math.min(showMoving.edges ?? 0, status.edges * 1.01));
  setText("edges", formatCount(Math.max(showMoving.edges, status.edges + ahead), 1e11));
  const age = status.answers?.age_seconds;
  const shown = isNumber(age) ? Math.max(0, age + seconds) : NaN;
  setText("age", shown < 100 ? `${shown.toFixed(1)} s` : formatDuration(shown));
}
setInterval(() => document.hidden || showMoving(), 200);

function showClasses(classes, nUnreached) {
  let rows = classes.map(({ label, n_nodes: n }) => ({ key: `=${label}`, label, n }));
  if (rows.length > N_CLASSES) {
    rows.sort((a, b) => b.n - a.n);
    const n = rows.slice(N_CLASSES - 1).reduce((sum, row) => sum + row.n, 0);
    const text = `${rows.length - N_CLASSES + 1} other classes`;
    rows = [...rows.slice(0, N_CLASSES - 1), { key: `+${text}`, label: null, text, n }];
  }
  if (nUnreached > 0) rows.push({ key: "", label: null, text: "not reached", n: nUnreached });
  const total = rows.reduce((sum, { n }) => sum + n, 0);
  const body = find("classes").tBodies[0];
  const old = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  const wanted = rows.map(({ key, label, text, n }) => {
    let row = old.get(key);
    if (!row) {
      const bar = make("span", "", make("i"));
      row = make("tr", "", make("th", "", makeChip(label)), make("td", "bar", bar), make("td"));
      row.cells[0].scope = "row";
      row.cells[1].ariaHidden = "true";
      row.dataset.key = key;
      if (label === null) row.cells[0].firstChild.textContent = text;
    }
    row.cells[0].firstChild.style.setProperty("--chip", classColour(label));
    const fill = row.querySelector("i");
    fill.style.width = `${total ? (100 * n) / total : 0}%`;
    fill.style.setProperty("--chip", classColour(label));
    row.cells[2].textContent = formatCount(n);
    return row;
  });
  if (wanted.length !== body.rows.length || wanted.some((row, at) => body.rows[at] !== row)) {
    body.replaceChildren(...wanted);
  }
  find("classes-empty").hidden = rows.length > 0;
  const names = find("class-names");
  const list = classes.map(({ label }) => String(label));
  if (list.join("\n") !== [...names.options].map((one) => one.value).join("\n")) {
    names.replaceChildren(...list.map((text) => Object.assign(make("option"), { value: text })));
  }
}

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
      item = make("li", isFirst ? "" : "new", make("span", "node", String(change.node)));
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

// ---------------------------------------------------------------- charts

function sizeOf(svg) {
  const { width, height } = svg.getBoundingClientRect();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return [width, height];
}

function drawRate() {
  const svg = find("rate");
  const [width, height] = sizeOf(svg);
  if (rates.length < 2 || !width) return;
  const end = rates.at(-1)[0];
  const span = Math.min(RATE_SECONDS, Math.max(15, end - rates[0][0]));
  const most = Math.max(1, ...rates.map(([, rate]) => rate)) * 1.15;
  const points = rates.map(([at, rate]) => [
    (width - 3) * (1 - (end - at) / span),
    height - 2 - ((height - 6) * rate) / most,
  ]);
  const path = points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
  const [x, y] = points.at(-1);
  svg.replaceChildren(
    draw("path", { class: "axis", d: `M0 ${height - 1.5}H${width}` }),
    draw("path", { class: "area", d: `M${points[0][0]} ${height - 2}L${path}V${height - 2}Z` }),
    draw("path", { class: "line", d: `M${path}` }),
    draw("circle", { class: "point", cx: x - 1, cy: y, r: 2.6 }),
  );
}

function showConfidence({ confidence = [] }) {
  const svg = find("confidence");
  const total = confidence.reduce((sum, n) => sum + n, 0);
  const n = confidence.length;
  const sure = confidence.slice(Math.round(0.9 * n)).reduce((sum, one) => sum + one, 0);
  const text = `${formatShare(sure / total)} of the labels have a probability of 90 % or more.`;
  setText("confidence-text", total ? text : "No answer yet.");
  svg.toggleAttribute("hidden", !total);
  const [width, height] = sizeOf(svg);
  if (!width) return;
  const ground = height - 18;
  const most = Math.max(1, ...confidence);
  const step = width / n;
  const parts = confidence.map((count, at) => {
    const tall = count ? Math.max(1.5, ((ground - 4) * count) / most) : 0;
    const bar = draw("rect", {
      class: "block", x: at * step + 1, width: Math.max(1, step - 2),
      y: ground - tall, height: tall, rx: Math.min(2.5, tall / 2),
      opacity: (0.45 + (0.55 * at) / n).toFixed(2),
    });
    const range = `${((100 * at) / n).toFixed(0)} to ${((100 * (at + 1)) / n).toFixed(0)} %`;
    bar.append(draw("title", {}, `${range}: ${formatCount(count)} nodes`));
    return bar;
  });
  parts.push(draw("path", { class: "axis", d: `M0 ${ground + 0.5}H${width}` }));
  for (const [share, anchor] of [[0, "start"], [0.25, "middle"], [0.5, "middle"], [0.75, "middle"], [1, "end"]]) {
    parts.push(draw("text", { x: share * width, y: height - 3, "text-anchor": anchor }, `${100 * share} %`));
  }
  svg.replaceChildren(...parts);
}

let certificates = [];

async function refreshCertificates() {
  try {
    const found = await callJson("v1/certificates?limit=200");
    certificates = Array.isArray(found) ? found : (found.certificates ?? []);
    certificates.sort((a, b) => a.at - b.at);
    showCertificates();
  } catch (error) {
    if (!(error instanceof Failure)) reportOnce(error); // otherwise the next event tries again
  }
}

function formatTimes(times) {
  const span = times.at(-1) - times[0];
  const parts =
    span > 2 * 86_400
      ? { day: "numeric", month: "short" }
      : { hour: "2-digit", minute: "2-digit", ...(span < 600 && { second: "2-digit" }) };
  const format = new Intl.DateTimeFormat("en-GB", parts);
  return times.map((time) => format.format(new Date(time * 1000)));
}

function showCertificates() {
  const svg = find("certificate");
  const last = certificates.at(-1);
  find("certificate-keys").hidden = !last;
  svg.toggleAttribute("hidden", !last);
  if (!last) {
    setText("certificate-text", "H has not been compared with all edges yet.");
    return;
  }
  const day = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
  const bound = isNumber(last.bound) ? `at most ${last.bound.toFixed(2)}` : "not bounded";
  setText(
    "certificate-text",
    `Relative error of energies in H: ${bound} (confidence ${+(100 * last.confidence).toFixed(2)} %), ` +
      `measured ${isNumber(last.epsilon) ? last.epsilon.toFixed(2) : "–"}, ` +
      `${day.format(new Date(last.at * 1000))}.`,
  );
  const [width, height] = sizeOf(svg);
  if (!width) return;
  const values = certificates.flatMap(({ epsilon, bound: b }) => [epsilon, b]).filter(isNumber);
  const most = Math.max(...values.map((value) => Math.min(value, 2)), 0.1);
  const gap = [0.05, 0.1, 0.2, 0.25, 0.5].find((size) => most / size <= 5) ?? 0.5;
  const top = Math.ceil((most * 1.02) / gap) * gap;
  const [left, right, ground] = [30, width - 6, height - 20];
  const first = certificates[0].at;
  const span = Math.max(1e-9, last.at - first);
  const x = (at) => (certificates.length === 1 ? (left + right) / 2 : left + ((right - left) * (at - first)) / span);
  const y = (value) => ground - ((ground - 6) * Math.min(value, top)) / top;
  const parts = [];
  for (let value = 0; value <= top + 1e-9; value += gap) {
    parts.push(draw("path", { class: "axis", d: `M${left} ${y(value)}H${right}` }));
    parts.push(draw("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, value.toFixed(gap < 0.1 || gap === 0.25 ? 2 : 1)));
  }
  const both = certificates.filter((one) => isNumber(one.epsilon) && isNumber(one.bound));
  const trace = (list, name) => list.map((one) => `${x(one.at).toFixed(1)} ${y(one[name]).toFixed(1)}`).join("L");
  if (both.length > 1) {
    const band = `M${trace(both, "bound")}L${trace([...both].reverse(), "epsilon")}Z`;
    parts.push(draw("path", { class: "area", d: band })); // the true error is in it
  }
  for (const [name, kind] of [["bound", " bound"], ["epsilon", ""]]) {
    const known = certificates.filter((one) => isNumber(one[name]));
    if (!known.length) continue;
    const end = known.at(-1);
    parts.push(draw("path", { class: `line${kind}`, d: `M${trace(known, name)}` }));
    parts.push(draw("circle", { class: `point${kind}`, cx: x(end.at), cy: y(end[name]), r: 3 }));
  }
  const times = certificates.length === 1 ? [first] : [first, (first + last.at) / 2, last.at];
  const anchors = times.length === 1 ? ["middle"] : ["start", "middle", "end"];
  formatTimes(times).forEach((text, at) => {
    parts.push(draw("text", { x: x(times[at]), y: height - 4, "text-anchor": anchors[at] }, text));
  });
  svg.replaceChildren(...parts);
}

// ---------------------------------------------------------------- the map

class CommunityMap {
  // Nodes are placed by springs along links, repulsion, and a weak pull to the place that the
  // service gave; the view always contains all of them. `heat` scales forces and cools down.

  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.glow = document.createElement("canvas"); // coarse: enlarging it makes it soft
    this.nodes = new Map(); // id -> node, also those that fade out
    this.links = [];
    this.suggested = new Set();
    this.heat = 0;
    this.view = null;
    this.focused = null;
    this.hovered = null;
    this.isDrawing = false;
    this.readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.readColours();
      for (const node of this.nodes.values()) Object.assign(node, this.paintOf(node.label));
      this.wake();
    });
    new ResizeObserver(() => {
      this.view = null;
      this.wake();
    }).observe(canvas);
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => this.setHovered(null));
    canvas.addEventListener("click", (event) => {
      this.hover(event);
      if (this.hovered) this.focus(this.hovered, true);
    });
    canvas.addEventListener("keydown", (event) => this.steer(event));
    canvas.addEventListener("blur", () => this.focus(null));
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    const parse = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    this.colours = Array.from({ length: N_CLASS_COLOURS }, (_, at) => parse(read(`--c${at}`)));
    this.grey = parse(read("--grey"));
    this.ink = read("--ink");
    this.card = read("--card");
    this.isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  }

  colour(label) {
    return colourOf.has(label) ? this.colours[colourOf.get(label) % N_CLASS_COLOURS] : this.grey;
  }

  paintOf(label) {
    const paint = this.colour(label);
    return { paint: [...paint], aim: [...paint] };
  }

  update({ nodes, links }) {
    const aspect = Math.sqrt(this.canvas.clientWidth / Math.max(1, this.canvas.clientHeight)) || 1;
    const isFirst = this.nodes.size === 0;
    const now = performance.now();
    const present = nodes.map((one) => {
      let node = this.nodes.get(one.id);
      if (!node) {
        node = { id: one.id, x: NaN, y: 0, vx: 0, vy: 0, seen: 0, ripple: -1e9, ...this.paintOf(one.label) };
        this.nodes.set(one.id, node);
      } else if (node.label !== one.label) {
        node.ripple = now;
      }
      const size = isNumber(one.probability) ? one.probability : 0;
      Object.assign(node, {
        label: one.label, probability: one.probability, given: one.given, size,
        homeX: one.x * 330 * aspect, homeY: (-one.y * 330) / aspect, isLeaving: false, links: 0,
      });
      node.aim = [...this.colour(one.label)];
      return node;
    });
    const kept = new Set(present);
    for (const node of this.nodes.values()) if (!kept.has(node)) node.isLeaving = true;
    this.links = links.map(([a, b]) => [present[a], present[b]]).filter(([a, b]) => a && b);
    for (const [a, b] of this.links) {
      a.links += 1;
      b.links += 1;
    }
    // A new node appears beside the nodes that it is linked with.
    for (const [a, b] of this.links) {
      for (const [node, other] of [[a, b], [b, a]]) {
        if (!isFirst && Number.isNaN(node.x) && !Number.isNaN(other.x)) {
          node.x = other.x + (node.homeX - other.homeX) * 0.2;
          node.y = other.y + (node.homeY - other.homeY) * 0.2;
        }
      }
    }
    for (const node of present) if (Number.isNaN(node.x)) [node.x, node.y] = [node.homeX, node.homeY];
    this.present = present;
    this.heat = Math.max(this.heat, isFirst ? 1 : 0.22);
    if (isFirst) for (let step = 0; step < 80; step++) this.move();
    if (calm.matches) {
      for (let step = 0; step < 120 && this.heat > 0.01; step++) this.move();
      for (const node of present) Object.assign(node, { seen: 1, paint: [...node.aim] });
      this.view = null;
    }
    if (this.focused?.isLeaving) this.focus(null);
    else if (this.focused) this.tellFocus();
    this.wake();
  }

  move() {
    const nodes = this.present;
    const heat = this.heat;
    this.heat *= 0.985;
    for (const [a, b] of this.links) {
      const dx = b.x + b.vx - a.x - a.vx || 0.01;
      const dy = b.y + b.vy - a.y - a.vy || 0.01;
      const length = Math.hypot(dx, dy);
      const pull = (((length - 16) / length) * heat * 0.75) / Math.min(a.links, b.links);
      const share = a.links / (a.links + b.links);
      b.vx -= dx * pull * share;
      b.vy -= dy * pull * share;
      a.vx += dx * pull * (1 - share);
      a.vy += dy * pull * (1 - share);
    }
    for (let i = 0; i < nodes.length; i++) {
      const a = nodes[i];
      for (let j = 0; j < i; j++) {
        const b = nodes[j];
        const dx = b.x - a.x || (i - j) * 0.01;
        const dy = b.y - a.y || 0.01;
        const square = dx * dx + dy * dy;
        if (square > 40_000) continue;
        const push = (heat * 26) / Math.max(square, 30);
        a.vx -= dx * push;
        a.vy -= dy * push;
        b.vx += dx * push;
        b.vy += dy * push;
      }
    }
    for (const node of nodes) {
      const pull = heat * (node.links ? 0.035 : 0.12);
      node.vx = (node.vx + (node.homeX - node.x) * pull) * 0.6;
      node.vy = (node.vy + (node.homeY - node.y) * pull) * 0.6;
      const speed = Math.hypot(node.vx, node.vy);
      const limit = speed > 14 ? 14 / speed : 1;
      node.x += node.vx * limit;
      node.y += node.vy * limit;
    }
  }

  wake() {
    if (this.isDrawing) return;
    this.isDrawing = true;
    requestAnimationFrame((time) => this.frame(time));
  }

  frame(time) {
    let isMoving = this.heat > 0.004;
    if (isMoving && !calm.matches) this.move();
    for (const node of this.nodes.values()) {
      node.seen += ((node.isLeaving ? 0 : 1) - node.seen) * (calm.matches ? 1 : 0.07);
      if (node.isLeaving && node.seen < 0.02) this.nodes.delete(node.id);
      for (let k = 0; k < 3; k++) node.paint[k] += (node.aim[k] - node.paint[k]) * 0.08;
      if (time - node.ripple < 1400 || Math.abs(node.aim[0] - node.paint[0]) > 1) isMoving = true;
    }
    this.draw(time);
    this.isDrawing = isMoving && !calm.matches;
    if (this.isDrawing) requestAnimationFrame((next) => this.frame(next));
  }

  fit(width, height) {
    const xs = this.present.map((node) => node.x);
    const ys = this.present.map((node) => node.y);
    const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
    const [y0, y1] = [Math.min(...ys), Math.max(...ys)];
    const space = Math.min(30, width * 0.06);
    // Places have no unit, so one direction may be stretched a little more to use the space.
    const wide = Math.min((width - 2 * space) / Math.max(60, x1 - x0), 2.4);
    const high = Math.min((height - 2 * space - 14) / Math.max(60, y1 - y0), 2.4);
    const wanted = {
      x: (x0 + x1) / 2, y: (y0 + y1) / 2, wide: Math.min(wide, STRETCH * high), high: Math.min(high, STRETCH * wide),
    };
    this.view ??= { ...wanted };
    const { view } = this;
    for (const key of Object.keys(wanted)) view[key] += (wanted[key] - view[key]) * 0.06;
    view.scale = Math.sqrt(view.wide * view.high);
    for (const node of this.nodes.values()) {
      node.sx = (node.x - view.x) * view.wide + width / 2;
      node.sy = (node.y - view.y) * view.high + height / 2 + 7;
    }
  }

  draw(time) {
    const { canvas, pen } = this;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    const density = Math.min(2, devicePixelRatio || 1);
    if (canvas.width !== Math.round(width * density) || canvas.height !== Math.round(height * density)) {
      canvas.width = Math.round(width * density);
      canvas.height = Math.round(height * density);
    }
    pen.setTransform(density, 0, 0, density, 0, 0);
    pen.clearRect(0, 0, width, height);
    if (!this.present?.length || !width) return;
    this.fit(width, height);
    this.drawGlow(width, height);
    this.drawLinks();
    for (const node of this.nodes.values()) this.drawNode(node, time);
    this.drawNames();
    const shown = this.focused ?? this.hovered;
    if (shown) this.drawRing(shown, this.radius(shown) + 6, this.ink, 2);
  }

  // Links of about the same colour are one path, because changing colours is what takes time.
  drawLinks() {
    const paths = new Map();
    for (const [a, b] of this.links) {
      const mix = (k) => ((a.paint[k] + b.paint[k]) >> 4) << 3;
      const key = `rgb(${mix(0)} ${mix(1)} ${mix(2)} / ${(0.3 * Math.min(a.seen, b.seen)).toFixed(1)})`;
      if (!paths.has(key)) paths.set(key, new Path2D());
      const path = paths.get(key);
      path.moveTo(a.sx, a.sy);
      path.lineTo(b.sx, b.sy);
    }
    this.pen.lineWidth = 1;
    for (const [colour, path] of paths) {
      this.pen.strokeStyle = colour;
      this.pen.stroke(path);
    }
  }

  drawGlow(width, height) {
    const coarse = 6;
    const { glow } = this;
    glow.width = Math.ceil(width / coarse);
    glow.height = Math.ceil(height / coarse);
    const pen = glow.getContext("2d");
    const radius = (34 * Math.max(0.7, Math.min(1.5, this.view.scale)) + 12) / coarse;
    for (const node of this.nodes.values()) {
      const [red, green, blue] = node.paint.map((value) => value | 0);
      const x = node.sx / coarse;
      const y = node.sy / coarse;
      const fill = pen.createRadialGradient(x, y, 0, x, y, radius);
      fill.addColorStop(0, `rgb(${red} ${green} ${blue} / ${0.075 * node.seen})`);
      fill.addColorStop(1, `rgb(${red} ${green} ${blue} / 0)`);
      pen.fillStyle = fill;
      pen.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
    }
    this.pen.drawImage(glow, 0, 0, glow.width * coarse, glow.height * coarse);
  }

  radius(node) {
    return (2.2 + 3.6 * node.size) * Math.max(0.6, Math.min(1.25, this.view.scale ** 0.7));
  }

  drawNode(node, time) {
    const { pen } = this;
    const [red, green, blue] = node.paint.map((value) => value | 0);
    const radius = this.radius(node) * node.seen;
    const colour = (alpha) => `rgb(${red} ${green} ${blue} / ${alpha * node.seen})`;
    const ripple = (time - node.ripple) / 1400;
    if (ripple >= 0 && ripple < 1 && !calm.matches) {
      this.drawRing(node, radius + 22 * ripple, colour(0.9 * (1 - ripple)), 2);
    }
    pen.fillStyle = colour(node.label === null ? 0.5 : 0.35 + 0.65 * node.size);
    pen.beginPath();
    pen.arc(node.sx, node.sy, radius, 0, 7);
    pen.fill();
    if (node.given) this.drawRing(node, radius + 3.2, colour(1), 1.8);
    else if (this.suggested.has(node.id)) this.drawRing(node, radius + 3.6, this.ink, 1.3, [3, 2.6]);
  }

  drawRing(node, radius, colour, width, dashes = []) {
    const { pen } = this;
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.setLineDash(dashes);
    pen.beginPath();
    pen.arc(node.sx, node.sy, Math.max(0, radius), 0, 7);
    pen.stroke();
    pen.setLineDash([]);
  }

  // The name of a class stands above the middle half of its nodes.
  drawNames() {
    const { pen } = this;
    const members = new Map();
    for (const node of this.present) {
      if (node.label === null) continue;
      if (!members.has(node.label)) members.set(node.label, []);
      members.get(node.label).push(node);
    }
    if (members.size > 12) return;
    pen.font = `600 13px ${getComputedStyle(document.body).fontFamily}`;
    pen.textAlign = "center";
    pen.lineJoin = "round";
    for (const [label, nodes] of members) {
      if (nodes.length < 4) continue;
      const xs = nodes.map((node) => node.sx).sort((a, b) => a - b);
      const ys = nodes.map((node) => node.sy).sort((a, b) => a - b);
      const text = [...String(label)].slice(0, 24).join("");
      const half = pen.measureText(text).width / 2 + 4;
      const x = Math.min(Math.max(xs[xs.length >> 1], half), this.canvas.clientWidth - half);
      const y = Math.max(14, ys[Math.floor(ys.length * 0.04)] - 12);
      pen.lineWidth = 4;
      pen.strokeStyle = this.card;
      pen.strokeText(text, x, y);
      pen.fillStyle = this.ink;
      pen.fillText(text, x, y);
    }
  }

  nearest(x, y, within) {
    let best = null;
    let least = within * within;
    for (const node of this.present ?? []) {
      const square = (node.sx - x) ** 2 + (node.sy - y) ** 2;
      if (square < least) [best, least] = [node, square];
    }
    return best;
  }

  hover(event) {
    this.setHovered(this.nearest(event.offsetX, event.offsetY, event.pointerType === "touch" ? 24 : 14));
  }

  setHovered(node) {
    if (this.hovered === node) return;
    this.hovered = node;
    this.canvas.style.cursor = node ? "pointer" : "default";
    const tip = find("tip");
    tip.hidden = !node;
    if (node) {
      tip.replaceChildren(make("b", "", String(node.id)), this.describe(node));
      const right = node.sx > this.canvas.clientWidth * 0.6;
      const x = right ? node.sx - tip.offsetWidth - 12 : node.sx + 12;
      tip.style.transform = `translate(${x}px, ${Math.max(0, node.sy - tip.offsetHeight - 8)}px)`;
    }
    this.wake();
  }

  describe(node) {
    if (node.label === null) return "no label reaches it";
    return node.given ? `${node.label}, given` : `${node.label}, ${formatShare(node.probability)} sure`;
  }

  focus(node, isChosen = false) {
    this.focused = node;
    this.tellFocus();
    if (node && isChosen) find("other-node").value = String(node.id);
    this.wake();
  }

  tellFocus() {
    const node = this.focused;
    setText("map-focus", node ? `${node.id}: ${this.describe(node)}` : "");
  }

  steer(event) {
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "Escape") this.focus(null);
    if (event.key === "Enter" && this.focused) {
      this.focus(this.focused, true);
      find("other-label").focus();
      event.preventDefault();
    }
    if (!way || !this.present?.length) return;
    event.preventDefault();
    const from = this.focused;
    if (!from) {
      this.focus(this.nearest(this.canvas.clientWidth / 2, this.canvas.clientHeight / 2, 1e6));
      return;
    }
    let best = null;
    let least = Infinity;
    for (const node of this.present) {
      const along = (node.sx - from.sx) * way[0] + (node.sy - from.sy) * way[1];
      const aside = Math.abs((node.sx - from.sx) * way[1]) + Math.abs((node.sy - from.sy) * way[0]);
      if (node !== from && along > aside * 0.5 && along + 2 * aside < least) {
        [best, least] = [node, along + 2 * aside];
      }
    }
    if (best) this.focus(best);
  }
}

const map = new CommunityMap(find("map"));

async function showMap(found) {
  let drawn = found;
  if (!Array.isArray(drawn?.nodes)) {
    try {
      drawn = await callJson("v1/map");
    } catch (error) {
      if (error instanceof Failure && error.status !== 401) return; // the next map comes soon
      throw error;
    }
  }
  map.update(drawn);
  const n = drawn.nodes.length;
  const all = Math.max(n, status?.nodes ?? n);
  find("map-empty").hidden = n > 0;
  setText("map-count", n ? (n < all ? `${formatCount(n)} of ${formatCount(all)} nodes` : `${formatCount(n)} nodes`) : "");
  find("map").dataset.version = drawn.version ?? "";
}

// ---------------------------------------------------------------- labels

let lastLabelled = null;

function say(text, isWrong = false) {
  const said = find("said");
  said.textContent = text;
  said.classList.toggle("wrong", isWrong);
  find("undo").hidden = true;
}

// Ids are numbers or strings for all nodes alike; text that is typed becomes what the others are.
function asId(text) {
  const [other] = map.nodes.keys();
  const isInteger = typeof other === "number" && /^-?\d{1,15}$/.test(text);
  return isInteger ? Number(text) : text;
}

async function sendLabel(node, text) {
  const label = labelOf.has(text) ? labelOf.get(text) : text;
  try {
    const body = JSON.stringify({ labels: [{ node, label }] });
    await call("v1/labels", { method: "POST", body });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    say(error.status === 403 ? "This token may read, but not label nodes." : error.message, true);
    return false;
  }
  say(`Labelled ${node} as ${label}.`);
  lastLabelled = node;
  find("undo").hidden = false;
  return true;
}

find("undo").addEventListener("click", async () => {
  try {
    await call("v1/labels", { method: "DELETE", body: JSON.stringify({ nodes: [lastLabelled] }) });
    say(`Removed the label of ${lastLabelled}.`);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    say(error.message, true);
  }
});

find("other").addEventListener("submit", async (event) => {
  event.preventDefault();
  const [node, label] = [find("other-node"), find("other-label")];
  if (await sendLabel(asId(node.value.trim()), label.value.trim())) {
    node.value = label.value = "";
    node.focus();
  }
});

function makeSuggestion({ node, reason }) {
  const input = Object.assign(make("input"), { placeholder: "label", required: true, maxLength: 256 });
  input.setAttribute("list", "class-names");
  input.ariaLabel = `Label for ${node}`;
  input.autocomplete = "off";
  const button = Object.assign(make("button", "", "Label"), { type: "submit" });
  button.ariaLabel = `Label ${node}`;
  const who = make("span", "who", make("b", "", String(node)), make("small", "", reason ?? ""));
  const form = make("form", "row", who, input, button);
  const item = make("li", "", form);
  item.dataset.node = JSON.stringify(node);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const label = input.value.trim();
    if (!label) return;
    button.disabled = true;
    if (await sendLabel(node, label)) {
      item.dataset.done = "yes";
      form.replaceChildren(who, make("span", "done", `✓ ${label}`));
      const next = [...find("suggest").querySelectorAll("input")].find((other) => !other.value);
      (next ?? find("other-node")).focus();
      setTimeout(() => {
        item.remove();
        refreshSuggestions();
      }, 2500);
    } else {
      button.disabled = false;
    }
  });
  return item;
}

// Rows in which somebody is typing stay where they are, and so do those just labelled.
const isBusy = (item) =>
  item.dataset.done === "yes" || item.contains(document.activeElement) || item.querySelector("input")?.value;

function showSuggestions(suggestions) {
  const list = find("suggest");
  const old = new Map([...list.children].map((item) => [item.dataset.node, item]));
  const wanted = suggestions.map((one) => {
    const item = old.get(JSON.stringify(one.node)) ?? makeSuggestion(one);
    item.querySelector("small").textContent = one.reason ?? "";
    return item;
  });
  const busy = [...list.children].filter((item) => isBusy(item));
  const rows = wanted.filter((item) => !busy.includes(item));
  const places = Math.max(busy.length, Math.min(N_SUGGESTIONS, rows.length + busy.length));
  const result = Array.from({ length: places }, (_, at) => list.children[at]).map((item) =>
    busy.includes(item) ? item : undefined,
  );
  const homeless = busy.filter((item) => !result.includes(item));
  for (let at = 0; at < places; at++) result[at] ??= homeless.shift() ?? rows.shift();
  // Moving the element that has the focus would take the focus away, so only others move.
  result.filter(Boolean).forEach((item, at) => {
    if (list.children[at] === item) return;
    if (busy.includes(item) && item.parentNode === list) {
      while (list.children[at] !== item) list.children[at].remove();
    } else {
      list.insertBefore(item, list.children[at] ?? null);
    }
  });
  while (list.children.length > result.filter(Boolean).length) list.lastChild.remove();
  find("suggest-empty").hidden = list.children.length > 0;
  map.suggested = new Set(suggestions.slice(0, N_SUGGESTIONS).map((one) => one.node));
}

let isRefreshing = false;

async function refreshSuggestions() {
  if (isRefreshing) return;
  isRefreshing = true;
  try {
    const { suggestions } = await callJson(`v1/suggest?k=${N_SUGGESTIONS}`);
    showSuggestions(suggestions);
    await new Promise((resolve) => setTimeout(resolve, 2000)); // often enough
  } catch (error) {
    if (!(error instanceof Failure)) reportOnce(error); // otherwise the next answer tries again
  } finally {
    isRefreshing = false;
  }
}

// ---------------------------------------------------------------- start

new ResizeObserver(() => {
  if (!status) return;
  drawRate();
  showConfidence(status);
  if (certificates.length) showCertificates();
}).observe(document.body);

listen();
