// Requests to the server that has sent this page, and no others.

const KEY = "headrace-key";

/** An error that the server has answered with. */
export class ServerError extends Error {
  constructor(status, body) {
    const found = body?.error ?? { kind: "unknown", message: `the server answered with ${status}`, hint: null };
    super(found.message);
    Object.assign(this, { status, kind: found.kind, line: found.line, column: found.column, hint: found.hint });
  }
}

/** The server did not answer. */
export class Unreachable extends Error {}

export const key = {
  get: () => sessionStorage.getItem(KEY),
  set: (found) => sessionStorage.setItem(KEY, found),
  forget: () => sessionStorage.removeItem(KEY),
};

/** The response to a request. Raises ServerError or Unreachable. */
export async function request(path, { method = "GET", headers = {}, body = undefined, signal = undefined } = {}) {
  const sent = key.get() === null ? headers : { ...headers, Authorization: `Bearer ${key.get()}` };
  let response;
  try {
    response = await fetch(path, { method, headers: sent, body, signal, credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("the server does not answer");
  }
  if (!response.ok) throw new ServerError(response.status, await response.json().catch(() => null));
  return response;
}

/** A JSON text; whole numbers that a Number cannot hold are BigInts. */
export function parsed(text) {
  return JSON.parse(text, (_, found, context) => (
    typeof found === "number" && !Number.isSafeInteger(found) && /^-?\d+$/.test(context?.source ?? "")
      ? BigInt(context.source) : found));
}

export const get = async (path, signal) => parsed(await (await request(path, { signal })).text());

const sent = (body) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export const post = async (path, body) => parsed(await (await request(path, sent(body))).text());

export const remove = async (path) => parsed(await (await request(path, { method: "DELETE" })).text());

/** The results of statements. */
export const carryOut = async (text) => (await post("/statements", { text })).results;

/** The rows of a response in JSON lines. */
export async function rows(path, body = undefined) {
  const text = await (await request(path, body === undefined ? {} : sent(body))).text();
  return text.split("\n").filter(Boolean).map(parsed);
}

const SILENT = 45_000;

/** The events that a path sends, until it ends: {id, type, data}; those without data move the id alone. */
export async function* events(path, lastId, signal) {
  const own = new AbortController();
  const abort = () => own.abort();
  signal.addEventListener("abort", abort);
  let timer = setTimeout(abort, SILENT);
  try {
    const headers = lastId === null ? {} : { "Last-Event-ID": lastId };
    const response = await request(path, { headers, signal: own.signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let buffer = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      // The server says something every 15 seconds; where it does not, the connection is dead.
      clearTimeout(timer);
      timer = setTimeout(abort, SILENT);
      const blocks = (buffer + value).split("\n\n");
      buffer = blocks.pop();
      yield* blocks.map(event);
    }
  } catch (error) {
    if (signal.aborted || error instanceof ServerError) throw error;
    throw new Unreachable("the connection was lost");
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    own.abort();
  }
}

function event(block) {
  const found = { id: null, type: "", data: "" };
  for (const line of block.split("\n")) {
    const at = line.indexOf(": ");
    if (at <= 0) continue;
    const [field, text] = [line.slice(0, at), line.slice(at + 2)];
    if (field === "id") found.id = text;
    else if (field === "event") found.type = text;
    else if (field === "data") found.data += text;
  }
  return { ...found, data: found.data ? parsed(found.data) : null };
}
