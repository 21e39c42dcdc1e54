// Numbers, durations and shares as text.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

export function formatCount(value, largest = 1e7) {
  if (!isNumber(value)) return "–";
  return value < largest ? whole.format(Math.round(value)) : short.format(value);
}

export function formatDuration(seconds) {
  if (!isNumber(seconds)) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  for (const [unit, size, next] of [["s", 1, 100], ["min", 60, 5400], ["h", 3600, 129_600]]) {
    if (seconds < next) return `${Math.round(seconds / size)} ${unit}`;
  }
  return `${whole.format(Math.round(seconds / 86_400))} days`;
}

export function formatShare(share) {
  if (!isNumber(share)) return "–";
  return `${share > 0.99 && share < 1 ? ">99" : Math.round(share * 100)} %`;
}
