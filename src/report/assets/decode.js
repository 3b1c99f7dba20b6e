'use strict';
/* Reads what pack.c wrote: LEB128 varints, zigzag differences, front-coded names, all in base64. */

function readBase64(id) {
  const text = atob(document.getElementById(id).textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/* A reader over `bytes`; numbers above 2^53 lose their last bits, which no picture shows. */
function makeReader(bytes, at) {
  return {
    at,
    varint() {
      let value = 0, scale = 1, byte;
      do {
        byte = bytes[this.at++];
        value += (byte & 127) * scale;
        scale *= 128;
      } while (byte > 127);
      return value;
    },
  };
}

function readColumn(bytes, [at, n, delta]) {
  const out = new Float64Array(n), reader = makeReader(bytes, at);
  let before = 0;
  for (let i = 0; i < n; i++) {
    const value = reader.varint();
    before = delta ? before + (value % 2 ? -(value + 1) / 2 : value / 2) : value;
    out[i] = before;
  }
  return out;
}

/* Expanded into one text first: one decoding for all names is many times faster than one each. */
function readNames(bytes, [at, n]) {
  const reader = makeReader(bytes, at);
  let buffer = new Uint8Array(1 << 16), end = 0, before = 0;
  for (let i = 0; i < n; i++) {
    const shared = reader.varint(), rest = reader.varint();
    if (end + shared + rest + 1 > buffer.length) {
      const larger = new Uint8Array(2 * (end + shared + rest + 1));
      larger.set(buffer.subarray(0, end));
      buffer = larger;
    }
    buffer.copyWithin(end, before, before + shared);
    buffer.set(bytes.subarray(reader.at, reader.at + rest), end + shared);
    reader.at += rest;
    before = end;
    end += shared + rest;
    buffer[end++] = 10;
  }
  return n ? new TextDecoder().decode(buffer.subarray(0, end - 1)).split('\n') : [];
}

/* {meta, tensor: {name, bytes, ...}, op, action, stay, copy, choice, load}: a typed array per column. */
function readReport() {
  const meta = JSON.parse(new TextDecoder().decode(readBase64('meta-block')));
  const bytes = readBase64('data-block');
  const tables = {meta};
  for (const [name, place] of Object.entries(meta.columns)) {
    const [table, column] = name.split('.');
    (tables[table] ||= {})[column] = readColumn(bytes, place);
  }
  for (const [table, place] of Object.entries(meta.names)) tables[table].name = readNames(bytes, place);
  return tables;
}
