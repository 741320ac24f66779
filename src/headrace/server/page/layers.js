// A layered layout of a graph without circles: what is read is left of what reads it.

const SWEEPS = 6;

/**
 * Places for nodes.
 *
 * nodes: [{id, inputs: [id, ...]}, ...], inputs before those that read them.
 * Returns {at: Map id -> {layer, row}, ways: Map "from>to" -> [{layer, row}, ...], layers, rows}; rows are
 * counted from 0 and may be fractions; a way has the places in between where an edge passes a layer.
 */
export function layered(nodes) {
  const layers = [];
  const layerOf = new Map();
  const put = (id, layer) => {
    layerOf.set(id, layer);
    (layers[layer] ??= []).push(id);
  };
  for (const node of nodes) put(node.id, Math.max(-1, ...node.inputs.map((input) => layerOf.get(input))) + 1);
  const { before, after, ways } = edges(nodes, layerOf, put);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const order = sweep % 2 === 0 ? layers.keys() : [...layers.keys()].reverse();
    for (const layer of order) sort(layers, layer, sweep % 2 === 0 ? before : after);
  }
  const rows = rowsOf(layers, before, after);
  const at = new Map([...layerOf].map(([id, layer]) => [id, { layer, row: rows.get(id) }]));
  return {
    at,
    ways: new Map([...ways].map(([way, passed]) => [way, passed.map((id) => at.get(id))])),
    layers: layers.length,
    rows: Math.max(0, ...rows.values()) + 1,
  };
}

/** Who is next to whom, with a place in each layer that an edge passes. */
function edges(nodes, layerOf, put) {
  const [before, after, ways] = [new Map(), new Map(), new Map()];
  const join = (from, to) => {
    before.set(to, [...(before.get(to) ?? []), from]);
    after.set(from, [...(after.get(from) ?? []), to]);
  };
  for (const node of nodes) {
    for (const input of node.inputs) {
      const passed = [];
      for (let layer = layerOf.get(input) + 1; layer < layerOf.get(node.id); layer += 1) {
        const id = `${input}>${node.id}@${layer}`;
        put(id, layer);
        passed.push(id);
      }
      [input, ...passed].forEach((from, index) => join(from, passed[index] ?? node.id));
      ways.set(`${input}>${node.id}`, passed);
    }
  }
  return { before, after, ways };
}

const mean = (found) => found.reduce((a, b) => a + b, 0) / found.length;

/** Order a layer by the middle of each node's neighbours. */
function sort(layers, layer, neighbours) {
  const places = new Map(layers.flatMap((ids) => ids.map((id, index) => [id, index])));
  const wanted = new Map(layers[layer].map((id) => {
    const near = neighbours.get(id);
    return [id, near ? mean(near.map((other) => places.get(other))) : places.get(id)];
  }));
  layers[layer].sort((a, b) => wanted.get(a) - wanted.get(b) || places.get(a) - places.get(b));
}

/** Rows near those of the neighbours, at least one apart within a layer. */
function rowsOf(layers, before, after) {
  const rows = new Map(layers.flatMap((ids) => ids.map((id, index) => [id, index])));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forward = sweep % 2 === 1;
    for (const ids of forward ? layers : [...layers].reverse()) {
      const near = (id) => (forward ? before : after).get(id);
      const wanted = ids.map((id) => (near(id) ? mean(near(id).map((other) => rows.get(other))) : rows.get(id)));
      apart(wanted).forEach((row, index) => rows.set(ids[index], row));
    }
  }
  return withoutGaps(rows);
}

/** The rows nearest to those that are wanted of which each is at least one below the one before: blocks in each other's way share. */
function apart(wanted) {
  const blocks = [];
  wanted.forEach((row, index) => {
    let block = { sum: row - index, size: 1 };
    while (blocks.length > 0 && blocks[blocks.length - 1].sum / blocks[blocks.length - 1].size > block.sum / block.size) {
      const before = blocks.pop();
      block = { sum: before.sum + block.sum, size: before.size + block.size };
    }
    blocks.push(block);
  });
  return blocks.flatMap(({ sum, size }) => Array(size).fill(sum / size)).map((row, index) => row + index);
}

/** The same rows from 0 on, with what no layer uses left out. */
function withoutGaps(rows) {
  const used = [...new Set(rows.values())].sort((a, b) => a - b);
  const moved = new Map();
  used.forEach((row, index) => moved.set(row, index === 0 ? 0 : moved.get(used[index - 1]) + Math.min(1, row - used[index - 1])));
  return new Map([...rows].map(([id, row]) => [id, moved.get(row)]));
}
