/** Quads of a detector mended before they are read: single letters that it missed, and lines that are too long. */

import { cutQuad, type Point, type Quad, quadSize } from "./crops.js";
import { type Pixels, roundEven } from "./image.js";
import { median } from "./regions.js";

const [LEAST, ALONE] = [3, 4]; // letters of a row; of one of which the detector has one alone
const [THINNEST, LONG] = [0.2, 6.0]; // times its height, a quad's width: a longer one is a line of text
const REACH = 8.0; // times the height: how far beyond its ends a row is looked at
const INK = 60; // of 255: how far ink is from its ground
const [RULE, RULED] = [1.3, 0.9]; // ink as long in a row of pixels, or in a column, is a line of the form
const [LOWEST, WIDE] = [0.3, 1.2]; // of the quads' height: the height of a letter, at least; its width, at most
const [APART, EVEN] = [1.2, 0.25]; // of letters' height: the least pitch; share by which a step may differ
const [TALLER, FEET] = [1.6, 0.25]; // neighbours of a row: heights to each other; how far their feet differ
const [MARGIN, NARROWEST] = [0.2, 0.9]; // of the height, around a letter; the least width
const NARROW = 0.6; // of its height: a quad around a letter that is made wider
const LINE = 0.3; // of its height: where two runs of rows of ink are that high, they are letters of two lines
const SAME_ROW = 0.5;
const [GAP, SEARCH] = [0.3, 3.0]; // of a line's height: the space between words, and where it is looked for

type Box = readonly [number, number, number, number];
const f = Math.fround;

export function boundsOf(quad: readonly Point[]): Box {
  const [xs, ys] = [quad.map((p) => p[0]), quad.map((p) => p[1])];
  return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
}

/** The numbers of boxes that stand on one height together, from left to right; rows from top to bottom. */
export function rowsOfBoxes(boxes: readonly Box[]): number[][] {
  const rows: number[][] = [];
  const order = boxes
    .map((_, i) => i)
    .sort((a, b) => boxes[a][1] + boxes[a][3] - boxes[b][1] - boxes[b][3] || a - b);
  for (const number of order) {
    const row = rows.at(-1);
    if (row !== undefined) {
      const [box, last] = [boxes[number], boxes[row[row.length - 1]]];
      const overlap = Math.min(box[3], last[3]) - Math.max(box[1], last[1]);
      if (overlap > SAME_ROW * Math.min(box[3] - box[1], last[3] - last[1])) {
        row.push(number);
        continue;
      }
    }
    rows.push([number]);
  }
  return rows.map((row) => row.sort((a, b) => boxes[a][0] - boxes[b][0]));
}

/** The quads with those of single letters that were missed where letters stand in a row at one pitch. */
export function addMissed(image: Pixels, quads: readonly Quad[]): Quad[] {
  const boxes = quads.map(boundsOf);
  const shape = boxes.map(([x0, y0, x1, y1]) => (x1 - x0) / Math.max(y1 - y0, 1));
  const short = boxes.map((_, i) => i).filter((i) => shape[i] >= THINNEST && shape[i] <= LONG);
  const changed: Quad[] = [...quads];
  const more: Quad[] = [];
  for (const row of rowsOfBoxes(short.map((i) => boxes[i]))) {
    const seeds = row.map((i) => boxes[short[i]]);
    const [top, bottom] = [1, 3].map((side) => roundEven(median(seeds.map((box) => box[side]))));
    const height = bottom - top;
    const left = Math.max(roundEven(Math.min(...seeds.map((box) => box[0])) - REACH * height), 0);
    const right = roundEven(Math.max(...seeds.map((box) => box[2])) + REACH * height);
    const beside = boxes.map((_, i) => i).filter((i) => boxes[i][1] < bottom && boxes[i][3] > top);
    const letters = inkOfLetters(image, [left, top, right, bottom]);
    const owners = letters.map(([x0, , x1]) =>
      beside.filter((i) => boxes[i][0] <= (x0 + x1) / 2 && boxes[i][2] >= (x0 + x1) / 2),
    );
    for (const [first, last] of evenRows(letters)) {
      const known = owners.slice(first, last).filter((owner) => owner.length > 0).length;
      if (known === 0 || last - first < (known > 1 ? LEAST : ALONE)) continue;
      for (let i = first; i < last; i++) {
        const [owner] = owners[i];
        if (owner === undefined) more.push(around(letters[i], height));
        else if (owners[i].length === 1 && shape[owner] < NARROW) {
          const alone = owners.filter((other) => other.length === 1 && other[0] === owner).length === 1;
          if (alone) changed[owner] = around(letters[i], height);
        }
      }
    }
  }
  return [...changed, ...more];
}

/** The boxes of ink in a strip that may be letters, and of other ink, which have no height; no lines of a form. */
function inkOfLetters(image: Pixels, [left, top, right, bottom]: Box): Box[] {
  const height = bottom - top;
  const first = Math.max(top, 0);
  const rows = Math.min(bottom, image.height) - first;
  const columns = Math.min(right, image.width) - left;
  if (rows <= 0 || columns <= 0) return [];
  const grey = new Float64Array(rows * columns);
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) grey[y * columns + x] = greyAt(image, first + y, left + x);
  }
  const ground = median([...grey]);
  const ink = grey.map((value) => (Math.abs(value - ground) > INK ? 1 : 0));
  for (let x = 0; x < columns; x++) {
    let count = 0;
    for (let y = 0; y < rows; y++) count += ink[y * columns + x];
    if (count / rows > RULED) for (let y = 0; y < rows; y++) ink[y * columns + x] = 0;
  }
  const longest = roundEven(RULE * height);
  for (let y = 0; y < rows; y++) {
    const line = ink.subarray(y * columns, (y + 1) * columns);
    for (const [start, end] of runsOf(line)) if (end - start > longest) line.fill(0, start, end);
  }
  const filled = Array.from({ length: columns }, (_, x) => {
    for (let y = 0; y < rows; y++) if (ink[y * columns + x]) return 1;
    return 0;
  });
  return runsOf(filled).map(([start, end]) => {
    const inked = Array.from({ length: rows }, (_, y) =>
      ink.subarray(y * columns + start, y * columns + end).some((value) => value > 0) ? 1 : 0,
    );
    const runs = runsOf(inked);
    const [low, high] = [runs[0][0], runs[runs.length - 1][1]];
    const parts = runs.filter(([from, to]) => to - from >= LINE * (high - low)).length;
    const letter = parts === 1 && high - low >= LOWEST * height && end - start <= WIDE * height;
    return [left + start, first + low, left + end, first + (letter ? high : low)];
  });
}

/** Where values are not 0: the first of a run, and the one after its last. */
function runsOf(values: ArrayLike<number>): [number, number][] {
  const runs: [number, number][] = [];
  for (let start = 0; start < values.length; start++) {
    if (!values[start]) continue;
    let end = start;
    while (end < values.length && values[end]) end++;
    runs.push([start, end]);
    start = end;
  }
  return runs;
}

/** The first and the last number (without it) of letters that stand on one line at one pitch. */
function evenRows(letters: readonly Box[]): [number, number][] {
  const rows: [number, number][] = [];
  let [first, pitch] = [0, 0];
  for (let number = 1; number < letters.length; number++) {
    const [before, letter] = [letters[number - 1], letters[number]];
    const step = (letter[0] + letter[2] - before[0] - before[2]) / 2;
    const heights = [before[3] - before[1], letter[3] - letter[1]];
    const [low, high] = [Math.min(...heights), Math.max(...heights)];
    const level = high > 0 && high <= TALLER * low && Math.abs(letter[3] - before[3]) <= FEET * high;
    const alike = level && step >= APART * high;
    if (alike && number - first > 1 && Math.abs(step - pitch) <= EVEN * pitch) continue;
    rows.push([first, number]);
    [first, pitch] = alike ? [number - 1, step] : [number, 0];
  }
  return [...rows, [first, letters.length]];
}

/** The quad around the ink of a letter, as wide as a recogniser needs, in a row of quads of a height. */
function around([x0, y0, x1, y1]: Box, height: number): Quad {
  const side = Math.max(MARGIN * height, (NARROWEST * height - (x1 - x0)) / 2);
  const [left, right] = [f(x0 - side), f(x1 + side)];
  const [top, bottom] = [f(y0 - MARGIN * height), f(y1 + MARGIN * height)];
  return [
    [left, top],
    [right, top],
    [right, bottom],
    [left, bottom],
  ];
}

/** OpenCV's grey, with weights of 15 bits. */
export function greyAt(image: Pixels, y: number, x: number): number {
  const at = (y * image.width + x) * 3;
  return (image.data[at] * 9798 + image.data[at + 1] * 19235 + image.data[at + 2] * 3735 + 16384) >> 15;
}

/** The quads, of which those longer than `longest` times their height are cut near even parts, where least ink is. */
export function splitLong(image: Pixels, quads: readonly Quad[], longest: number): Quad[] {
  return quads.flatMap((quad) => {
    const [height, width] = quadSize(quad);
    const count = Math.ceil(Math.max(height, width) / (Math.min(height, width) * longest));
    if (count <= 1) return [quad];
    const level = width >= height;
    const cuts = [0];
    for (let i = 1; i < count; i++) cuts.push(findGap(image, quad, level, i / count));
    cuts.push(1);
    return cuts.slice(1).map((end, i) => between(quad, level, cuts[i], end));
  });
}

/** The part of a quad from `low` to `high`, shares of its length. */
function between(quad: Quad, level: boolean, low: number, high: number): Quad {
  const ends = level ? [[0, 1] as const, [3, 2] as const] : [[0, 3] as const, [1, 2] as const];
  const out: Point[] = [...quad];
  for (const [near, far] of ends) {
    const at = (share: number): Point => [
      f(quad[near][0] + share * (quad[far][0] - quad[near][0])),
      f(quad[near][1] + share * (quad[far][1] - quad[near][1])),
    ];
    [out[near], out[far]] = [at(low), at(high)];
  }
  return out as unknown as Quad;
}

function findGap(image: Pixels, quad: Quad, level: boolean, share: number): number {
  const [height, length] = [...quadSize(quad)].sort((a, b) => a - b);
  const reach = (SEARCH * height) / length;
  const [low, high] = [Math.max(share - reach, 0), Math.min(share + reach, 1)];
  const crop = cutQuad(image, between(quad, level, low, high));
  const [steps, across] = level ? [crop.width, crop.height] : [crop.height, crop.width];
  const ink: number[] = [];
  for (let i = 0; i < steps; i++) {
    let [least, most] = [256, -1];
    for (let k = 0; k < across; k++) {
      const at = (level ? k * crop.width + i : i * crop.width + k) * 3;
      const mean = (crop.data[at] + crop.data[at + 1] + crop.data[at + 2]) / 3;
      [least, most] = [Math.min(least, mean), Math.max(most, mean)];
    }
    ink.push(most - least);
  }
  const window = Math.max(1, roundEven(GAP * height));
  if (ink.length < window) return share;
  let [best, bestCost] = [0, Number.POSITIVE_INFINITY];
  for (let i = 0; i + window <= ink.length; i++) {
    const mean = ink.slice(i, i + window).reduce((a, b) => a + b, 0) / window;
    const cost = mean + Math.abs((i + window / 2) / ink.length - 0.5);
    if (cost < bestCost) [best, bestCost] = [i, cost];
  }
  return low + ((high - low) * (best + window / 2)) / ink.length;
}
