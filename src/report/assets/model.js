/* The report in memory, and what it says in words. Ids that travel as id + 1 become id, or -1. */

const RUN = 0, RERUN = 1, SAVE = 2, LOAD = 3, RELOCATE = 4;
const INPUT = 0, SWAP = 1, RECOMPUTE = 2;

const M = readReport();

for (const [table, column] of [['tensor', 'producer'], ['op', 'first'], ['action', 'cause'], ['stay', 'tensor'],
  ['choice', 'before'], ['choice', 'after'], ['choice', 'tier'], ['choice', 'out'], ['choice', 'in'],
  ['choice', 'last'], ['choice', 'next'], ['rank', 'cause'], ['rank', 'peer']]) {
  const values = M[table][column];
  for (let i = 0; i < values.length; i++) values[i]--;
}

if (M.ran) M.ran.cause = M.ran.cause.map(id => id - 1);

M.actions = M.action.kind.length;
M.stays = M.stay.tensor.length;
M.choices = M.choice.kind.length;
M.step = M.meta.plan.step_ns;

/* The axes: where stays and actions begin and end, and how far the axis goes. */
function sums(a, b) { return a.map((value, i) => value + b[i]); }
M.axes = {
  issue: {
    begin: M.stay.begin, end: sums(M.stay.begin, M.stay.span), length: Math.max(1, M.actions),
    actionBegin: M.action.kind.map((_, i) => i), actionEnd: M.action.kind.map((_, i) => i + 1),
    copyBegin: M.copy.begin, copyEnd: sums(M.copy.begin, M.copy.span),
  },
  time: {
    begin: M.stay.from, end: sums(M.stay.from, M.stay.time), length: Math.max(1, M.step),
    actionBegin: M.action.start, actionEnd: sums(M.action.start, M.action.time),
    copyBegin: M.copy.from, copyEnd: sums(M.copy.from, M.copy.time), wait: M.action.wait, cause: M.action.cause,
  },
};
if (M.ran) M.axes.measured = {
  begin: M.ran.from, end: sums(M.ran.from, M.ran.stayed), length: Math.max(1, M.meta.ran.step_ns),
  actionBegin: M.ran.start, actionEnd: sums(M.ran.start, M.ran.time),
  copyBegin: M.ran.copied, copyEnd: sums(M.ran.copied, M.ran.kept), wait: M.ran.wait, cause: M.ran.cause,
};

/* Rows by tensor: starts[t] .. starts[t + 1] in `rows`, in the order of the table. */
function groupByTensor(tensors) {
  const starts = new Uint32Array(M.tensor.bytes.length + 1), rows = new Uint32Array(tensors.length);
  for (const t of tensors) if (t >= 0) starts[t + 1]++;
  for (let t = 1; t < starts.length; t++) starts[t] += starts[t - 1];
  const next = starts.slice();
  tensors.forEach((t, i) => { if (t >= 0) rows[next[t]++] = i; });
  return t => rows.subarray(starts[t], starts[t + 1]);
}
const staysOf = groupByTensor(M.stay.tensor);
const choicesOf = groupByTensor(M.choice.tensor);

M.stayClass = M.stay.tensor.map(t => t < 0 ? M.meta.classes.indexOf('workspace') : M.tensor.class[t]);

/* ---- curves: {x, y}, y[i] holds from x[i] on ---- */

/* Intervals with weights, summed up. */
function sumIntervals(begin, end, weight, chosen) {
  const events = [];
  for (const i of chosen) if (end[i] > begin[i] && weight[i] > 0) events.push([begin[i], weight[i]], [end[i], -weight[i]]);
  events.sort((a, b) => a[0] - b[0]);
  const x = [], y = [];
  let load = 0;
  for (let i = 0; i < events.length; i++) {
    load += events[i][1];
    if (i + 1 < events.length && events[i + 1][0] === events[i][0]) continue;
    x.push(events[i][0]);
    y.push(load);
  }
  return {x: Float64Array.from(x), y: Float64Array.from(y)};
}

function issueLoad() {
  const y = new Float64Array(M.actions + 1);
  for (let i = 0; i < M.stays; i++) {
    y[M.stay.begin[i]] += M.stay.bytes[i];
    y[M.axes.issue.end[i]] -= M.stay.bytes[i];
  }
  for (let i = 1; i <= M.actions; i++) y[i] += y[i - 1];
  return {x: M.axes.issue.actionBegin, y: y.subarray(0, M.actions)};
}

/* What policy liveness needs while each op runs, where this plan runs it first. */
function loadBefore(starts) {
  const x = [], y = [];
  M.op.first.forEach((action, op) => {
    if (action < 0) return;
    x.push(starts[action]);
    y.push(M.op.load[op]);
  });
  return {x: Float64Array.from(x), y: Float64Array.from(y)};
}

M.axes.issue.after = issueLoad();
M.axes.time.after = {x: M.load.at, y: M.load.bytes};
if (M.ran) M.axes.measured.after = {x: M.ran.at, y: M.ran.bytes};
M.tiers = M.meta.machine.tiers.map((tier, index) => ({...tier, index})).filter(t => t.kind !== 'client' && t.bytes > 0);
for (const axis of Object.values(M.axes)) {
  axis.before = loadBefore(axis.actionBegin);
  axis.tiers = M.tiers.map(tier => {
    const rows = [];
    M.copy.tier.forEach((t, i) => { if (t === tier.index) rows.push(i); });
    return sumIntervals(axis.copyBegin, axis.copyEnd, M.copy.bytes, rows);
  });
}

/* Actions per queue, in order. */
M.lanes = M.meta.machine.queues.map((name, queue) => ({name, queue, rows: []}));
M.action.queue.forEach((q, i) => M.lanes[q].rows.push(i));
M.lanes = M.lanes.filter(lane => lane.rows.length || lane.queue === 0);

/* ---- words ---- */

function showBytes(bytes) {
  const value = bytes / 1048576;
  if (bytes > 0 && value < 0.0005) return bytes + '\u00a0B';
  return value.toFixed(bytes === 0 ? 0 : value < 1 ? 3 : value < 100 ? 2 : 1) + '\u00a0MiB';
}

function showTime(ns) {
  if (ns < 1e3) return ns.toFixed(0) + '\u00a0ns';
  if (ns < 1e6) return (ns / 1e3).toFixed(1) + '\u00a0µs';
  if (ns < 1e9) return (ns / 1e6).toFixed(ns < 1e7 ? 2 : 1) + '\u00a0ms';
  return (ns / 1e9).toFixed(2) + '\u00a0s';
}

function plural(n, one, many) { return n.toLocaleString('en') + ' ' + (n === 1 ? one : many || one + 's'); }

function opName(op) { return op < 0 ? 'the start' : M.op.name[op] || 'op ' + op; }

function actionName(i) {
  const kind = M.action.kind[i], target = M.action.target[i];
  if (kind === RUN) return opName(target);
  if (kind === RERUN) return opName(target) + ' (again)';
  return (kind === SAVE ? 'save ' : kind === LOAD ? 'load ' : 'relocate ') + (M.tensor.name[target] || 'tensor ' + target);
}

/* The op that makes a workspace is the one that runs as it begins. */
function stayName(i) {
  const tensor = M.stay.tensor[i];
  if (tensor >= 0) return M.tensor.name[tensor] || 'tensor ' + tensor;
  return actionName(M.stay.begin[i]) + ' · workspace';
}

function stayPhase(i) {
  const tensor = M.stay.tensor[i], begin = M.stay.begin[i];
  const op = tensor >= 0 ? M.tensor.producer[tensor] : M.action.kind[begin] <= RERUN ? M.action.target[begin] : -1;
  return op < 0 ? 'from the start' : M.meta.phases[M.op.phase[op]];
}

function shapeOf(tensor) {
  if (tensor < 0 || !M.tensor.n.length || !M.tensor.n[tensor]) return '';
  const sizes = [M.tensor.n, M.tensor.c, M.tensor.h, M.tensor.w].map(column => column[tensor]);
  while (sizes.length > 1 && sizes[sizes.length - 1] === 1) sizes.pop();
  return sizes.join(' × ');
}

function tierName(tier) { return tier < 0 ? '' : M.meta.machine.tiers[tier].name; }

function choiceTitle(choice) {
  const kind = M.choice.kind[choice], tier = tierName(M.choice.tier[choice]);
  if (kind === INPUT) return 'Input';
  if (kind === RECOMPUTE) return 'Computed again';
  if (M.choice.before[choice] < 0) return 'Waits in ' + tier;
  return M.choice.after[choice] < 0 ? 'Moved to ' + tier : 'Swapped to ' + tier;
}

/* Why: what the absence frees and when, and what it costs. */
function choiceReason(choice) {
  const kind = M.choice.kind[choice], tensor = M.choice.tensor[choice], last = M.choice.last[choice], next = M.choice.next[choice];
  const bytes = showBytes(M.tensor.bytes[tensor]), cost = showTime(M.choice.cost[choice]), wait = M.choice.wait[choice];
  const waits = wait > 0 ? `compute waits ${showTime(wait)} for it` : 'compute never waits for it';
  if (kind === INPUT) return `Comes from the client in ${cost}; ${waits}.`;
  const gap = last >= 0 && next >= 0 ? `Not used between “${actionName(last)}” and “${actionName(next)}”`
    : next >= 0 ? `Not used before “${actionName(next)}”` : last >= 0 ? `Not used after “${actionName(last)}”` : 'Not used meanwhile';
  const peak = M.choice.peak[choice] ? ', when the unconstrained load peaks' : '';
  const price = kind === RECOMPUTE ? `Running “${opName(M.action.target[M.choice.in[choice]])}” again costs ${cost}` : `The transfers take ${cost}; ${waits}`;
  return `${gap}: ${bytes} are free for ${showTime(M.choice.away[choice])}${peak}. ${price}.`;
}

function stayReasons(stay) {
  const tensor = M.stay.tensor[stay];
  if (tensor < 0) return ['Scratch memory of one op; gone when the op is done.'];
  const out = [];
  for (const c of choicesOf(tensor))
    if (M.choice.before[c] === stay || M.choice.after[c] === stay) out.push(`${choiceTitle(c)}. ${choiceReason(c)}`);
  if (!out.length) out.push(M.tensor.start[tensor] === 1 && M.tensor.keep[tensor]
    ? 'Kept: in use from step to step.' : 'Kept from its first use to its last: the plan needed nothing else.');
  return out;
}
