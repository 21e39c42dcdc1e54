// The map of the communities: nodes that move to their places, and that can be pointed at or
// walked through with the arrow keys. It is drawn only while something moves.

import { Drawing } from "./drawing.js";
import { calm, find, make, setText } from "./elements.js";
import { moveNodes, placeNew } from "./layout.js";
import { showVersions } from "./status.js";
import { formatCount, formatShare, isNumber } from "./text.js";
import { openReasons } from "./why.js";

class CommunityMap {
  // `heat` scales the forces and cools down.

  constructor(canvas) {
    this.canvas = canvas;
    this.drawing = new Drawing(canvas);
    this.nodes = new Map(); // id -> node, also those that fade out
    this.links = [];
    this.suggested = new Set();
    this.heat = 0;
    this.focused = null;
    this.hovered = null;
    this.isDrawing = false;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.drawing.readColours();
      for (const node of this.nodes.values()) Object.assign(node, this.paintOf(node.label));
      this.wake();
    });
    new ResizeObserver(() => {
      this.drawing.view = null;
      this.wake();
    }).observe(canvas);
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => this.setHovered(null));
    canvas.addEventListener("click", (event) => {
      this.hover(event);
      if (!this.hovered) return;
      this.focus(this.hovered, true);
      openReasons(this.hovered.id);
    });
    canvas.addEventListener("keydown", (event) => this.steer(event));
    canvas.addEventListener("blur", () => this.focus(null));
  }

  paintOf(label) {
    const paint = this.drawing.colour(label);
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
      node.aim = [...this.drawing.colour(one.label)];
      return node;
    });
    const kept = new Set(present);
    for (const node of this.nodes.values()) if (!kept.has(node)) node.isLeaving = true;
    this.links = links.map(([a, b]) => [present[a], present[b]]).filter(([a, b]) => a && b);
    for (const [a, b] of this.links) {
      a.links += 1;
      b.links += 1;
    }
    placeNew(present, this.links, isFirst);
    this.present = present;
    this.heat = Math.max(this.heat, isFirst ? 1 : 0.22);
    if (isFirst) for (let step = 0; step < 80; step++) this.move();
    if (calm.matches) {
      for (let step = 0; step < 120 && this.heat > 0.01; step++) this.move();
      for (const node of present) Object.assign(node, { seen: 1, paint: [...node.aim] });
      this.drawing.view = null;
    }
    if (this.focused?.isLeaving) this.focus(null);
    else if (this.focused) this.tellFocus();
    this.wake();
  }

  move() {
    moveNodes(this.present, this.links, this.heat);
    this.heat *= 0.985;
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
    this.drawing.draw(this, this.focused ?? this.hovered, time);
    this.isDrawing = isMoving && !calm.matches;
    if (this.isDrawing) requestAnimationFrame((next) => this.frame(next));
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
    if (event.key === " " && this.focused) {
      event.preventDefault();
      openReasons(this.focused.id);
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

export const map = new CommunityMap(find("map"));

export function showMap(drawn, nAll) {
  map.update(drawn);
  const n = drawn.nodes.length;
  const all = Math.max(n, nAll ?? n);
  find("map-empty").hidden = n > 0;
  setText("map-count", n ? (n < all ? `${formatCount(n)} of ${formatCount(all)} nodes.` : `${formatCount(n)} nodes.`) : "");
  find("map").dataset.version = drawn.version ?? "";
  showVersions();
}
