// Unpacks what report/columns.h packs: base64, gzip, then columns of small numbers. Numbers beyond
// 2^52 lose their last digits here; as times they would be fifty days.

// The bytes of a gzip file in base64.
async function unpack(base64) {
  const packed = Uint8Array.fromBase64?.(base64) ?? decoded(base64);
  const stream = new DecompressionStream("gzip");
  const writer = stream.writable.getWriter();
  const written = writer.write(packed).then(() => writer.close());
  const [bytes] = await Promise.all([new Response(stream.readable).arrayBuffer(), written]);
  return new Uint8Array(bytes);
}

// For browsers from before Uint8Array.fromBase64.
function decoded(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

class ColumnReader {
  constructor(bytes) {
    this.bytes = bytes;
    this.next = 0;
  }
  number() {
    const { bytes } = this;
    let byte = bytes[this.next++];
    if (byte < 128) return byte;
    let value = byte & 127, scale = 128;
    do {
      byte = bytes[this.next++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte >= 128);
    return value;
  }
  change() {
    const bits = this.number();
    if (bits < 0x80000000) return (bits >>> 1) ^ -(bits & 1);
    return bits % 2 === 0 ? bits / 2 : -(bits + 1) / 2;
  }
  // A column of numbers; most are one byte.
  numbers(array) {
    const { bytes } = this;
    for (let i = 0, { length } = array; i < length; ++i) {
      const byte = bytes[this.next];
      if (byte < 128) {
        array[i] = byte;
        ++this.next;
      } else {
        array[i] = this.number();
      }
    }
    return array;
  }
  // A column of changes.
  changes(array) {
    const { bytes } = this;
    for (let i = 0, { length } = array; i < length; ++i) {
      const byte = bytes[this.next];
      if (byte < 128) {
        array[i] = (byte >> 1) ^ -(byte & 1);
        ++this.next;
      } else {
        array[i] = this.change();
      }
    }
    return array;
  }
  // A column of changes since the element before, summed up.
  running(array) {
    this.changes(array);
    for (let i = 1, { length } = array; i < length; ++i) array[i] += array[i - 1];
    return array;
  }
}

// The columns of one lane: stream, kind and opStart by instruction (opStart[count] ends the last),
// template and microbatch by op; begin, end, bytes; memoryAt, held; waitOf, waitRank, waitOn.
function readColumns(reader, kinds) {
  const count = reader.number();
  const templates = Array.from({ length: reader.number() }, () => ({
    token: kinds[reader.number()][0], replica: reader.number(), stage: reader.number(),
  }));
  const stream = reader.numbers(new Uint8Array(count));
  const kind = new Uint8Array(count), opStart = new Uint32Array(count + 1);
  for (let i = 0; i < count; ++i) {
    const shape = reader.number();
    kind[i] = shape & 3;
    opStart[i + 1] = opStart[i] + (shape >>> 2);
  }
  const ops = opStart[count];
  const template = reader.numbers(new Uint16Array(ops));
  const microbatch = reader.changes(new Int32Array(ops)), last = new Int32Array(templates.length);
  for (let i = 0; i < ops; ++i) microbatch[i] = last[template[i]] += microbatch[i];
  const times = readTimes(reader, { count, stream, opStart, template });
  const samples = reader.number();
  const memoryAt = reader.running(new Float64Array(samples));
  const held = reader.running(new Float64Array(samples));
  return { count, templates, stream, kind, opStart, template, microbatch, ...times, memoryAt, held,
    ...readWaits(reader) };
}

function readTimes(reader, { count, stream, opStart, template }) {
  const begin = reader.changes(new Float64Array(count));
  const end = reader.changes(new Float64Array(count));  // durations at first
  const bytes = reader.changes(new Float64Array(count));
  const ended = new Float64Array(256), duration = new Float64Array(65537);
  const size = new Float64Array(65537);
  for (let i = 0; i < count; ++i) {
    const group = opStart[i] === opStart[i + 1] ? 0 : template[opStart[i]] + 1;
    begin[i] += ended[stream[i]];
    end[i] = ended[stream[i]] = begin[i] + (duration[group] += end[i]);
    bytes[i] = size[group] += bytes[i];
  }
  return { begin, end, bytes };
}

function readWaits(reader) {
  const waits = reader.number();
  const waitOf = reader.running(new Uint32Array(waits));
  const waitRank = reader.numbers(new Uint16Array(waits));
  const change = reader.changes(new Int32Array(waits)), waitOn = new Uint32Array(waits);
  const last = new Float64Array(65536);
  for (let i = 0; i < waits; ++i) waitOn[i] = last[waitRank[i]] += change[i];
  return { waitOf, waitRank, waitOn };
}
