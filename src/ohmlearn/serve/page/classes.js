// The classes: their colours, the labels that users type, and the table.

import { find, make } from "./elements.js";
import { formatCount } from "./text.js";

export const N_CLASS_COLOURS = 10;
const N_CLASSES = 14; // rows of the table

let labelOf = new Map(); // what users type -> label as the service has it
let colourOf = new Map();

export function setClasses(classes) {
  colourOf = new Map(classes.map((one) => [one.label, one.colour]));
  labelOf = new Map(classes.map((one) => [String(one.label), one.label]));
}

export const allLabels = () => [...labelOf.values()];
export const labelFrom = (text) => (labelOf.has(text) ? labelOf.get(text) : text);

// The number of the colour of a class, or null.
export const colourNumber = (label) =>
  colourOf.has(label) ? colourOf.get(label) % N_CLASS_COLOURS : null;

export function classColour(label) {
  const number = colourNumber(label);
  return number === null ? "var(--grey)" : `var(--c${number})`;
}

export function makeChip(label) {
  const isNone = label === null || label === undefined;
  const chip = make("span", isNone ? "chip none" : "chip", isNone ? "none" : String(label));
  if (!isNone) chip.style.setProperty("--chip", classColour(label));
  return chip;
}

function makeButton(label) {
  const button = make("button", "link", makeChip(label));
  button.type = "button";
  button.dataset.label = label;
  return button;
}

export function showClasses(classes, nUnreached, nAbstained) {
  let rows = classes.map(({ label, n_nodes: n }) => ({ key: `=${label}`, label, n }));
  if (rows.length > N_CLASSES) {
    rows.sort((a, b) => b.n - a.n);
    const n = rows.slice(N_CLASSES - 1).reduce((sum, row) => sum + row.n, 0);
    const text = `${rows.length - N_CLASSES + 1} other classes`;
    rows = [...rows.slice(0, N_CLASSES - 1), { key: `+${text}`, label: null, text, n }];
  }
  if (nAbstained > 0) rows.push({ key: "?", label: null, text: "not sure enough", n: nAbstained });
  if (nUnreached > 0) rows.push({ key: "", label: null, text: "not reached", n: nUnreached });
  const total = rows.reduce((sum, { n }) => sum + n, 0);
  const body = find("classes").tBodies[0];
  const old = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  const wanted = rows.map(({ key, label, text, n }) => {
    let row = old.get(key);
    if (!row) {
      const bar = make("span", "", make("i"));
      row = make("tr", "", make("th", "", label === null ? makeChip(label) : makeButton(label)), make("td", "bar", bar), make("td"));
      row.cells[0].scope = "row";
      row.cells[1].ariaHidden = "true";
      row.dataset.key = key;
      if (label === null) row.cells[0].firstChild.textContent = text;
    }
    row.querySelector(".chip").style.setProperty("--chip", classColour(label));
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
  find("classes-hint").hidden = classes.length === 0;
  const names = find("class-names");
  const list = classes.map(({ label }) => String(label));
  if (list.join("\n") !== [...names.options].map((one) => one.value).join("\n")) {
    names.replaceChildren(...list.map((text) => Object.assign(make("option"), { value: text })));
  }
}
