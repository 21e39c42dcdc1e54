// Talks to the service: requests with the token, and the stream of events, which is opened again
// whenever it ends.

import { find, setText } from "./elements.js";

const SILENCE_MS = 20_000; // after so long without an event, ask whether the service is there
const TOKEN = "ohmlearn-token";

export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function call(path, options = {}) {
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

export const callJson = async (path, options) => (await call(path, options)).json();

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

async function listenOnce({ onStatus, onMap }) {
  const stop = new AbortController();
  let timer = 0;
  const watch = () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      try {
        onStatus(await callJson("v1/status", { signal: AbortSignal.timeout(8000) }));
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
      if (event === "status") onStatus(JSON.parse(data));
      if (event === "map") await onMap(JSON.parse(data));
    }
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}

export async function listen(show) {
  let delay = 1;
  for (;;) {
    const begun = performance.now();
    let reason = "The service ended the connection.";
    try {
      await listenOnce(show);
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
export function reportOnce(error) {
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
