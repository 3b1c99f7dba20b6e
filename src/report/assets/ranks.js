/* Several ranks, as their last step ran, on one clock: a lane per queue of each, and what compute waited for. */

const RANK_LANE = 15, RANK_GAP = 8;

function rankName(rank) { return `rank ${rank}`; }

/* Queues that did something, rank by rank, with the rows of their actions in order. */
const rankLanes = (() => {
  const ranks = M.meta.ranks || [], lanes = ranks.map(rank => rank.queues.map((name, queue) => ({name, queue, rows: []})));
  M.rank.of.forEach((rank, i) => lanes[rank][M.rank.queue[i]].rows.push(i));
  let top = 0;
  return lanes.flatMap((queues, rank) => {
    const used = queues.filter(lane => lane.rows.length || lane.queue === 0);
    used.forEach((lane, k) => { lane.rank = rank; lane.first = k === 0; lane.top = top + k * RANK_LANE; });
    top += used.length * RANK_LANE + RANK_GAP;
    return used;
  });
})();

const ranksEnd = () => Math.max(1, ...M.meta.ranks.map(rank => rank.begin_ns + rank.step_ns));

function rankColour(i) {
  const kind = M.rank.kind[i];
  return kind === RUN ? ACTION_COLOURS[M.meta.phases[M.rank.phase[i]]]
    : [null, ACTION_COLOURS.again, ACTION_COLOURS.save, ACTION_COLOURS.load, ACTION_COLOURS.relocate][kind];
}

function drawRankLane(c, lane, x) {
  const {context} = c, y = lane.top, height = RANK_LANE - 2;
  context.fillStyle = cssColour('--plot');
  context.fillRect(GUTTER, y, c.plot, height);
  context.fillStyle = cssColour(lane.first ? '--ink' : '--muted');
  context.textAlign = 'right';
  context.fillText(fitText(context, lane.first ? rankName(lane.rank) : lane.name, GUTTER - 10), GUTTER - 7, y + height / 2);
  for (const i of lane.rows) {
    const from = x(M.rank.start[i]), since = x(M.rank.start[i] - M.rank.wait[i]);
    if (lane.queue === 0 && from - since >= 1) { context.fillStyle = waitPattern(context); context.fillRect(since, y + 2, from - since, height - 4); }
    context.fillStyle = rankColour(i);
    context.fillRect(from, y, Math.max(0.6, x(M.rank.start[i] + M.rank.time[i]) - from), height);
  }
}

function drawRanks() {
  const canvas = $('ranks-queues');
  if (!rankLanes.length) return;
  const height = rankLanes[rankLanes.length - 1].top + RANK_LANE + 20;
  canvas.style.height = height + 'px';
  const c = openCanvas(canvas, height), {context, plot} = c, whole = ranksEnd(), x = v => GUTTER + v / whole * plot;
  context.textBaseline = 'middle';
  for (const lane of rankLanes) drawRankLane(c, lane, x);
  drawWholeAxis(c, height, whole, x);
}

/* What the pointer is over; a wait belongs to the action that it ends with. */
function rankActionAt(event) {
  const canvas = $('ranks-queues'), box = canvas.getBoundingClientRect(), y = event.clientY - box.top;
  const at = (event.clientX - box.left - GUTTER) / Math.max(1, canvas.clientWidth - GUTTER - MARGIN) * ranksEnd();
  const lane = rankLanes.find(l => y >= l.top && y < l.top + RANK_LANE);
  if (!lane) return -1;
  const i = lane.rows.find(row => M.rank.start[row] + M.rank.time[row] > at);
  return i !== undefined && M.rank.start[i] - M.rank.wait[i] <= at ? i : -1;
}

function rankActionName(i) {
  const peer = M.rank.peer[i], words = M.rank.name[i] || 'an op';
  return peer < 0 ? words : `${words} (${M.rank.kind[i] === LOAD ? 'from' : 'to'} rank ${peer})`;
}

function rankTip(event) {
  const i = rankActionAt(event);
  if (i < 0) return null;
  const lines = [`${rankName(M.rank.of[i])}: ${rankActionName(i)}`, `${showTime(M.rank.start[i])} + ${showTime(M.rank.time[i])}`];
  if (M.rank.wait[i] > 0) lines.push(`after ${showTime(M.rank.wait[i])} of waiting` + (M.rank.cause[i] >= 0 ? ` for ${rankActionName(M.rank.cause[i])}` : ''));
  return lines.map((line, k) => make(k ? 'div' : 'b', {}, line));
}

function writeRanks() {
  const {ranks} = M.meta;
  $('ranks').hidden = !ranks;
  if (!ranks) return;
  const waits = rank => { const list = ranks.map(() => 0); for (const [peer, ns] of rank.waits) list[peer] = ns; return list; };
  const share = (ns, rank) => ns > 0 ? `${showTime(ns)} (${percent(ns, Math.max(1, rank.step_ns))})` : '';
  $('ranks-lede').textContent = `The last step of ${plural(ranks.length, 'rank')}, on one clock. Hatched: compute stands still. The table says for whom, until the last message of the step has come; a wait for messages with a rank is longest where that rank is late.`;
  fillTable($('ranks-table'), ['', 'Host', 'Began', 'Step', 'Compute, busy', ...ranks.map((_, i) => `Waits for rank ${i}`), 'Other waits'],
    ranks.map((rank, i) => [rankName(i), rank.host, '+' + showTime(rank.begin_ns), showTime(rank.step_ns), share(rank.compute_ns, rank), ...waits(rank).map(ns => share(ns, rank)), share(rank.other_wait_ns, rank)]));
}
