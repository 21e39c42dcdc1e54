// The forces that place the nodes of the map: springs along links, repulsion, and a weak pull to
// the place that the service gave.

// A new node appears beside the nodes that it is linked with, in the first map at its own place.
export function placeNew(nodes, links, isFirst) {
  for (const [a, b] of links) {
    for (const [node, other] of [[a, b], [b, a]]) {
      if (!isFirst && Number.isNaN(node.x) && !Number.isNaN(other.x)) {
        node.x = other.x + (node.homeX - other.homeX) * 0.2;
        node.y = other.y + (node.homeY - other.homeY) * 0.2;
      }
    }
  }
  for (const node of nodes) if (Number.isNaN(node.x)) [node.x, node.y] = [node.homeX, node.homeY];
}

// One step. Forces are scaled by `heat`, which the caller lets cool down.
export function moveNodes(nodes, links, heat) {
  for (const [a, b] of links) {
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
