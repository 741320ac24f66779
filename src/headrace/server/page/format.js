// Values as texts.

const NUMBERS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });
const RATES = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
const NUMERIC = /^(TINYINT|SMALLINT|INT|INTEGER|BIGINT|FLOAT|REAL|DOUBLE|DECIMAL)\b/;

/** Whether values of an SQL type are numbers. */
export const isNumeric = (type) => NUMERIC.test(type);

export const number = (value) => (value === null || value === undefined ? "" : NUMBERS.format(value));

/** A rate per second. */
export const rate = (value) => (value === null || value === undefined ? "" : RATES.format(value));

/** A value of a row. */
export function value(found) {
  if (found === null || found === undefined) return "NULL";
  if (typeof found === "number" || typeof found === "bigint") return number(found);
  if (typeof found === "object") return JSON.stringify(found, plain);
  return String(found);
}

/** For JSON.stringify: numbers beyond 2**53 with all their digits. */
export const plain = (_, found) => (typeof found === "bigint" ? String(found) : found);

const LAST = /\.999999Z?$/;

/** An instant in short: of today the time alone; the last one of a window by the one after it; `end` and numbers unchanged. */
export function instant(found) {
  if (found === null || found === undefined) return "—";
  if (typeof found !== "string" || position(found) === null) return String(found);
  if (LAST.test(found)) return `just before ${instant(next(found))}`;
  const [date, time] = found.replace(" ", "T").replace(/Z$/, "").split("T");
  const short = time.replace(/(\.\d{3})\d+$/, "$1");
  return date === new Date().toISOString().slice(0, 10) ? short : `${date} ${short}`;
}

/** The instant after one that is a microsecond before a second. */
const next = (found) => new Date(Math.floor(position(found) / 1e3) * 1e3 + 1e3).toISOString().replace(/\.000Z$/, "Z");

/** Where an instant is on an axis: milliseconds of a TIMESTAMP, else the number; null for none and `end`. */
export function position(found) {
  if (typeof found === "number") return found;
  if (typeof found === "bigint") return Number(found);
  if (typeof found !== "string" || found === "end") return null;
  const at = Date.parse(found.endsWith("Z") ? found : `${found.replace(" ", "T")}Z`);
  return Number.isNaN(at) ? null : at;
}

/** A length of time: microseconds of a TIMESTAMP, else units of the stream's time. */
export function length(found, isTime) {
  if (found === null || found === undefined) return "—";
  return isTime ? seconds(found / 1e6) : number(found);
}

/** Seconds with the unit that fits. */
export function seconds(found) {
  if (found === 0) return "0 s";
  if (Math.abs(found) < 0.001) return `${(found * 1e6).toFixed(0)} µs`;
  if (Math.abs(found) < 1) return `${(found * 1e3).toFixed(0)} ms`;
  if (found < 60) return `${found.toFixed(1)} s`;
  if (found < 3600) return `${Math.floor(found / 60)} min ${Math.floor(found % 60)} s`;
  if (found < 86400) return `${Math.floor(found / 3600)} h ${Math.floor((found % 3600) / 60)} min`;
  return `${Math.floor(found / 86400)} d ${Math.floor((found % 86400) / 3600)} h`;
}

/** How far a heartbeat is behind the newest row; empty where one of them is missing. */
export function behind(heartbeat, latest) {
  const [low, high] = [position(heartbeat), position(latest)];
  if (low === null || high === null) return "";
  const isTime = typeof heartbeat === "string";
  return isTime ? seconds(Math.max(0, high - low) / 1e3) : number(Math.max(0, high - low));
}

/** Bytes with the unit that fits. */
export function bytes(found) {
  if (found < 1e3) return `${found} B`;
  if (found < 1e6) return `${(found / 1e3).toFixed(1)} kB`;
  return found < 1e9 ? `${(found / 1e6).toFixed(1)} MB` : `${(found / 1e9).toFixed(2)} GB`;
}

/** A name as SQL writes it. */
export const quoted = (name) => (/^[a-z_][a-z0-9_]*$/i.test(name) ? name : `\`${name.replaceAll("`", "``")}\``);

/** A number with its noun. */
export const count = (found, noun) => `${number(found)} ${noun}${found === 1 ? "" : "s"}`;
