// Labels from the user: for suggested nodes, and for any other.

import { labelFrom } from "./classes.js";
import { find, make } from "./elements.js";
import { map } from "./map.js";
import { Failure, call, callJson, reportOnce } from "./service.js";
import { showVersions, status } from "./status.js";
import { openReasons } from "./why.js";

const N_SUGGESTIONS = 6;

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
  const label = labelFrom(text);
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
  const name = Object.assign(make("button", "link", make("b", "", String(node))), { type: "button" });
  name.ariaLabel = `Why ${node}?`;
  name.addEventListener("click", () => openReasons(node));
  const who = make("span", "who", name, make("small", "", reason ?? ""));
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

function showSuggestions(suggestions, version) {
  const list = find("suggest");
  list.dataset.version = version;
  showVersions();
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

export async function refreshSuggestions() {
  if (isRefreshing) return;
  isRefreshing = true;
  try {
    do {
      const { suggestions, of_version: version } = await callJson(`v1/suggest?k=${N_SUGGESTIONS}`);
      showSuggestions(suggestions, version);
      await new Promise((resolve) => setTimeout(resolve, 2000)); // often enough
    } while (status && Number(find("suggest").dataset.version) !== status.suggestions_version);
  } catch (error) {
    if (!(error instanceof Failure)) reportOnce(error); // otherwise the next answer tries again
  } finally {
    isRefreshing = false;
  }
}
