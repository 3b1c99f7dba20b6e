/* The map: every stay as a rectangle, painted into pixels by hand. Rectangles never overlap (the plan was proved), so a
 * frame paints each pixel about once however many there are; 10^5 of them take a few milliseconds.
 *
 * Level of detail: a pixel shows the value at its middle. What is too small to own the middle of a pixel is drawn
 * afterwards, at least one pixel large, but only where nothing else is. */

const map = document.getElementById('map');
const AXIS_HEIGHT = 24, TOP = 2;
const picked = {tensor: -1, stay: -1};
const filter = {marks: null, count: 0, kind: -1}; /* marks: 1 per stay that matches the search; null: no search */
let picture = null, lastMapMs = 0;

function mapBox(c) { return {top: TOP, bottom: c.height - AXIS_HEIGHT}; }

function isBright(i) {
  return (!filter.marks || filter.marks[i]) && (filter.kind < 0 || kinds()[i] === filter.kind);
}

/* Four pixels per colour: fill and edge, and both when something else is searched for. */
function makePaints() {
  const back = cssColour('--plot'), edge = isDark() ? '#000000' : '#ffffff';
  return palette().map(hex => ({
    fill: pixel(rgb(hex)), edge: pixel(mix(hex, edge, 0.45)),
    faint: pixel(mix(hex, back, 0.82)), faintEdge: pixel(mix(hex, back, 0.9)),
  }));
}

function paintStays(w, h) {
  if (!picture || picture.width !== w || picture.height !== h) picture = new ImageData(w, h);
  const pixels = new Uint32Array(picture.data.buffer), back = pixel(rgb(cssColour('--plot')));
  pixels.fill(back);
  const {begin, end} = axis(), {offset, bytes} = M.stay, kind = kinds(), paints = makePaints();
  const kx = w / (view.x1 - view.x0), ky = h / (view.y1 - view.y0), narrowed = filter.marks || filter.kind >= 0;
  const small = [], labels = [], marked = [];
  for (let i = 0; i < begin.length; i++) {
    const low = offset[i], high = low + bytes[i];
    if (end[i] <= view.x0 || begin[i] >= view.x1 || high <= view.y0 || low >= view.y1) continue;
    if (end[i] === begin[i] || low === high) continue;
    const left = Math.max(0, Math.ceil((begin[i] - view.x0) * kx - 0.5));
    const right = Math.min(w, Math.ceil((end[i] - view.x0) * kx - 0.5));
    const top = Math.max(0, Math.ceil(h - (high - view.y0) * ky - 0.5));
    const bottom = Math.min(h, Math.ceil(h - (low - view.y0) * ky - 0.5));
    const bright = !narrowed || isBright(i);
    if (narrowed && bright) marked.push(i);
    if (right <= left || bottom <= top) { small.push(i); continue; }
    const paint = paints[kind[i]], fill = bright ? paint.fill : paint.faint;
    for (let y = top; y < bottom; y++) pixels.fill(fill, y * w + left, y * w + right);
    if (right - left > 3 && bottom - top > 3) {
      const edge = bright ? paint.edge : paint.faintEdge;
      pixels.fill(edge, top * w + left, top * w + right);
      for (let y = top; y < bottom; y++) pixels[y * w + left] = edge;
      if (labels.length < 500 && bright) labels.push(i);
    }
  }
  for (const i of small) paintSmall(pixels, w, h, kx, ky, i, narrowed && !isBright(i) ? paints[kind[i]].faint : paints[kind[i]].fill, back, 1);
  if (narrowed && marked.length < 20000) for (const i of marked) paintSmall(pixels, w, h, kx, ky, i, paints[kind[i]].fill, -1, 2);
  return labels;
}

/* At least `least` pixels each way; only onto pixels of colour `over`, unless that is -1. */
function paintSmall(pixels, w, h, kx, ky, i, colour, over, least) {
  const {begin, end} = axis(), {offset, bytes} = M.stay;
  const left = Math.min(w - 1, Math.max(0, Math.floor((begin[i] - view.x0) * kx)));
  const top = Math.min(h - 1, Math.max(0, Math.floor(h - (offset[i] + bytes[i] - view.y0) * ky)));
  const right = Math.min(w, Math.max(left + least, Math.ceil((end[i] - view.x0) * kx - 0.5)));
  const bottom = Math.min(h, Math.max(top + least, Math.ceil(h - (offset[i] - view.y0) * ky - 0.5)));
  for (let y = top; y < bottom; y++) {
    if (over >= 0 && right - left > 8 && !isFreeSomewhere(pixels, y * w + left, y * w + right - 1, over)) continue;
    for (let at = y * w + left; at < y * w + right; at++) if (over < 0 || pixels[at] === over) pixels[at] = colour;
  }
}

/* Looked at in five places: where thousands of thin values share a row of pixels, it is full after the first ones. */
function isFreeSomewhere(pixels, first, last, over) {
  for (let k = 0; k < 5; k++) if (pixels[first + Math.round((last - first) * k / 4)] === over) return true;
  return false;
}

function stayBox(c, i) {
  const {top, bottom} = mapBox(c), ky = (bottom - top) / (view.y1 - view.y0);
  const left = Math.max(GUTTER, c.x(axis().begin[i])), right = Math.min(GUTTER + c.plot, c.x(axis().end[i]));
  const low = Math.min(bottom, bottom - (M.stay.offset[i] - view.y0) * ky);
  const high = Math.max(top, bottom - (M.stay.offset[i] + M.stay.bytes[i] - view.y0) * ky);
  return {left, right, top: high, bottom: low};
}

function drawLabels(c, labels) {
  const {context} = c;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  for (const i of labels) {
    const box = stayBox(c, i), width = box.right - box.left;
    if (width < 46 || box.bottom - box.top < 13) continue;
    const text = fitText(context, stayName(i), width - 8);
    context.fillStyle = isLight(palette()[kinds()[i]]) ? '#101820' : '#ffffff';
    if (text) context.fillText(text, box.left + 4, (box.top + box.bottom) / 2);
  }
}

/* What was written on the charts, as boxes in CSS pixels. */
const written = {map: [], load: null};

function drawDashes(c, y, colour) {
  const {context} = c;
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.setLineDash([7, 4]);
  context.beginPath();
  context.moveTo(GUTTER, y);
  context.lineTo(GUTTER + c.plot, y);
  context.stroke();
  context.setLineDash([]);
}

/* A text on a plate; `box` is the plate. */
function drawPlate(context, text, box, colour) {
  context.fillStyle = cssColour('--surface');
  context.globalAlpha = 0.88;
  context.fillRect(box.left, box.top, box.right - box.left, box.bottom - box.top);
  context.globalAlpha = 1;
  context.fillStyle = colour;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  context.fillText(text, box.left + 5, (box.top + box.bottom) / 2 + 0.5);
}

/* Arena and budget as dashed lines. Their labels stand above, where no value is: values end at the arena. Lines too close for that share
 * one label; without room above there is none. */
function drawLines(c) {
  const {top, bottom} = mapBox(c), {context} = c;
  const yOf = bytes => bottom - (bytes - view.y0) / (view.y1 - view.y0) * (bottom - top);
  const lines = [{y: yOf(arena), text: 'arena ' + showBytes(arena), colour: cssColour('--ink')}];
  if (budget !== null) lines.push({y: yOf(budget), text: 'budget ' + showBytes(budget), colour: cssColour('--warn')});
  const seen = lines.filter(l => l.y >= top - 1 && l.y <= bottom + 1).sort((a, b) => a.y - b.y);
  for (const l of seen) drawDashes(c, l.y, l.colour);
  if (seen.length === 2 && seen[1].y - seen[0].y < 20) {
    seen[0].text += ' · ' + seen[1].text;
    seen.length = 1;
  }
  context.font = '600 11px system-ui, "Liberation Sans", sans-serif';
  written.map = [];
  for (const l of seen) {
    const width = context.measureText(l.text).width + 10, right = GUTTER + c.plot - 4;
    const box = {left: right - width, right, top: l.y - 17, bottom: l.y - 2};
    if (box.top < top) continue;
    drawPlate(context, l.text, box, l.colour);
    written.map.push(box);
  }
  context.font = '11px system-ui, "Liberation Sans", sans-serif';
}

/* The chosen value: all its stays, joined by a thread where it is away. */
function drawPicked(c) {
  const {context} = c, rows = picked.tensor >= 0 ? staysOf(picked.tensor) : picked.stay >= 0 ? [picked.stay] : [];
  if (!rows.length) return;
  const ink = cssColour('--ink');
  let before = null;
  context.save();
  context.beginPath();
  context.rect(GUTTER, TOP, c.plot, c.height - AXIS_HEIGHT - TOP);
  context.clip();
  for (const i of rows) {
    if (axis().end[i] < view.x0 || axis().begin[i] > view.x1) { before = i; continue; }
    const box = stayBox(c, i), width = Math.max(2, box.right - box.left), height = Math.max(2, box.bottom - box.top);
    context.strokeStyle = ink;
    context.lineWidth = 2;
    context.strokeRect(box.left - 1, box.top - 1, width + 2, height + 2);
    if (before !== null) {
      const from = stayBox(c, before);
      context.lineWidth = 1;
      context.setLineDash([3, 3]);
      context.beginPath();
      context.moveTo(from.right, (from.top + from.bottom) / 2);
      context.lineTo(box.left, (box.top + box.bottom) / 2);
      context.stroke();
      context.setLineDash([]);
    }
    before = i;
  }
  context.restore();
}

function drawMap() {
  const started = performance.now(), c = openCanvas(map), {top, bottom} = mapBox(c), {context, ratio} = c;
  const w = Math.max(1, Math.round(c.plot * ratio)), h = Math.max(1, Math.round((bottom - top) * ratio));
  const labels = paintStays(w, h);
  context.putImageData(picture, Math.round(GUTTER * ratio), Math.round(top * ratio));
  drawLabels(c, labels);
  drawYAxis(c, top, bottom, view.y0, view.y1);
  drawXAxis(c, bottom);
  drawLines(c);
  drawPicked(c);
  lastMapMs = performance.now() - started;
}

/* The stay at a point of the map (CSS pixels), or the nearest small one; -1 if there is none. */
function stayAt(px, py) {
  const c = {plot: Math.max(1, map.clientWidth - GUTTER - MARGIN), height: map.clientHeight}, {top, bottom} = mapBox(c);
  if (px < GUTTER || px > GUTTER + c.plot || py < top || py > bottom) return -1;
  const x = xAtPixel(map, px), y = view.y0 + (bottom - py) / (bottom - top) * (view.y1 - view.y0);
  const nearX = 3 * (view.x1 - view.x0) / c.plot, nearY = 3 * (view.y1 - view.y0) / (bottom - top);
  const {begin, end} = axis(), {offset, bytes} = M.stay;
  let best = -1, distance = Infinity;
  for (let i = 0; i < begin.length; i++) {
    const dx = Math.max(begin[i] - x, x - end[i], 0) / nearX, dy = Math.max(offset[i] - y, y - offset[i] - bytes[i], 0) / nearY;
    if (dx > 1 || dy > 1 || bytes[i] === 0 || end[i] === begin[i] || dx + dy >= distance) continue;
    best = i;
    distance = dx + dy;
  }
  return best;
}
