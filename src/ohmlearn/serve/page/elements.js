// Finds, makes and fills elements of the page.
//
// Names come from users of the service. They enter the page as text only, never as markup.

export const find = (id) => document.getElementById(id);
export const calm = matchMedia("(prefers-reduced-motion: reduce)");

export function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children); // strings become text
  return element;
}

export function draw(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

export function setText(id, text) {
  const element = find(id);
  if (element.textContent !== text) element.textContent = text; // no needless announcements
}
