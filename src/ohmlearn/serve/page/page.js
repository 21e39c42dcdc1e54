// The page of `ohmlearn serve`: listens to v1/events and shows what it says.
//
// Modules in the order of the imports, each of which uses earlier ones only:
//   elements.js, text.js     elements of the page; numbers as text
//   service.js               requests and the stream of events
//   classes.js, charts.js    the table of classes; charts in SVG
//   why.js                   the reasons for a label
//   review.js                what to look at in a class
//   status.js                the status, with the classes and charts
//   layout.js, drawing.js    the forces of the map; the canvas
//   map.js                   the map
//   labels.js                labels from the user

import { redrawCharts, refreshCertificates } from "./charts.js";
import { refreshSuggestions } from "./labels.js";
import { showMap } from "./map.js";
import "./review.js";
import { Failure, callJson, listen } from "./service.js";
import { showStatus, status } from "./status.js";

function onStatus(next) {
  const before = status;
  showStatus(next);
  if (next.suggestions_version !== before?.suggestions_version) refreshSuggestions();
  const certified = next.answers?.certificate?.at;
  if (!before || certified !== before.answers?.certificate?.at) refreshCertificates();
}

async function onMap(found) {
  let drawn = found;
  if (!Array.isArray(drawn?.nodes)) {
    try {
      drawn = await callJson("v1/map");
    } catch (error) {
      if (error instanceof Failure && error.status !== 401) return; // the next map comes soon
      throw error;
    }
  }
  showMap(drawn, status?.nodes);
}

new ResizeObserver(() => {
  if (status) redrawCharts(status);
}).observe(document.body);

listen({ onStatus, onMap });
