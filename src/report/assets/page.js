/* The page: what happens on pointer, wheel and keys, and when things are drawn. */

let pending = false;
const drawn = {frames: 0};

function draw() {
  pending = false;
  drawMap();
  drawOverview();
  drawLoad();
  drawQueues();
  drawTiers();
  drawVersus();
  drawRanks();
  drawn.frames++;
}

function redraw() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(draw);
}

/* ---- choosing ---- */

function pick(stay, announce) {
  picked.stay = stay;
  picked.tensor = stay < 0 ? -1 : M.stay.tensor[stay];
  writeDetails();
  if (announce && stay >= 0) $('live').textContent = `${stayName(stay)}, ${showBytes(M.stay.bytes[stay])}, ${M.meta.classes[M.stayClass[stay]]}, ${M.meta.fates[M.stay.fate[stay]][1]}`;
  redraw();
}

/* Moves the view so that a stay is seen, with something around it. */
function bringIntoView(stay) {
  const {begin, end} = axis(), low = M.stay.offset[stay], high = low + M.stay.bytes[stay];
  if (begin[stay] < view.x0 || end[stay] > view.x1 || end[stay] - begin[stay] < (view.x1 - view.x0) / 200) {
    const width = Math.max(4 * (end[stay] - begin[stay]), axis().length / 200), middle = (begin[stay] + end[stay]) / 2;
    view.x0 = middle - width / 2;
    view.x1 = middle + width / 2;
  }
  if (low < view.y0 || high > view.y1) {
    const height = Math.max(view.y1 - view.y0, 2 * (high - low)), middle = (low + high) / 2;
    view.y0 = middle - height / 2;
    view.y1 = middle + height / 2;
  }
  clampView();
  redraw();
}

function zoomTo(stay) {
  const {begin, end} = axis(), low = M.stay.offset[stay], bytes = M.stay.bytes[stay], margin = 0.6;
  const width = Math.max(end[stay] - begin[stay], axis().length / 1e4);
  view.x0 = begin[stay] - margin * width;
  view.x1 = begin[stay] + (1 + margin) * width;
  view.y0 = low - margin * bytes;
  view.y1 = low + (1 + margin) * bytes;
  clampView();
  redraw();
}

function pickAndShow(stay) {
  pick(stay, true);
  bringIntoView(stay);
  map.scrollIntoView({block: 'nearest'});
}

function showPeak() {
  const width = axis().length / 12, x = peakX();
  Object.assign(view, {x0: x - width / 2, x1: x + width / 2, y0: 0, y1: ceiling});
  clampView();
  redraw();
}

/* ---- search and filter ---- */

let lowerNames = null, matches = [], matchAt = -1;

function search(text) {
  const wanted = text.trim().toLowerCase();
  matches = [];
  matchAt = -1;
  filter.marks = null;
  if (wanted) {
    lowerNames ||= Array.from({length: M.stays}, (_, i) => stayName(i).toLowerCase());
    filter.marks = new Uint8Array(M.stays);
    for (let i = 0; i < M.stays; i++) if (lowerNames[i].includes(wanted)) { filter.marks[i] = 1; matches.push(i); }
    matches.sort((a, b) => M.stay.begin[a] - M.stay.begin[b]);
  }
  $('found').textContent = wanted ? matches.length.toLocaleString('en') + ' found' : '';
  redraw();
}

function nextMatch(step) {
  if (!matches.length) return;
  matchAt = (matchAt + step + matches.length) % matches.length;
  $('found').textContent = `${(matchAt + 1).toLocaleString('en')} of ${matches.length.toLocaleString('en')}`;
  pick(matches[matchAt], true);
  bringIntoView(matches[matchAt]);
}

function pickKind(kind) {
  filter.kind = filter.kind === kind ? -1 : kind;
  writeLegend(pickKind);
  redraw();
}

/* ---- switches ---- */

function setAxis(name) {
  switchAxis(name);
  document.querySelector(`input[name=axis][value=${name}]`).checked = true;
  redraw();
}

function setColour(name) {
  view.colour = name;
  filter.kind = -1;
  document.querySelector(`input[name=colour][value=${name}]`).checked = true;
  writeLegend(pickKind);
  writePeak(pickAndShow, showPeak);
  redraw();
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  $('theme').textContent = name === 'dark' ? 'Light' : 'Dark';
  redraw();
}

/* ---- the tip ---- */

function showTip(event, nodes) {
  const tip = $('tip');
  tip.replaceChildren(...nodes);
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect(), gap = 14;
  const x = event.clientX + gap + width > innerWidth ? event.clientX - gap - width : event.clientX + gap;
  const y = event.clientY + gap + height > innerHeight ? innerHeight - height - 6 : event.clientY + gap;
  tip.style.left = Math.max(4, x) + 'px';
  tip.style.top = Math.max(4, y) + 'px';
}

function hideTip() {
  $('tip').hidden = true;
  $('cross').style.display = 'none';
}

/* The moment under the pointer in all plots. */
function moveCross(canvas, event) {
  const x = event.clientX - canvas.getBoundingClientRect().left, inside = x >= GUTTER && x <= canvas.clientWidth - MARGIN;
  $('cross').style.display = inside ? 'block' : 'none';
  $('cross').style.left = x + 'px';
}

function describeMoment(x) {
  const rows = [[view.axis === 'issue' ? 'Action' : 'Time', view.axis === 'issue' ? Math.floor(x).toLocaleString('en') : showTime(x)],
    ['This plan', showBytes(valueAt(axis().after, x))], ['Last use only', showBytes(valueAt(axis().before, x))]];
  if (view.axis === 'issue' && x < M.actions) rows.push(['Runs', actionName(Math.floor(x))]);
  return [facts(rows)];
}

function describeTier(event) {
  const box = tiers.getBoundingClientRect(), k = Math.floor((event.clientY - box.top) / TIER_HEIGHT), tier = M.tiers[k];
  return tier ? [make('h4', {}, tier.name), facts([['Now', showBytes(valueAt(axis().tiers[k], xAtPixel(tiers, event.clientX - box.left)))], ['Most', showBytes(tier.bytes)]])] : null;
}

/* Canvas -> what its tip says at a place; null: nothing. */
const tips = new Map([
  [map, event => { const box = map.getBoundingClientRect(), stay = stayAt(event.clientX - box.left, event.clientY - box.top); return stay < 0 ? null : describeStay(stay); }],
  [load, event => describeMoment(Math.max(0, xAtPixel(load, event.clientX - load.getBoundingClientRect().left)))],
  [queues, event => {
    const box = queues.getBoundingClientRect(), lane = M.lanes[Math.floor((event.clientY - box.top) / LANE)];
    const action = lane ? actionAt(lane, xAtPixel(queues, event.clientX - box.left)) : -1;
    return action < 0 ? null : describeAction(action);
  }],
  [tiers, describeTier],
]);

/* ---- pointer ---- */

let drag = null;

function onMove(canvas, event) {
  if (drag && drag.canvas === canvas) {
    const plot = Math.max(1, canvas.clientWidth - GUTTER - MARGIN), box = {top: TOP, bottom: map.clientHeight - AXIS_HEIGHT};
    const dx = (drag.x - event.clientX) / plot * (view.x1 - view.x0);
    const dy = canvas === map ? (event.clientY - drag.y) / (box.bottom - box.top) * (view.y1 - view.y0) : 0;
    drag.moved ||= Math.abs(event.clientX - drag.startX) + Math.abs(event.clientY - drag.startY) > 4;
    if (!drag.moved) return;
    pan(dx, dy);
    Object.assign(drag, {x: event.clientX, y: event.clientY});
    map.classList.add('drag');
    hideTip();
    redraw();
    return;
  }
  moveCross(canvas, event);
  const nodes = tips.get(canvas)(event);
  if (nodes) showTip(event, nodes); else $('tip').hidden = true;
}

function onWheel(canvas, event) {
  if (document.activeElement !== map && !event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const box = canvas.getBoundingClientRect(), scale = event.deltaMode ? 30 : 1;
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    pan(event.deltaX * scale / canvas.clientWidth * (view.x1 - view.x0), 0);
  } else if (event.shiftKey && canvas === map) {
    const share = (map.clientHeight - AXIS_HEIGHT - (event.clientY - box.top)) / (map.clientHeight - AXIS_HEIGHT - TOP);
    zoomY(Math.exp(event.deltaY * scale * 0.0018), view.y0 + share * (view.y1 - view.y0));
  } else {
    zoomX(Math.exp(event.deltaY * scale * 0.0018), xAtPixel(canvas, event.clientX - box.left));
  }
  redraw();
}

function listen(canvas) {
  canvas.addEventListener('pointermove', event => onMove(canvas, event));
  canvas.addEventListener('pointerleave', hideTip);
  canvas.addEventListener('wheel', event => onWheel(canvas, event), {passive: false});
  canvas.addEventListener('pointerdown', event => {
    if (event.button) return;
    drag = {canvas, x: event.clientX, y: event.clientY, startX: event.clientX, startY: event.clientY, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointerup', event => {
    if (drag && !drag.moved && canvas === map) {
      const box = map.getBoundingClientRect();
      pick(stayAt(event.clientX - box.left, event.clientY - box.top), true);
    }
    drag = null;
    map.classList.remove('drag');
  });
  canvas.addEventListener('pointercancel', () => { drag = null; map.classList.remove('drag'); });
}

function listenOverview() {
  const move = event => {
    const box = overview.getBoundingClientRect(), plot = Math.max(1, overview.clientWidth - GUTTER - MARGIN);
    const middle = (event.clientX - box.left - GUTTER) / plot * axis().length;
    pan(middle - (view.x0 + view.x1) / 2, 0);
    redraw();
  };
  overview.addEventListener('pointerdown', event => { overview.setPointerCapture(event.pointerId); move(event); });
  overview.addEventListener('pointermove', event => { if (event.buttons) move(event); });
  overview.addEventListener('keydown', event => {
    const step = {ArrowLeft: -0.1, ArrowRight: 0.1, PageUp: -0.8, PageDown: 0.8}[event.key];
    if (!step) return;
    event.preventDefault();
    pan(step * (view.x1 - view.x0), 0);
    redraw();
  });
}

/* ---- keys ---- */

let order = null; /* stays as they begin, for n and p */
function walk(step) {
  if (!M.stays) return;
  order ||= Array.from({length: M.stays}, (_, i) => i).sort((a, b) => M.stay.begin[a] - M.stay.begin[b] || M.stay.offset[a] - M.stay.offset[b]);
  const at = picked.stay < 0 ? (step > 0 ? -1 : 0) : order.indexOf(picked.stay);
  const stay = order[(at + step + order.length) % order.length];
  pick(stay, true);
  bringIntoView(stay);
}

const wide = () => view.x1 - view.x0, high = () => view.y1 - view.y0;
const mapKeys = {
  ArrowLeft: () => pan(-0.12 * wide(), 0), ArrowRight: () => pan(0.12 * wide(), 0),
  ArrowUp: () => pan(0, 0.12 * high()), ArrowDown: () => pan(0, -0.12 * high()),
  ']': () => zoomY(1 / 1.5), '[': () => zoomY(1.5),
  n: () => walk(1), p: () => walk(-1), Enter: () => { if (picked.stay >= 0) zoomTo(picked.stay); },
};
const pageKeys = {
  '/': () => $('search').focus(), '?': () => $('help').showModal(),
  '+': () => zoomX(1 / 1.5), '=': () => zoomX(1 / 1.5), '-': () => zoomX(1.5), '0': fit, Home: fit,
  x: () => { const names = Object.keys(M.axes); setAxis(names[(names.indexOf(view.axis) + 1) % names.length]); }, c: () => setColour(view.colour === 'class' ? 'fate' : 'class'),
  t: () => setTheme(isDark() ? 'light' : 'dark'), Escape: () => { $('search').value = ''; search(''); pick(-1); },
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $('help').open) return;
  const typing = event.target.matches('input[type=search], select');
  if (typing && event.key !== 'Escape') return;
  const act = (event.target === map && mapKeys[event.key]) || pageKeys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
  redraw();
}

/* ---- the start ---- */

function listenControls() {
  for (const input of document.querySelectorAll('input[name=axis]')) input.addEventListener('change', () => setAxis(input.value));
  for (const input of document.querySelectorAll('input[name=colour]')) input.addEventListener('change', () => setColour(input.value));
  $('search').addEventListener('input', event => search(event.target.value));
  $('search').addEventListener('keydown', event => { if (event.key === 'Enter') { event.preventDefault(); nextMatch(event.shiftKey ? -1 : 1); } });
  $('zoom-in').addEventListener('click', () => { zoomX(1 / 1.5); redraw(); });
  $('zoom-out').addEventListener('click', () => { zoomX(1.5); redraw(); });
  $('zoom-fit').addEventListener('click', () => { fit(); redraw(); });
  $('theme').addEventListener('click', () => setTheme(isDark() ? 'light' : 'dark'));
  $('help-button').addEventListener('click', () => $('help').showModal());
  map.addEventListener('dblclick', event => {
    const box = map.getBoundingClientRect(), stay = stayAt(event.clientX - box.left, event.clientY - box.top);
    if (stay >= 0) { pick(stay, true); zoomTo(stay); }
  });
  document.addEventListener('keydown', onKey);
  new ResizeObserver(redraw).observe($('plots'));
}

function describeForReaders() {
  const {plan, program} = M.meta;
  map.setAttribute('aria-label', `Map of ${plural(M.stays, 'stay')} of values in an arena of ${showBytes(plan.arena_bytes)}`);
  load.setAttribute('aria-label', `Load over one step: peak ${showBytes(plan.peak_bytes)} in this plan, ${showBytes(program.peak_bytes)} when values are only freed after their last use`);
  queues.setAttribute('aria-label', `${plural(M.lanes.length, 'queue')} with ${plural(M.actions, 'action')}; compute stands still for ${showTime(plan.exposed_ns)}`);
  tiers.setAttribute('aria-label', M.tiers.map(t => `${t.name}: at most ${showBytes(t.bytes)}`).join(', ') || 'no tier is used');
}

function start() {
  setTheme(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  writeTop();
  writeFigures();
  writeKeys();
  writeLegend(pickKind);
  writeDetails();
  writePeak(pickAndShow, showPeak);
  writeDecisionKinds(pickAndShow);
  writeDecisions(pickAndShow);
  writeMeasured();
  writeRan();
  writeRanks();
  drawFrontier();
  describeForReaders();
  listenControls();
  listenOverview();
  for (const canvas of tips.keys()) listen(canvas);
  $('ranks-queues').addEventListener('pointermove', event => { const nodes = rankTip(event); if (nodes) showTip(event, nodes); else $('tip').hidden = true; });
  $('ranks-queues').addEventListener('pointerleave', () => { $('tip').hidden = true; });
  $('footer').textContent = `Tidemark ${M.meta.version} · ${plural(M.tensor.bytes.length, 'value')}, ${plural(M.op.phase.length, 'op')}, ${plural(M.actions, 'action')} · plan ${M.meta.plan.fingerprint}, proved by the verifier; ${M.ran ? 'measured times are those of the run’s last step, others are predicted by the simulator' : 'times are predicted by the simulator'}.`;
  fit();
  pending = true;
  draw();
}

start();
