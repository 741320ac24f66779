// What the page knows of the server, kept up with it, whatever becomes of the connection.

import { ServerError, Unreachable, events, get } from "./api.js";

/** What is known; views are functions of it. */
export const state = {
  connection: "connecting", // or connected, lost, key
  problem: null, // why, where it is not connected
  status: null,
  received: 0, // when the status came (milliseconds of the page's clock)
  queries: [],
  waiting: {},
  streams: [],
  relations: [],
  sinks: [],
};

const listeners = new Set();
let due = false;

/** Call a function after every change. */
export const onChange = (listener) => listeners.add(listener);

/** Change what is known; listeners hear of several changes at once together. */
export function change(part = {}) {
  Object.assign(state, part);
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    listeners.forEach((listener) => listener());
  });
}

/** Seconds since a stream's heartbeat moved: as of the status, and the time since then. */
export const age = (stream) => stream.age + (performance.now() - state.received) / 1000;

export const statusOf = (part, name) => state.status?.[part].find((one) => one.name === name) ?? null;

const AT_LEAST = 1_500;
let asked = 0;
let again = null;

/** Ask what is defined. */
export async function refresh() {
  asked = performance.now();
  clearTimeout(again);
  again = null;
  const [queries, streams, relations, sinks] = await Promise.all(["/queries", "/streams", "/relations", "/sinks"].map((path) => get(path)));
  change({
    queries: queries.queries, waiting: queries.waiting, streams: streams.streams, relations: relations.relations, sinks: sinks.sinks,
  });
}

/** Ask it soon, but not for every epoch. */
function refreshSoon() {
  const wait = Math.max(0, asked + AT_LEAST - performance.now());
  again ??= setTimeout(() => refresh().catch(() => {}), wait);
}

let stopping = null;

/** Follow the server; called again with another key. */
export async function follow() {
  stopping?.abort();
  stopping = new AbortController();
  const { signal } = stopping;
  for (let failures = 0; !signal.aborted;) {
    try {
      await refresh();
      for await (const event of events("/status/events", null, signal)) {
        failures = 0;
        if (state.connection !== "connected") change({ connection: "connected", problem: null });
        if (event.type !== "status") continue;
        change({ status: event.data, received: performance.now() });
        refreshSoon();
      }
      change({ connection: "lost", problem: "the server has closed the connection" });
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ServerError && error.status === 401) {
        change({ connection: "key", problem: error.message });
        return;
      }
      if (!(error instanceof Unreachable || error instanceof ServerError)) throw error;
      change({ connection: "lost", problem: error.message });
    }
    failures += 1;
    await new Promise((resolve) => setTimeout(resolve, Math.min(5_000, 250 * 2 ** Math.min(failures, 5))));
  }
}
