/* What shares the map's axis: overview, load, queues, tiers. */

const LANE = 24;

/* The largest value in every pixel column, of a curve whose y[i] holds from x[i] to x[i + 1]. */
function columnMaxima(curve, columns, x0, x1, last) {
  const out = new Float64Array(columns), {x, y} = curve, scale = columns / (x1 - x0);
  for (let i = Math.max(0, firstAfter(x, x0) - 1); i < x.length && x[i] < x1; i++) {
    const end = i + 1 < x.length ? x[i + 1] : last;
    const from = Math.max(0, Math.floor((x[i] - x0) * scale));
    const to = Math.min(columns, Math.max(from + 1, Math.ceil((end - x0) * scale)));
    for (let k = from; k < to; k++) if (y[i] > out[k]) out[k] = y[i];
  }
  return out;
}

/* Columns as a filled area, or as a line. */
function drawColumns(context, columns, left, bottom, scale, colour, fill) {
  context.beginPath();
  context.moveTo(left, bottom);
  for (let k = 0; k < columns.length; k++) {
    const y = bottom - columns[k] * scale;
    context.lineTo(left + k, y);
    context.lineTo(left + k + 1, y);
  }
  context.lineTo(left + columns.length, bottom);
  if (fill) { context.fillStyle = colour; context.fill(); } else { context.strokeStyle = colour; context.lineWidth = 1.3; context.stroke(); }
}

function fade(hex, alpha) { return `rgb(${rgb(hex).join(' ')} / ${alpha})`; }

/* ---- overview ---- */

const overview = document.getElementById('overview');

function drawOverview() {
  const c = openCanvas(overview), {context, plot, height} = c, whole = axis().length;
  const columns = columnMaxima(axis().after, Math.round(plot), 0, whole, whole), most = Math.max(1, ...columns);
  context.fillStyle = cssColour('--plot');
  context.fillRect(GUTTER, 0, plot, height);
  drawColumns(context, columns, GUTTER, height, (height - 5) / most, fade('#56b4e9', 0.75), true);
  const from = GUTTER + view.x0 / whole * plot, to = GUTTER + view.x1 / whole * plot;
  context.fillStyle = isDark() ? 'rgb(0 0 0 / .55)' : 'rgb(255 255 255 / .65)';
  context.fillRect(GUTTER, 0, from - GUTTER, height);
  context.fillRect(to, 0, GUTTER + plot - to, height);
  context.strokeStyle = cssColour('--accent');
  context.lineWidth = 1.5;
  context.strokeRect(from + 0.75, 0.75, Math.max(3, to - from - 1.5), height - 1.5);
  context.fillStyle = cssColour('--muted');
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  context.fillText('whole step', GUTTER - 7, height / 2);
  overview.setAttribute('aria-valuenow', Math.round((view.x0 + view.x1) / 2 / whole * 100));
}

/* ---- load ---- */

const load = document.getElementById('load');
const beforeColour = '#8a96a1', afterColour = '#0072b2';

/* Where the compute queue goes from one phase to the next; too many changes are no help. */
const phases = (() => {
  const out = [];
  let before = -1;
  for (let i = 0; i < M.actions; i++) {
    if (M.action.kind[i] !== RUN) continue;
    const phase = M.op.phase[M.action.target[i]];
    if (phase !== before) out.push({action: i, name: M.meta.phases[phase]});
    before = phase;
  }
  return out.length > 12 ? [] : out;
})();

function drawPhases(c, bottom) {
  const {context} = c;
  context.textAlign = 'left';
  context.textBaseline = 'top';
  phases.forEach((phase, k) => {
    const x = c.x(axis().actionBegin[phase.action]);
    const end = k + 1 < phases.length ? c.x(axis().actionBegin[phases[k + 1].action]) : c.x(axis().length);
    if (end < GUTTER || x > GUTTER + c.plot) return;
    context.fillStyle = cssColour('--line');
    if (x > GUTTER + 1) context.fillRect(x - 0.5, 0, 1, bottom);
    const left = Math.max(x, GUTTER), text = fitText(context, phase.name, Math.min(end, GUTTER + c.plot) - left - 8);
    context.fillStyle = cssColour('--muted');
    if (text) context.fillText(text, left + 5, 3);
  });
}

function drawLoad() {
  const c = openCanvas(load), {context, plot, height} = c, bottom = height - 1, n = Math.round(plot);
  const after = columnMaxima(axis().after, n, view.x0, view.x1, axis().length);
  const before = columnMaxima(axis().before, n, view.x0, view.x1, axis().length);
  const high = 1.16 * Math.max(M.meta.plan.peak_bytes, M.meta.program.peak_bytes, 1), scale = (bottom - 1) / high;
  context.fillStyle = cssColour('--plot');
  context.fillRect(GUTTER, 0, plot, bottom);
  const accent = isDark() ? '#56b4e9' : afterColour;
  context.save();
  context.beginPath();
  context.rect(GUTTER, 0, plot, bottom);
  context.clip();
  drawColumns(context, before, GUTTER, bottom, scale, fade(beforeColour, isDark() ? 0.3 : 0.25), true);
  drawColumns(context, after, GUTTER, bottom, scale, fade(accent, 0.45), true);
  drawColumns(context, before, GUTTER, bottom + 2, scale, beforeColour, false);
  drawColumns(context, after, GUTTER, bottom + 2, scale, accent, false);
  context.restore();
  drawPhases(c, bottom);
  drawYAxis(c, 0, bottom, 0, high);
  if (budget !== null && budget < high) drawDashes(c, bottom - budget * scale, cssColour('--warn'));
  drawPeak(c, bottom, scale, accent, [before, after]);
}

function peakX() { return view.axis === 'issue' ? M.meta.plan.peak_action + 0.5 : view.axis === 'time' ? M.meta.plan.peak_ns : M.meta.ran.peak_ns; }

/* How many columns of a box the curves, or the line of the budget, run through. */
function crossings(box, curves, bottom, scale) {
  const runs = y => y > box.top - 2 && y < box.bottom + 2;
  let n = budget !== null && runs(bottom - budget * scale) ? box.right - box.left : 0;
  for (const columns of curves)
    for (let k = Math.floor(box.left - GUTTER); k < box.right - GUTTER; k++) {
      const y = bottom - columns[k] * scale, next = bottom - columns[Math.min(k + 1, columns.length - 1)] * scale;
      if (runs(y) || (Math.min(y, next) < box.top && Math.max(y, next) > box.bottom)) n++;
    }
  return n;
}

/* Beside the peak, where the curves and the budget leave most room: right or left of it, above, below, or at the top, under the phases. */
function placePeak(c, x, y, width, bottom, scale, curves) {
  const height = 14;
  let best = null, least = Infinity;
  for (const top of [y - height - 5, y + 4, 18, y + 22, bottom - height - 2])
    for (const left of [x + 6, x - width - 6]) {
      const box = {left, right: left + width, top, bottom: top + height};
      if (left < GUTTER || box.right > GUTTER + c.plot || top < 18 || box.bottom > bottom) continue;
      const n = crossings(box, curves, bottom, scale);
      if (n < least) [best, least] = [box, n];
    }
  return best;
}

function drawPeak(c, bottom, scale, colour, curves) {
  const {context} = c, x = c.x(peakX()), y = bottom - M.meta.plan.peak_bytes * scale;
  written.load = null;
  if (M.meta.plan.peak_action < 0 || x < GUTTER || x > GUTTER + c.plot) return;
  const text = 'peak ' + showBytes(M.meta.plan.peak_bytes);
  context.fillStyle = colour;
  context.beginPath();
  context.arc(x, y, 3.5, 0, 2 * Math.PI);
  context.fill();
  context.font = '600 11px system-ui, "Liberation Sans", sans-serif';
  written.load = placePeak(c, x, y, context.measureText(text).width + 10, bottom, scale, curves);
  if (written.load) drawPlate(context, text, written.load, cssColour('--ink'));
}

function valueAt(curve, x) {
  const i = firstAfter(curve.x, x) - 1;
  return i < 0 ? 0 : curve.y[i];
}

/* ---- queues ---- */

const queues = document.getElementById('queues');

function actionColour(i) {
  const kind = M.action.kind[i];
  if (kind === RUN) return ACTION_COLOURS[M.meta.phases[M.op.phase[M.action.target[i]]]];
  return [null, ACTION_COLOURS.again, ACTION_COLOURS.save, ACTION_COLOURS.load, ACTION_COLOURS.relocate][kind];
}

let hatch = null;
function waitPattern(context) {
  if (hatch && hatch.dark === isDark()) return hatch.pattern;
  const tile = document.createElement('canvas'), size = 6;
  tile.width = tile.height = size;
  const t = tile.getContext('2d');
  t.strokeStyle = isDark() ? '#ff9d5c' : '#b34700';
  t.lineWidth = 1.2;
  t.beginPath();
  for (const d of [-size, 0, size]) { t.moveTo(d, size); t.lineTo(d + size, 0); }
  t.stroke();
  hatch = {dark: isDark(), pattern: context.createPattern(tile, 'repeat')};
  return hatch.pattern;
}

/* Waits are drawn where they cost time, on compute; that a channel has nothing to do yet is no loss. Actions that fall into a pixel that is taken already are skipped, so a lane draws as many as there are pixels. */
function drawLane(c, lane, top) {
  const {context} = c, {actionBegin, actionEnd, wait} = axis();
  let taken = -1;
  for (const i of lane.rows) {
    if (actionEnd[i] < view.x0 || actionBegin[i] > view.x1) continue;
    const from = Math.max(GUTTER, c.x(actionBegin[i])), to = Math.min(GUTTER + c.plot, c.x(actionEnd[i]));
    if (wait && wait[i] > 0) {
      const since = Math.max(GUTTER, c.x(actionBegin[i] - wait[i]));
      if (from - since >= 1 && lane.queue === 0) { context.fillStyle = waitPattern(context); context.fillRect(since, top + 4, from - since, LANE - 8); }
    }
    if (to - from < 1 && Math.floor(from) === taken) continue;
    taken = Math.floor(from);
    context.fillStyle = actionColour(i);
    context.fillRect(to - from < 1 ? taken : from, top + 3, Math.max(1, to - from - (to - from > 4 ? 0.7 : 0)), LANE - 6);
    if (to - from > 60) {
      context.fillStyle = isLight(actionColour(i)) ? '#101820' : '#ffffff';
      context.textAlign = 'left';
      context.fillText(fitText(context, actionName(i), to - from - 8), from + 4, top + LANE / 2);
    }
  }
}

function drawQueues() {
  const height = M.lanes.length * LANE;
  queues.style.height = height + 'px';
  const c = openCanvas(queues, height), {context, plot} = c;
  M.lanes.forEach((lane, k) => {
    context.fillStyle = cssColour('--plot');
    context.fillRect(GUTTER, k * LANE + 1, plot, LANE - 2);
    context.fillStyle = cssColour('--muted');
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.fillText(fitText(context, lane.name, GUTTER - 10), GUTTER - 7, k * LANE + LANE / 2);
    drawLane(c, lane, k * LANE);
  });
}

/* The action of a lane at x; -1 if it stands still there. */
function actionAt(lane, x) {
  const {actionBegin, actionEnd, wait} = axis(), rows = lane.rows;
  let low = 0, high = rows.length;
  while (low < high) {
    const middle = low + high >> 1;
    if (actionEnd[rows[middle]] > x) high = middle; else low = middle + 1;
  }
  if (low === rows.length) return -1;
  const i = rows[low], since = wait ? actionBegin[i] - wait[i] : actionBegin[i];
  return since <= x ? i : -1;
}

/* ---- tiers ---- */

const tiers = document.getElementById('tiers');
const TIER_HEIGHT = 56;

function drawTiers() {
  document.getElementById('tiers-figure').hidden = !M.tiers.length;
  if (!M.tiers.length) return;
  const height = M.tiers.length * TIER_HEIGHT;
  tiers.style.height = height + 'px';
  const c = openCanvas(tiers, height), {context, plot} = c;
  M.tiers.forEach((tier, k) => {
    const top = k * TIER_HEIGHT + 2, bottom = (k + 1) * TIER_HEIGHT - 4;
    const columns = columnMaxima(axis().tiers[k], Math.round(plot), view.x0, view.x1, axis().length);
    context.fillStyle = cssColour('--plot');
    context.fillRect(GUTTER, top, plot, bottom - top);
    drawColumns(context, columns, GUTTER, bottom, (bottom - top - 3) / tier.bytes, fade(POLICY_COLOURS[(k + 1) % 8], 0.75), true);
    context.fillStyle = cssColour('--muted');
    context.textAlign = 'right';
    context.textBaseline = 'top';
    context.fillText(fitText(context, tier.name, GUTTER - 10), GUTTER - 7, top + 4);
    context.fillText(showBytes(tier.bytes), GUTTER - 7, top + 19);
    if (tier.capacity_bytes !== null) context.fillText('of ' + showBytes(tier.capacity_bytes), GUTTER - 7, top + 34);
  });
}

/* ---- planned and measured, one above the other ---- */

/* The whole step on one scale: per queue what the plan expects, and below it what happened. */
function drawVersus() {
  const canvas = document.getElementById('versus');
  if (!M.ran) return;
  const half = 13, gap = 9, height = M.lanes.length * (2 * half + gap) + 20;
  canvas.style.height = height + 'px';
  const c = openCanvas(canvas, height), {context, plot} = c;
  const whole = Math.max(M.axes.time.length, M.axes.measured.length), x = v => GUTTER + v / whole * plot;
  context.textBaseline = 'middle';
  M.lanes.forEach((lane, k) => {
    const top = k * (2 * half + gap);
    context.fillStyle = cssColour('--muted');
    context.textAlign = 'right';
    context.fillText(fitText(context, lane.name, GUTTER - 10), GUTTER - 7, top + half);
    ['time', 'measured'].forEach((name, row) => {
      const {actionBegin, actionEnd, length} = M.axes[name], y = top + row * half;
      context.fillStyle = cssColour('--plot');
      context.fillRect(GUTTER, y, x(length) - GUTTER, half - 1);
      for (const i of lane.rows) {
        context.fillStyle = actionColour(i);
        context.fillRect(x(actionBegin[i]), y, Math.max(0.6, x(actionEnd[i]) - x(actionBegin[i])), half - 1);
      }
    });
  });
  drawWholeAxis(c, height, whole, x);
}

/* Below lanes that show a whole step. */
function drawWholeAxis(c, height, whole, x) {
  const {context, plot} = c;
  context.fillStyle = cssColour('--muted');
  context.textAlign = 'center';
  for (const v of ticks(0, whole, plot / 110, false)) {
    const text = v === 0 ? '0' : showTime(v), room = context.measureText(text).width / 2;
    context.fillRect(x(v) - 0.5, height - 20, 1, 4);
    context.fillText(text, Math.min(Math.max(x(v), GUTTER + room), GUTTER + plot - room), height - 8);
  }
}
