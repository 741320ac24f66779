// The text of statements, as far as an editor needs it: its pieces, its statements, places in it.

const PIECE = /(?<comment>--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|(?<string>[rR]?'(?:[^'\\]|''|\\[\s\S])*'?|"(?:[^"\\]|""|\\[\s\S])*"?)|(?<quoted>`(?:[^`]|``)*`?)|(?<number>\d[\w.]*)|(?<word>[A-Za-z_]\w*)|(?<symbol>[^\s\w])/g;

const WORDS = new Set(`ALL ALTER ANALYZE AND AS ASC BEGINNING BETWEEN BIGINT BOOLEAN BY CASE CAST COARSEST CONFIDENCE CONSISTENCY COST CREATE CROSS
  DATE DAY DAYS DEAD DECIMAL DELAY DESC DESCRIBE DEVIATION DISORDER DISTINCT DOUBLE DROP DSTREAM ELSE END ESTIMATED EXCEPT EXISTS EXPLAIN FALSE
  FILTER FINEST FOLLOWING FORMAT FROM FULL GAP_FILL GRANULARITY GROUP HAVING HEARTBEATS HISTORY HOP HOUR HOURS IDLE IN INNER INPUT INTERSECT INTERVAL IS
  ISTREAM JOIN KEEP KEEPING KEY LANES LATENCY LEFT LETTERS LIKE LIMIT LOSS MINUTE MINUTES NOT NOW NULL OF OFFSET ON OPTIONS OR ORDER OUTER OVER
  PARTITION PAUSE PRECEDING PUSH QOS QUERIES QUERY RANGE RATE REFRESH RELATION RELATIONS REMEMBER RENAME REPLACE REPLAY RESUME RETAIN
  RIGHT ROW ROWS RSTREAM SECOND SECONDS SELECT SESSION SET SHARED SHOW SKEW SLIDE STREAM STREAMS STRING THEN TIMEOUT TIMESTAMP
  TO TOLERANT TRUE TUMBLE UNBOUNDED UNION USING UTILITY VALID WAIT WEIGHT WHEN WHERE WHY WINDOW WITH WITHIN`.split(/\s+/));

/** The pieces of a text but blanks: {kind, text, start, end}. */
export function pieces(text) {
  return [...text.matchAll(PIECE)].map((match) => {
    const [kind] = Object.entries(match.groups).find(([, found]) => found !== undefined);
    const isWord = kind === "word" && WORDS.has(match[0].toUpperCase());
    return { kind: kind === "word" && !isWord ? "name" : kind, text: match[0], start: match.index, end: match.index + match[0].length };
  });
}

/** The statements of a text: {text, start, words}, where `words` are its pieces but comments. */
export function statements(text) {
  const found = [];
  let words = [];
  const close = () => {
    if (words.length === 0) return;
    const [start, end] = [words[0].start, words[words.length - 1].end];
    found.push({ text: text.slice(start, end), start, words });
    words = [];
  };
  for (const piece of pieces(text)) {
    if (piece.kind === "comment") continue;
    if (piece.text === ";") close();
    else words.push(piece);
  }
  close();
  return found;
}

const begins = (statement, ...words) => words.every((word, index) => statement.words[index]?.text.toUpperCase() === word);

/** Whether a statement is a query without a name. */
export const selects = (statement) => ["SELECT", "WITH", "VALUES", "(", "ISTREAM", "DSTREAM", "RSTREAM"].some((word) => begins(statement, word));

/** Whether a SELECT is asked once: it reads no stream at all, or what is kept of an answer or a stream. */
export function isQuestion(statement) {
  const words = statement.words.filter((word) => word.kind !== "string").map((word) => word.text.toUpperCase());
  const reads = words.map((word, index) => (word === "FROM" || word === "JOIN" ? index : -1)).filter((index) => index >= 0);
  return reads.length === 0 || reads.some((at) => ["HISTORY", "SNAPSHOT", "CHANGES", "STREAM", "EPOCHS", "ROWS"].includes(words[at + 1]) && words[at + 2] === "OF");
}

/** A statement at its place in a text, in which all before it is blank. */
export const placed = (text, statement) => blank(text.slice(0, statement.start)) + statement.text;

/** Whether a statement replaces a query. */
export const replaces = (statement) => begins(statement, "CREATE", "OR", "REPLACE", "QUERY");

/**
 * What shows the plan or the effect of a statement before it is carried out; null where there is nothing to show.
 *
 * It is one line longer than the text up to the statement, and has the same columns, so that the places of errors fit.
 */
export function explaining(text, statement) {
  if (replaces(statement) || begins(statement, "SELECT") || begins(statement, "WITH")) {
    return `EXPLAIN\n${blank(text.slice(0, statement.start))}${statement.text}`;
  }
  if (!begins(statement, "CREATE", "QUERY")) return null;
  const as = statement.words.find((word, index) => index > 2 && word.text.toUpperCase() === "AS");
  return as ? `EXPLAIN\n${blank(text.slice(0, as.end))}${text.slice(as.end, statement.start + statement.text.length)}` : null;
}

const blank = (text) => text.replace(/[^\n]/g, " ");

/** The offset of a line and a column, which count characters from 1. */
export function offset(text, line, column) {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  return Math.min(text.length, before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length);
}

/** The offset where the piece at an offset ends; one further where there is none. */
export function endOfPiece(text, at) {
  return pieces(text).find((piece) => piece.start <= at && at < piece.end)?.end ?? Math.min(text.length, at + 1);
}
