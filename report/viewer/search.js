// The search field: words that name ops. Words of one sort are alternatives, of different sorts
// conditions: "F B s2 m3-7" is F or B, of stage 2, of microbatches 3 to 7.

const SORTS = [
  ["rank", /^(?:r|rank)(\d+)(?:-(\d+))?$/i],
  ["stage", /^(?:s|stage)(\d+)(?:-(\d+))?$/i],
  ["microbatch", /^(?:m|mb|#)?(\d+)(?:-(\d+))?$/i],
];
const DIRECTION = /^(down|first|up|second)$/i;
const WHOLE_OP = /^(?:(\d*)(~))?(\d+)([A-Z_]+?)(\d+)$/i;

// {test(lane, instruction), unknown}: unknown is the first word that names nothing, test null where
// there is nothing to look for.
function parseQuery(text) {
  const wanted = { rank: [], stage: [], microbatch: [], kind: [], direction: [], op: [] };
  const words = text.split(/[\s,;]+/).filter((word) => word !== "");
  for (const word of words) {
    if (!addWord(word, wanted)) return { test: null, unknown: word };
  }
  if (words.length === 0) return { test: null, unknown: null };
  return { test: (lane, i) => matches(lane, i, wanted), unknown: null };
}

function addWord(word, wanted) {
  const token = word.toUpperCase();
  if (token in KINDS) return wanted.kind.push(token);
  if (DIRECTION.test(word)) return wanted.direction.push(/^(up|second)$/i.test(word) ? 1 : 0);
  for (const [sort, pattern] of SORTS) {
    const [, first, last] = pattern.exec(word) ?? [];
    if (first !== undefined) return wanted[sort].push([Number(first), Number(last ?? first)]);
  }
  const [, replica, tilde, stage, kind, microbatch] = WHOLE_OP.exec(token) ?? [];
  if (!(kind in KINDS)) return 0;
  return wanted.op.push(opText({ token: kind, stage: Number(stage),
    replica: tilde ? Number(replica || 1) : 0, microbatch: Number(microbatch) }));
}

function matches(lane, i, { rank, stage, microbatch, kind, direction, op }) {
  const within = (ranges, value) =>
    ranges.length === 0 || ranges.some(([low, high]) => value >= low && value <= high);
  if (!within(rank, lane.rank)) return false;
  for (let k = lane.opStart[i]; k < lane.opStart[i + 1]; ++k) {
    const template = lane.templates[lane.template[k]], number = lane.microbatch[k];
    if (within(stage, template.stage) && within(microbatch, number) &&
        (kind.length === 0 || kind.includes(template.token)) &&
        (direction.length === 0 || direction.includes(directionOf(template.replica))) &&
        (op.length === 0 || op.includes(opText({ ...template, microbatch: number })))) {
      return true;
    }
  }
  return false;
}

// The compute ops a layer keeps, over all runs.
const foundIn = (runs, layer) => runs.reduce((sum, run) => sum + run.lanes.reduce(
  (ops, lane) => ops + layer.of(lane.compute).count, 0), 0);

// The next compute op a layer keeps after (or, backwards, before) `current` ({lane, instruction} or
// null) in order of time; after the last comes the first. Null where there is none.
function nextFound(runs, layer, current, backwards = false) {
  const before = (a, b) => a[0] - b[0] || a[1] - b[1];
  const sign = backwards ? -1 : 1;
  const here = current && [current.lane.begin[current.instruction],
    runs.indexOf(current.lane.run) * 65536 + current.lane.rank];
  let next = null, first = null;
  runs.forEach((run, r) => run.lanes.forEach((lane) => {
    const boxes = layer.of(lane.compute);
    const consider = (i) => {
      if (i < 0 || i >= boxes.count) return;
      const place = [boxes.begin[i], r * 65536 + lane.rank];
      const found = { place, lane, instruction: boxes.index[i] };
      if (!first || sign * before(place, first.place) < 0) first = found;
      if (here && sign * before(place, here) > 0 &&
          (!next || sign * before(place, next.place) < 0)) next = found;
    };
    consider(backwards ? boxes.count - 1 : 0);
    if (!here) return;
    const near = lowerBound(boxes.begin, here[0]);
    for (let i = near - 1; i <= near + 1; ++i) consider(i);
  }));
  return next ?? first;
}
