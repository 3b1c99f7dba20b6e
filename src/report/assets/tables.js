/* Everything that is text: figures, details, legends, tables, the frontier. Names come from files, so they are only ever
 * set as text, never as markup. */

const $ = id => document.getElementById(id);

/* make('td', {class: 'n'}, 'text', node, ...) */
function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'style') node.style.cssText = value;
    else if (value !== undefined && value !== false) node.setAttribute(name, value);
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}

function percent(part, whole) { return (100 * part / whole).toFixed(1) + ' %'; }

/* ---- the top: what was measured where there is a measurement, else what is predicted ---- */

function found(key) { return M.ran ? M.meta.ran[key] : M.meta.plan[key]; }
/* A guess: ops far slower than their planned costs, as on a machine that something else had as well. */
function wasBusy() { return M.ran && M.meta.ran.compute_ns > 1.5 * M.meta.plan.compute_ns; }

function writeTop() {
  const {plan, machine, program} = M.meta;
  let swaps = 0, again = 0;
  for (const kind of M.choice.kind) { swaps += kind === SWAP; again += kind === RECOMPUTE; }
  $('program').textContent = program.name || 'A program without a name';
  const lede = $('lede'), bold = text => make('b', {}, text);
  lede.append('One step fits in ', bold(showBytes(plan.arena_bytes)));
  if (plan.whole_bytes && plan.whole_bytes !== plan.arena_bytes)
    lede.append(' instead of ', bold(showBytes(plan.whole_bytes)), ` (${percent(plan.arena_bytes, plan.whole_bytes)})`);
  lede.append(M.ran ? ' of device memory and took ' : ' of device memory and takes ', bold(showTime(found('step_ns'))));
  if (M.ran) lede.append(`, measured (${showTime(plan.step_ns)} were predicted)`);
  else if (plan.whole_ns && plan.whole_ns !== plan.step_ns)
    lede.append(`, ${(plan.step_ns / plan.whole_ns).toFixed(2)} times the unconstrained step`);
  lede.append(swaps + again ? `: ${plural(swaps, 'value')} ${swaps === 1 ? 'moves' : 'move'} to a tier for a while, ${plural(again, 'value')} ${again === 1 ? 'is' : 'are'} computed again.`
    : '. Every value stays from its first use to its last.');
  lede.append(` Policy ${plan.policy}, machine ${machine.name} (${machine.source})` + (plan.bits === 'any' ? '; the bits may differ from the unconstrained run.' : '.'));
  if (wasBusy()) lede.append(` Its ops took ${(M.meta.ran.compute_ns / plan.compute_ns).toFixed(1)} times as long as the plan counts on: the machine was busy with something else, or its costs were measured at another time.`);
}

function figure(name, value, note, share) {
  return make('dl', {class: 'figure', style: 'margin:0'}, make('dt', {}, name), make('dd', {}, value, note ? make('small', {}, note) : null),
    share === undefined ? null : make('dd', {class: 'meter', 'aria-hidden': 'true'}, make('i', {style: `width:${Math.min(100, 100 * share).toFixed(1)}%`})));
}

function writeFigures() {
  const {plan, program} = M.meta;
  const whole = plan.whole_bytes;
  $('figures').append(
    figure('Arena', showBytes(plan.arena_bytes), whole ? percent(plan.arena_bytes, whole) + ' of the unconstrained ' + showBytes(whole) : '', whole ? plan.arena_bytes / whole : undefined),
    figure('Budget', budget === null ? 'none' : showBytes(budget), budget === null ? 'nothing forced the plan' : showBytes(budget - plan.arena_bytes) + ' left', budget ? plan.arena_bytes / budget : undefined),
    figure('Step time', showTime(found('step_ns')), (M.ran ? 'measured; predicted ' + showTime(plan.step_ns) : 'predicted') + (plan.whole_ns ? ', ' + percent(plan.step_ns, plan.whole_ns) + ' of the unconstrained' : '')),
    figure('Exposed', showTime(found('exposed_ns')), 'compute waits for transfers' + (M.ran ? '; predicted ' + showTime(plan.exposed_ns) : '')),
    figure('Computed again', showTime(found('recomputed_ns')), found('compute_ns') ? percent(found('recomputed_ns'), found('compute_ns')) + ' of the compute time' : ''),
    figure('Moved', showBytes(plan.moved_bytes), 'to and from tiers'),
    ...(plan.relocated_bytes ? [figure('Relocated', showBytes(plan.relocated_bytes), showTime(plan.relocated_ns) + ' of copies inside the arena')] : []),
    figure('Without sharing', showBytes(program.total_bytes), 'all values side by side'));
}

/* ---- legends ---- */

function writeLegend(onPick) {
  const rows = palette().map((colour, k) => ({colour, k, n: 0, bytes: 0}));
  kinds().forEach((k, i) => { rows[k].n++; rows[k].bytes += M.stay.bytes[i]; });
  $('legend').replaceChildren(...rows.filter(row => row.n).map(row => make('li', {},
    make('button', {type: 'button', 'aria-pressed': String(filter.kind === row.k), title: view.colour === 'fate' ? M.meta.fates[row.k][1] : 'Show only these', onclick: () => onPick(row.k)},
      make('i', {style: `background:${row.colour}`}), kindName(row.k), make('small', {}, row.n.toLocaleString('en'))))));
}

function keyEntry(colour, text) { return make('span', {}, make('i', {style: `background:${colour}`}), text); }

function writeKeys() {
  $('load-legend').append(keyEntry('var(--accent)', 'this plan'), keyEntry(beforeColour, 'freeing after the last use only'));
  if (budget !== null) $('load-legend').append(keyEntry('repeating-linear-gradient(90deg, #d55e00 0 4px, transparent 4px 6px)', 'budget'));
  const used = new Set(M.action.kind), c = ACTION_COLOURS;
  $('queue-legend').append(keyEntry(c.forward, 'forward'), keyEntry(c.backward, 'backward'), keyEntry(c.update, 'update'));
  if (used.has(RERUN)) $('queue-legend').append(keyEntry(c.again, 'again'));
  if (used.has(SAVE)) $('queue-legend').append(keyEntry(c.save, 'save'));
  if (used.has(LOAD)) $('queue-legend').append(keyEntry(c.load, 'load'));
  if (used.has(RELOCATE)) $('queue-legend').append(keyEntry(c.relocate, 'relocate'));
  $('queue-legend').append(keyEntry('repeating-linear-gradient(135deg, #b34700 0 1.5px, transparent 1.5px 4px)', 'waits'));
}

/* ---- one value ---- */

function facts(rows) {
  return make('dl', {class: 'facts'}, ...rows.filter(row => row[1]).flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]));
}

function stayFacts(i) {
  const tensor = M.stay.tensor[i], begin = M.stay.begin[i], end = M.axes.issue.end[i], bytes = tensor < 0 ? M.stay.bytes[i] : M.tensor.bytes[tensor];
  return [
    ['Size', `${showBytes(bytes)} (${bytes.toLocaleString('en')} bytes)`],
    ['Shape', shapeOf(tensor)],
    ['Class', M.meta.classes[M.stayClass[i]]],
    ['Phase', stayPhase(i)],
    ['Address', `${M.stay.offset[i].toLocaleString('en')} + ${M.stay.bytes[i].toLocaleString('en')}`],
    ['Actions', `${begin.toLocaleString('en')} to ${Math.max(begin, end - 1).toLocaleString('en')}`],
    ['Time', `${showTime(M.stay.from[i])} to ${showTime(M.axes.time.end[i])}`],
    ['Decision', M.meta.fates[M.stay.fate[i]][1]],
  ];
}

function describeStay(i) {
  return [make('h4', {}, stayName(i)), facts(stayFacts(i)), make('div', {class: 'why'}, ...stayReasons(i).map(text => make('p', {}, text)))];
}

function describeAction(i) {
  const {wait: waits, cause: causes} = axis().wait ? axis() : M.axes.time, wait = waits[i], cause = causes[i];
  const words = ['runs', 'runs again', 'saves', 'loads', 'copies to another place'];
  return [make('h4', {}, actionName(i)), facts([
    ['Action', `${i.toLocaleString('en')}, ${words[M.action.kind[i]]}`],
    ['Queue', M.meta.machine.queues[M.action.queue[i]]],
    ['Phase', M.action.kind[i] <= RERUN ? M.meta.phases[M.op.phase[M.action.target[i]]] : ''],
    ['Size', M.action.kind[i] > RERUN ? showBytes(M.tensor.bytes[M.action.target[i]]) : ''],
    ['Time', `${showTime(M.action.start[i])}, for ${showTime(M.action.time[i])}`],
    ['Measured', M.ran ? `${showTime(M.ran.start[i])}, for ${showTime(M.ran.time[i])}` : ''],
    ['Waited', wait > 0 ? showTime(wait) + (cause >= 0 ? ` for “${actionName(cause)}”` : '') : '']])];
}

function writeDetails() {
  $('details').replaceChildren(...(picked.stay >= 0 ? describeStay(picked.stay)
    : [make('p', {class: 'muted'}, 'Point at a rectangle to see what it is; click to keep it here.')]));
}

/* ---- the peak ---- */

function writePeak(onPick, onShow) {
  const at = M.meta.plan.peak_action, alive = [];
  for (let i = 0; i < M.stays; i++) if (M.stay.begin[i] <= at && at < M.axes.issue.end[i]) alive.push(i);
  alive.sort((a, b) => M.stay.bytes[b] - M.stay.bytes[a]);
  if (!alive.length) { $('peak').replaceChildren(make('p', {class: 'muted'}, 'Nothing is ever in memory.')); return; }
  const most = M.stay.bytes[alive[0]], kind = kinds();
  $('peak').replaceChildren(
    make('p', {class: 'muted', style: 'margin-bottom:6px'}, `${showBytes(M.meta.plan.peak_bytes)} in ${plural(alive.length, 'value')}, at “${actionName(at)}”. The largest:`),
    make('table', {}, make('tbody', {}, ...alive.slice(0, 12).map(i => make('tr', {}, make('td', {},
      make('button', {type: 'button', title: stayName(i), onclick: () => onPick(i)}, make('i', {style: `width:${(100 * M.stay.bytes[i] / most).toFixed(1)}%;background:${palette()[kind[i]]}`}), stayName(i))),
    make('td', {}, showBytes(M.stay.bytes[i])))))),
    make('button', {type: 'button', class: 'go', onclick: onShow}, 'Show the peak'));
}

/* ---- decisions ---- */

const decisionTable = {rows: [], shown: 0, sort: 'bytes', descending: true, kind: -1};
const decisionColumns = [
  {key: 'tensor', name: 'Value', get: c => M.tensor.name[M.choice.tensor[c]] || 'tensor ' + M.choice.tensor[c]},
  {key: 'kind', name: 'Decision', get: choiceTitle},
  {key: 'bytes', name: 'Size', number: true, get: c => M.tensor.bytes[M.choice.tensor[c]], show: showBytes},
  {key: 'from', name: 'Away from', number: true, get: c => M.choice.from[c], show: showTime},
  {key: 'away', name: 'For', number: true, get: c => M.choice.away[c], show: showTime},
  {key: 'cost', name: 'Cost', number: true, get: c => M.choice.cost[c], show: showTime},
  {key: 'wait', name: 'Compute waits', number: true, get: c => M.choice.wait[c], show: showTime},
  {key: 'why', name: 'Why'},
];

function sortDecisions() {
  const t = decisionTable, column = decisionColumns.find(c => c.key === t.sort), sign = t.descending ? -1 : 1;
  t.rows = [];
  for (let i = 0; i < M.choices; i++) if (t.kind < 0 || M.choice.kind[i] === t.kind) t.rows.push(i);
  const keys = new Map(t.rows.map(i => [i, column.get(i)]));
  t.rows.sort((a, b) => sign * (keys.get(a) < keys.get(b) ? -1 : keys.get(a) > keys.get(b) ? 1 : 0) || a - b);
}

function decisionRow(c, onPick) {
  const stay = M.choice.before[c] >= 0 ? M.choice.before[c] : M.choice.after[c];
  return make('tr', {class: 'pick', onclick: () => onPick(stay)}, ...decisionColumns.map(column =>
    column.key === 'why' ? make('td', {class: 'why-cell'}, choiceReason(c))
      : column.key === 'tensor' ? make('td', {}, make('button', {type: 'button', title: column.get(c)}, column.get(c)))
        : make('td', {class: column.number ? 'n' : 'short'}, column.show ? column.show(column.get(c)) : column.get(c))));
}

function writeDecisions(onPick) {
  const t = decisionTable, counts = [0, 0, 0];
  for (const kind of M.choice.kind) counts[kind]++;
  sortDecisions();
  const size = Math.max(100, t.shown);
  t.shown = Math.min(t.rows.length, size);
  const heads = decisionColumns.map(column => make('th', {scope: 'col', class: column.number ? 'n' : '', 'aria-sort': t.sort !== column.key ? undefined : t.descending ? 'descending' : 'ascending'},
    column.get ? make('button', {type: 'button', onclick: () => {
      t.descending = t.sort === column.key ? !t.descending : Boolean(column.number);
      t.sort = column.key;
      writeDecisions(onPick);
    }}, column.name) : column.name));
  $('decisions').hidden = !M.choices;
  $('decisions').replaceChildren(make('thead', {}, make('tr', {}, ...heads)), make('tbody', {}, ...t.rows.slice(0, t.shown).map(c => decisionRow(c, onPick))));
  $('decisions-lede').textContent = counts[SWAP] + counts[RECOMPUTE]
    ? `${plural(counts[SWAP], 'swap')}, ${plural(counts[RECOMPUTE], 'recomputation')}, ${plural(counts[INPUT], 'input')}. All other values stay from their first use to their last.`
    : `Every value stays from its first use to its last${counts[INPUT] ? `; ${plural(counts[INPUT], 'input')} ${counts[INPUT] === 1 ? 'comes' : 'come'} from the client` : ''}.`;
  $('decisions-more').hidden = t.shown >= t.rows.length;
  $('decisions-more').textContent = `Show ${Math.min(200, t.rows.length - t.shown)} more of ${(t.rows.length - t.shown).toLocaleString('en')}`;
  $('decisions-more').onclick = () => { t.shown += 200; writeDecisions(onPick); };
}

function writeDecisionKinds(onPick) {
  $('decision-kind').append(...[['All', -1], ['Swaps', SWAP], ['Recomputations', RECOMPUTE], ['Inputs', INPUT]].map(([name, value]) => make('option', {value}, name)));
  $('decision-kind').addEventListener('change', event => { decisionTable.kind = Number(event.target.value); decisionTable.shown = 0; writeDecisions(onPick); });
}

/* ---- measured ---- */

function fillTable(table, heads, rows) {
  table.replaceChildren(make('thead', {}, make('tr', {}, ...heads.map((h, i) => make('th', {scope: 'col', class: i ? 'n' : ''}, h)))),
    make('tbody', {}, ...rows.map(row => make('tr', {}, ...row.map((cell, i) => make('td', {class: i ? 'n' : ''}, cell))))));
}

function writeMeasured() {
  const measured = M.meta.measured, {plan} = M.meta;
  if (!measured) return;
  $('measured').hidden = false;
  $('measured-lede').textContent = `${measured.model}, ${plural(measured.steps, 'step')} on this machine. The plan of this report comes first: its figures are predicted for machine ${M.meta.machine.name}.`;
  const saved = [SAVE, LOAD].map(kind => M.action.kind.reduce((sum, k, i) => {
    const client = k === LOAD && M.meta.machine.queues[M.action.queue[i]].startsWith('client');
    return sum + (k === kind && !client ? M.tensor.bytes[M.action.target[i]] : 0);
  }, 0));
  const again = M.action.kind.reduce((sum, k) => sum + (k === RERUN), 0);
  const rows = [[`planned: ${plan.policy}`, showBytes(plan.arena_bytes), showTime(plan.step_ns), showBytes(saved[0]), showBytes(saved[1]), again.toLocaleString('en'), '', '', '']];
  const moved = (bytes, disk, verb) => showBytes(bytes) + (disk && disk < bytes ? ` (${showBytes(disk)} ${verb})` : '');
  for (const run of measured.runs)
    rows.push([`measured: ${run.policy}`, showBytes(run.arena_bytes), showTime(run.step_ns), moved(run.saved_bytes, run.disk_written_bytes, 'written'),
      moved(run.loaded_bytes, run.disk_read_bytes, 'read'), run.reruns.toLocaleString('en'),
      run.last_loss === null ? '' : run.last_loss.toFixed(4), run.accuracy === null ? '' : percent(run.accuracy, 1), run.same_bits === null ? '' : run.same_bits ? 'same bits' : 'OTHER BITS']);
  fillTable($('measured-table'), ['', 'Arena', 'Step', 'Saved', 'Loaded', 'Re-runs', 'Loss', 'Accuracy', 'Bits'], rows);
}

/* Busy time per kind of work, and where the plan was wrong about an op. */
function writeRan() {
  const {plan, ran} = M.meta;
  $('axis-measured').hidden = !M.ran;
  $('ran').hidden = !M.ran;
  if (!M.ran) return;
  const ratio = (a, b) => a > 0 ? (b / a).toFixed(b > 100 * a ? 0 : 2) + ' ×' : '';
  $('ran-lede').textContent = `The last step of the run took ${showTime(ran.step_ns)}; the plan expected ${showTime(plan.step_ns)}. In each queue the plan is above, what happened below. The axis “Measured” draws everything on this page with these times.`;
  const rows = [['Step', 'step_ns'], ['Compute, busy', 'compute_ns'], ['Computed again', 'recomputed_ns'], ['Exposed: compute idle', 'exposed_ns'], ['Transfers, busy', 'transfer_ns'], ...(plan.relocated_ns ? [['Relocating', 'relocated_ns']] : [])];
  fillTable($('ran-table'), ['', 'Planned', 'Measured', ''], [...rows.map(([name, key]) => [name, showTime(plan[key]), showTime(ran[key]), ratio(plan[key], ran[key])]),
    ['Peak load', showBytes(plan.peak_bytes), showBytes(ran.peak_bytes), ratio(plan.peak_bytes, ran.peak_bytes)]]);
  const order = Array.from({length: M.actions}, (_, i) => i), off = i => Math.abs(M.ran.time[i] - M.action.time[i]);
  order.sort((a, b) => off(b) - off(a));
  fillTable($('ran-ops'), ['Furthest from the plan', 'Planned', 'Measured', ''], order.slice(0, 8).map(i => [actionName(i), showTime(M.action.time[i]), showTime(M.ran.time[i]), ratio(M.action.time[i], M.ran.time[i])]));
}

/* ---- the frontier ---- */

const svg = (tag, attributes, ...children) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};

/* Marks differ in shape as well as in colour. */
const MARKS = ['M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0', 'M-4.5-4.5h9v9h-9z', 'M0-6L5.5 4.5h-11z', 'M0-6L6 0L0 6L-6 0z', 'M0 6L5.5-4.5h-11z', 'M-6-2h4v-4h4v4h4v4h-4v4h-4v-4h-4z'];

function drawFrontier() {
  const compared = M.meta.compared;
  if (!compared) return;
  $('compared').hidden = false;
  $('compared-lede').textContent = `${compared.program} on ${compared.machine}: what each policy needs, and how long a step takes in it. Lower and further left is better.`;
  const points = compared.points.filter(p => p.fits), policies = [...new Set(compared.points.map(p => p.policy))];
  const width = 980, height = 400, left = 70, top = 16, right = 190, bottom = 46;
  const most = Math.max(...points.map(p => p.arena_bytes), compared.whole_bytes, 1) * 1.06;
  const slowest = Math.max(...points.map(p => p.step_ns), compared.whole_ns, 1) * 1.08;
  const fastest = Math.min(...points.map(p => p.step_ns), compared.whole_ns || Infinity), low = slowest > 2.5 * fastest ? 0 : 0.95 * fastest;
  if (low) $('compared-lede').append(' Times are cut off below: the axis does not begin at zero.');
  const x = v => left + v / most * (width - left - right), y = v => height - bottom - (v - low) / (slowest - low) * (height - top - bottom);
  const root = svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Step time over arena, one line per policy; the table below has the figures'});
  const line = (x1, y1, x2, y2, stroke, dash) => svg('line', {x1, y1, x2, y2, stroke, 'stroke-dasharray': dash || ''});
  for (const v of ticks(0, most, 6, true)) root.append(line(x(v), top, x(v), height - bottom, 'var(--line)'), svg('text', {x: x(v), y: height - bottom + 18, 'text-anchor': 'middle'}, tickBytes(v)));
  for (const v of ticks(low, slowest, 5, false)) root.append(line(left, y(v), width - right, y(v), 'var(--line)'), svg('text', {x: left - 8, y: y(v) + 4, 'text-anchor': 'end'}, v ? showTime(v) : '0'));
  root.append(line(x(compared.whole_bytes), top, x(compared.whole_bytes), height - bottom, 'var(--muted)', '5 4'), line(left, y(compared.whole_ns), width - right, y(compared.whole_ns), 'var(--muted)', '5 4'),
    svg('text', {x: x(compared.whole_bytes) - 6, y: top + 12, 'text-anchor': 'end'}, 'unconstrained'), svg('text', {x: (left + width - right) / 2, y: height - 8, 'text-anchor': 'middle'}, 'arena'));
  policies.forEach((policy, k) => {
    const own = points.filter(p => p.policy === policy).sort((a, b) => a.arena_bytes - b.arena_bytes), colour = POLICY_COLOURS[k % POLICY_COLOURS.length], mark = MARKS[k % MARKS.length];
    root.append(svg('polyline', {points: own.map(p => `${x(p.arena_bytes)},${y(p.step_ns)}`).join(' '), fill: 'none', stroke: colour, 'stroke-width': 2, opacity: 0.7}));
    for (const p of own) root.append(svg('path', {d: mark, fill: colour, transform: `translate(${x(p.arena_bytes)} ${y(p.step_ns)})`}, svg('title', {}, `${policy}: ${showBytes(p.arena_bytes)}, ${showTime(p.step_ns)}`)));
    root.append(svg('path', {d: mark, fill: colour, transform: `translate(${width - right + 24} ${top + 12 + 22 * k})`}), svg('text', {x: width - right + 38, y: top + 16 + 22 * k}, policy + (own.length ? '' : ' (never fits)')));
  });
  $('frontier').replaceChildren(root);
  fillTable($('compared-table'), ['Policy', 'Budget', 'Arena', 'Step', 'of unconstrained'], compared.points.map(p => [p.policy, p.budget_bytes ? showBytes(p.budget_bytes) : 'none',
    p.fits ? showBytes(p.arena_bytes) : 'does not fit', p.fits ? showTime(p.step_ns) : '', p.fits && compared.whole_ns ? percent(p.step_ns, compared.whole_ns) : '']));
}
