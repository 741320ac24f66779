// One query's answer, followed: its rows now, and the newest part of its history; of events the newest.

import { ServerError, events, get } from "./api.js";
import { plain, position } from "./format.js";

const SHOWN = 200;
const PAST = 3_000;
const EVERY = 500;

/** Follow a query's answer until `stop` is called; `changed` is called whenever it has changed. */
export class Live {
  constructor(name, isEvents, changed) {
    this.name = name;
    this.isEvents = isEvents;
    this.isLoaded = false;
    this.isCut = false;
    this.rows = [];
    this.total = 0;
    this.note = "";
    this.until = null;
    this.problem = null;
    this.past = new Map();
    this.changed = changed;
    this.stopping = new AbortController();
    this.due = null;
    this.run();
  }

  stop() {
    this.stopping.abort();
    clearTimeout(this.due);
  }

  path(rest) {
    return `/queries/${encodeURIComponent(this.name)}/${rest}`;
  }

  async run() {
    const { signal } = this.stopping;
    let id = null;
    while (!signal.aborted) {
      try {
        if (id === null) id = await this.start();
        for await (const event of events(this.path("events"), id, signal)) {
          id = event.id ?? id;
          if (event.type === "changes") this.take(event.data);
          if (event.type === "end" || event.type === "gone") break;
        }
        id = null;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ServerError) {
          // The query was replaced, or what comes next is no longer kept: from the answer on.
          id = null;
          if (error.status !== 410) this.problem = error.message;
        }
      }
      this.changed();
      await new Promise((resolve) => setTimeout(resolve, 700));
    }
  }

  async start() {
    const found = await get(this.path(`recent?rows=${SHOWN}&past=${PAST}`), this.stopping.signal);
    this.past = new Map();
    this.isCut = found.past.length >= PAST;
    this.until = null;
    this.problem = null;
    found.past.forEach((row) => this.add(row, 1));
    this.show(found);
    return found.id;
  }

  show(found) {
    Object.assign(this, { rows: found.rows, total: found.total, note: found.note, isLoaded: true });
    this.changed();
  }

  take({ final_below: until, rows }) {
    this.until = until ?? this.until;
    for (const { epoch: _, change, ...row } of rows) this.add(row, change);
    for (; this.past.size > PAST; this.isCut = true) this.past.delete(this.past.keys().next().value);
    this.due ??= setTimeout(() => this.look(), EVERY);
  }

  add(row, change) {
    const key = JSON.stringify(row, plain);
    const times = (this.past.get(key)?.times ?? 0) + change;
    if (times > 0) this.past.set(key, { row, times });
    else this.past.delete(key);
  }

  async look() {
    try {
      if (this.isEvents) this.changed();
      else this.show(await get(this.path(`recent?rows=${SHOWN}`), this.stopping.signal));
    } catch {
      // The events will say what is wrong.
    } finally {
      this.due = null;
    }
  }

  /** The events that are here with how often each is there, the newest first. */
  get newest() {
    const at = ({ row }) => position(row.valid_from) ?? Infinity;
    return [...this.past.values()].map((one) => [at(one), one]).sort((a, b) => b[0] - a[0]).map(([, one]) => one);
  }

  /** The rows of the history that are here. */
  get history() {
    return [...this.past.values()].map((one) => one.row);
  }
}
