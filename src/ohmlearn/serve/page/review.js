// What to look at in a class: estimates above thresholds, the surest and the least sure nodes.

import { find, make, setText } from "./elements.js";
import { Failure, callJson, reportOnce } from "./service.js";
import { formatCount, formatShare } from "./text.js";
import { openReasons } from "./why.js";

let asked = 0; // the last question, whose answer is shown

async function openReview(label) {
  const question = ++asked;
  if (!find("review").open) find("review").showModal();
  setText("review-title", `What to look at: ${label}`);
  setText("review-state", "Computing …");
  find("review-found").hidden = true;
  try {
    const { classes } = await callJson("v1/review?limit=12");
    const found = classes.find((one) => String(one.label) === String(label));
    if (question === asked) show(found);
  } catch (error) {
    if (!(error instanceof Failure)) reportOnce(error);
    if (question === asked) setText("review-state", error.message);
  }
}

function show(found) {
  setText("review-state", found ? "" : "No node has this label.");
  find("review-found").hidden = !found;
  if (!found) return;
  const rows = found.thresholds.filter((row) => row.n_nodes > 0);
  find("review-thresholds").tBodies[0].replaceChildren(...rows.map((row) => {
    const cells = [formatCount(row.n_nodes), formatEstimate(row.precision), formatEstimate(row.recall)];
    const line = make("tr", "", make("th", "", `≥ ${row.threshold}`), ...cells.map((text) => make("td", "", text)));
    line.cells[0].scope = "row";
    return line;
  }));
  for (const kind of ["surest", "borderline"]) {
    find(`review-${kind}`).replaceChildren(...found[kind].map(({ node, probability }) => {
      const button = Object.assign(make("button", "link", String(node)), { type: "button" });
      button.addEventListener("click", () => openReasons(node));
      return make("li", "", button, ` ${formatShare(probability)}`);
    }));
  }
}

const formatEstimate = (one) =>
  one ? `${formatShare(one.value)} (${formatShare(one.low)} to ${formatShare(one.high)})` : "too few labels";

find("classes").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) openReview(button.dataset.label);
});
find("review-close").addEventListener("click", () => find("review").close());
