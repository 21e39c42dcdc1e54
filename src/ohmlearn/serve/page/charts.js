// Charts in SVG: edges per second, how sure the labels are, and the certificates over time.

import { draw, find, setText } from "./elements.js";
import { Failure, callJson, reportOnce } from "./service.js";
import { formatCount, formatShare, isNumber } from "./text.js";

const RATE_SECONDS = 120;

const rates = []; // [seconds, edges per second]
let certificates = [];

export function redrawCharts(status) {
  drawRate();
  showConfidence(status);
  showAccuracy(status);
  if (certificates.length) showCertificates();
}

function sizeOf(svg) {
  const { width, height } = svg.getBoundingClientRect();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return [width, height];
}

export function addRate(now, rate) {
  rates.push([now, rate]);
  while (rates.length > 2 && rates[1][0] < now - RATE_SECONDS) rates.shift();
}

export function drawRate() {
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

export function showConfidence({ confidence = [] }) {
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

export async function refreshCertificates() {
  try {
    const found = await callJson("v1/certificates?limit=200");
    certificates = Array.isArray(found) ? found : (found.certificates ?? []);
    certificates.sort((a, b) => a.at - b.at);
    showCertificates();
  } catch (error) {
    if (!(error instanceof Failure)) reportOnce(error); // otherwise the next event tries again
  }
}

// The estimated accuracy with its interval, as far back as the service remembers.
export function showAccuracy({ accuracy }) {
  const svg = find("accuracy");
  const last = accuracy?.estimate;
  svg.toggleAttribute("hidden", !last);
  if (!last) {
    setText("accuracy-text", "Not estimated: this needs two connected labels of a class, and two classes.");
    return;
  }
  const interval = `${formatShare(last.low)} to ${formatShare(last.high)}`;
  const rough = accuracy.is_rough ? " Rough: there are few labels." : "";
  setText(
    "accuracy-text",
    `About ${formatShare(last.value)} (${interval}), estimated from ${formatCount(last.n_labels)} labels that are left out.${rough}`,
  );
  const [width, height] = sizeOf(svg);
  if (!width) return;
  const points = accuracy.history.filter((one) => isNumber(one.value));
  const [left, right, ground] = [38, width - 6, height - 18];
  const first = points[0].at;
  const span = Math.max(1e-9, points.at(-1).at - first);
  const least = Math.max(0, Math.floor(10 * Math.min(...points.map((one) => one.low)) - 0.5) / 10);
  const x = (at) => (points.length < 3 || span < 1 ? right - 4 : left + ((right - left - 4) * (at - first)) / span);
  const y = (value) => ground - ((ground - 6) * (value - least)) / (1 - least || 1);
  const trace = (list, name) => list.map((one) => `${x(one.at).toFixed(1)} ${y(one[name]).toFixed(1)}`).join("L");
  const parts = [least, (1 + least) / 2, 1].flatMap((value) => [
    draw("path", { class: "axis", d: `M${left} ${y(value)}H${right}` }),
    draw("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, formatShare(value)),
  ]);
  parts.push(draw("path", { class: "area", d: `M${trace(points, "low")}L${trace([...points].reverse(), "high")}Z` }));
  parts.push(draw("path", { class: "line", d: `M${trace(points, "value")}` }));
  parts.push(draw("circle", { class: accuracy.alarm ? "point bound" : "point", cx: x(last.at), cy: y(last.value), r: 3 }));
  if (span > 60) {
    const [from, to] = formatTimes([first, last.at]);
    parts.push(draw("text", { x: left, y: height - 3 }, from));
    parts.push(draw("text", { x: right, y: height - 3, "text-anchor": "end" }, to));
  }
  svg.replaceChildren(...parts);
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
