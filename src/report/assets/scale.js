/* What is seen, in which colours: the view, its limits, ticks, canvases that are sharp on every screen. */

const GUTTER = 74, MARGIN = 12;

const view = {axis: 'issue', colour: 'class', x0: 0, x1: 1, y0: 0, y1: 1};

/* Okabe and Ito's palette: apart also for colour-blind eyes. One colour per class, one per fate. */
const CLASS_COLOURS = ['#f0e442', '#0072b2', '#d55e00', '#cc79a7', '#56b4e9', '#e69f00', '#9aa5ae', '#009e73'];
const FATE_COLOURS = ['#8fb4cc', '#e69f00', '#d55e00', '#66c2a4', '#009e73', '#f0e442', '#9aa5ae'];
const ACTION_COLOURS = {forward: '#56b4e9', backward: '#0072b2', update: '#cc79a7', again: '#009e73', save: '#e69f00', load: '#d55e00', relocate: '#8a6d00'};
const POLICY_COLOURS = ['#0072b2', '#e69f00', '#009e73', '#d55e00', '#cc79a7', '#56b4e9', '#8a6d00', '#5b6773'];

const isDark = () => document.documentElement.dataset.theme === 'dark';
const cssColour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function palette() { return view.colour === 'class' ? CLASS_COLOURS : FATE_COLOURS; }
function kinds() { return view.colour === 'class' ? M.stayClass : M.stay.fate; }
function kindName(k) { return view.colour === 'class' ? M.meta.classes[k] : M.meta.fates[k][0]; }

function rgb(hex) { return [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16)); }
function mix(a, b, share) { return rgb(a).map((v, i) => Math.round(v * (1 - share) + rgb(b)[i] * share)); }
/* As a pixel of an ImageData's buffer; all machines with a browser are little-endian. */
function pixel([r, g, b]) { return (255 << 24 | b << 16 | g << 8 | r) >>> 0; }
function isLight(hex) { const [r, g, b] = rgb(hex); return r * 0.299 + g * 0.587 + b * 0.114 > 140; }

/* ---- limits ---- */

const axis = () => M.axes[view.axis];
/* The upper edge of the map: the arena, and the budget line if it is near. */
const arena = M.meta.plan.arena_bytes || 1;
const budget = M.meta.plan.budget_bytes;
const ceiling = 1.07 * (budget !== null && budget < 1.3 * arena ? Math.max(budget, arena) : arena);

function fit() { Object.assign(view, {x0: 0, x1: axis().length, y0: 0, y1: ceiling}); }

function clampView() {
  const wide = axis().length, least = view.axis === 'issue' ? 2 : Math.max(1, wide / 1e7);
  const width = Math.min(wide, Math.max(least, view.x1 - view.x0));
  view.x0 = Math.min(Math.max(0, view.x0), wide - width);
  view.x1 = view.x0 + width;
  const height = Math.min(ceiling, Math.max(ceiling / 1e6, view.y1 - view.y0));
  view.y0 = Math.min(Math.max(0, view.y0), ceiling - height);
  view.y1 = view.y0 + height;
}

function zoomX(factor, at) {
  if (at === undefined) at = (view.x0 + view.x1) / 2;
  view.x0 = at + (view.x0 - at) * factor;
  view.x1 = at + (view.x1 - at) * factor;
  clampView();
}

function zoomY(factor, at) {
  if (at === undefined) at = (view.y0 + view.y1) / 2;
  view.y0 = at + (view.y0 - at) * factor;
  view.y1 = at + (view.y1 - at) * factor;
  clampView();
}

function pan(dx, dy) {
  view.x0 += dx; view.x1 += dx; view.y0 += dy; view.y1 += dy;
  clampView();
}

/* The same moment on the other axis: actions and their times. */
function switchAxis(name) {
  if (name === view.axis) return;
  const from = axis(), whole = view.x1 - view.x0 >= from.length * 0.999;
  const first = firstAfter(from.actionEnd, view.x0), last = firstAfter(from.actionEnd, view.x1);
  view.axis = name;
  if (whole || !M.actions) { view.x0 = 0; view.x1 = axis().length; return; }
  view.x0 = axis().actionBegin[Math.min(first, M.actions - 1)];
  view.x1 = axis().actionEnd[Math.min(last, M.actions - 1)];
  clampView();
}

/* Index of the first value above x in a list that (nearly) ascends. */
function firstAfter(values, x) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = low + high >> 1;
    if (values[middle] > x) high = middle; else low = middle + 1;
  }
  return low;
}

/* ---- canvases ---- */

/* {context, width, height, plot, x(value), at(pixel)}: in CSS pixels, the drawing scaled for the screen. */
function openCanvas(canvas, height) {
  const ratio = Math.min(3, window.devicePixelRatio || 1), width = canvas.clientWidth;
  height ||= canvas.clientHeight;
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = '11px system-ui, "Liberation Sans", sans-serif';
  const plot = Math.max(1, width - GUTTER - MARGIN);
  return {context, ratio, width, height, plot, x: v => GUTTER + (v - view.x0) / (view.x1 - view.x0) * plot};
}

function xAtPixel(canvas, px) {
  return view.x0 + (px - GUTTER) / Math.max(1, canvas.clientWidth - GUTTER - MARGIN) * (view.x1 - view.x0);
}

/* Round steps: 1, 2 or 5 times a power of ten (of 1024 for bytes: 1, 2, 4, ... of a unit). */
function ticks(low, high, count, binary) {
  const raw = (high - low) / Math.max(1, count);
  if (!(raw > 0)) return [];
  const base = binary ? 2 : 10;
  let step = Math.pow(base, Math.ceil(Math.log(raw) / Math.log(base) - 1e-9));
  if (!binary) for (const part of [5, 2]) if (step / part >= raw) { step /= part; break; }
  const out = [];
  for (let v = Math.ceil(low / step) * step; v <= high * 1.0000001 && out.length < 100; v += step) out.push(v);
  return out;
}

/* Ticks are round, so decimals that are zeros say nothing. */
function tickBytes(bytes) {
  const value = bytes / 1048576;
  return bytes === 0 ? '0' : Number(value.toPrecision(6)).toLocaleString('en', {maximumFractionDigits: 6}) + '\u00a0MiB';
}

function drawYAxis(c, top, bottom, low, high) {
  const {context} = c;
  context.fillStyle = cssColour('--muted');
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  for (const v of ticks(low, high, (bottom - top) / 48, true)) {
    const y = bottom - (v - low) / (high - low) * (bottom - top);
    if (y < top + 4) continue;
    context.fillText(tickBytes(v), GUTTER - 7, Math.min(y, bottom - 5));
    context.fillRect(GUTTER - 4, y - 0.5, 4, 1);
  }
}

function drawXAxis(c, y) {
  const {context} = c, issue = view.axis === 'issue';
  context.fillStyle = cssColour('--muted');
  context.textBaseline = 'top';
  context.textAlign = 'center';
  for (const v of ticks(view.x0, view.x1, c.plot / 110, false)) {
    const x = c.x(v), text = issue ? v.toLocaleString('en') : v === 0 ? '0' : showTime(v);
    if (issue && v % 1) continue;
    context.fillRect(x - 0.5, y, 1, 4);
    const half = context.measureText(text).width / 2;
    context.fillText(text, Math.min(Math.max(x, GUTTER + half), GUTTER + c.plot - half), y + 6);
  }
}

function fitText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = low + high + 1 >> 1;
    if (context.measureText(text.slice(0, middle) + '…').width <= width) low = middle; else high = middle - 1;
  }
  return low > 2 ? text.slice(0, low) + '…' : '';
}
