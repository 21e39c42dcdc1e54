// Draws the map on a canvas: a soft glow, links, nodes and the names of classes. The view always
// contains all nodes.

import { N_CLASS_COLOURS, colourNumber } from "./classes.js";
import { calm } from "./elements.js";

const STRETCH = 1.4;

export class Drawing {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.glow = document.createElement("canvas"); // coarse: enlarging it makes it soft
    this.view = null;
    this.readColours();
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    const parse = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    this.colours = Array.from({ length: N_CLASS_COLOURS }, (_, at) => parse(read(`--c${at}`)));
    this.grey = parse(read("--grey"));
    this.ink = read("--ink");
    this.card = read("--card");
  }

  colour(label) {
    const number = colourNumber(label);
    return number === null ? this.grey : this.colours[number];
  }

  fit({ nodes, present }, width, height) {
    const xs = present.map((node) => node.x);
    const ys = present.map((node) => node.y);
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
    for (const node of nodes.values()) {
      node.sx = (node.x - view.x) * view.wide + width / 2;
      node.sy = (node.y - view.y) * view.high + height / 2 + 7;
    }
  }

  // `scene` has the nodes by id, those present (not fading out), the links, and who is suggested.
  draw(scene, shown, time) {
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
    if (!scene.present?.length || !width) return;
    this.fit(scene, width, height);
    this.drawGlow(scene.nodes, width, height);
    this.drawLinks(scene.links);
    for (const node of scene.nodes.values()) {
      this.drawNode(node, scene.suggested.has(node.id), time);
    }
    this.drawNames(scene.present);
    if (shown) this.drawRing(shown, this.radius(shown) + 6, this.ink, 2);
  }

  // Links of about the same colour are one path, because changing colours is what takes time.
  drawLinks(links) {
    const paths = new Map();
    for (const [a, b] of links) {
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

  drawGlow(nodes, width, height) {
    const coarse = 6;
    const { glow } = this;
    glow.width = Math.ceil(width / coarse);
    glow.height = Math.ceil(height / coarse);
    const pen = glow.getContext("2d");
    const radius = (34 * Math.max(0.7, Math.min(1.5, this.view.scale)) + 12) / coarse;
    for (const node of nodes.values()) {
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

  drawNode(node, isSuggested, time) {
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
    else if (isSuggested) this.drawRing(node, radius + 3.6, this.ink, 1.3, [3, 2.6]);
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
  drawNames(present) {
    const { pen } = this;
    const members = new Map();
    for (const node of present) {
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
}
