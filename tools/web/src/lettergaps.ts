/** Quads of a detector mended before they are read: single letters that it missed, and lines that are too long. */

import { cutQuad, type Point, type Quad, quadSize } from "./crops.js";
import { type Pixels, roundEven } from "./image.js";
import { median } from "./regions.js";

const LEAST = 3; // letters of a row
const SHAPE = [0.4, 1.6]; // a letter's width, to its height
const ALIKE = 1.5; // the highest letter of a row to the lowest
const [MISSING, MOST] = [1.6, 5.0]; // times the usual pitch
const INK = 60; // of 255: how far ink is from its ground
const [LOW, HIGH, WIDE] = [0.45, 1.05, 1.2]; // of the letters' boxes
const [RULED_ROW, RULED_COLUMN] = [0.6, 0.9]; // more ink is a line of the form
const BEYOND = 0.35; // of the height: what goes on there is a line of the form
const [MARGIN, NARROWEST] = [0.2, 0.9]; // of the height, around a letter; the least width
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
  const single = boxes.filter(([x0, y0, x1, y1]) => {
    const shape = (x1 - x0) / Math.max(y1 - y0, 1);
    return shape >= SHAPE[0] && shape <= SHAPE[1];
  });
  if (quads.length < LEAST || single.length < LEAST) return [...quads];
  const more: Quad[] = [];
  for (const row of rowsOfBoxes(single)) {
    const letters = row.map((i) => single[i]);
    const heights = letters.map((box) => box[3] - box[1]);
    if (row.length < LEAST || Math.max(...heights) > ALIKE * Math.min(...heights)) continue;
    const centres = letters.map((box) => (box[0] + box[2]) / 2);
    const steps = centres.slice(1).map((x, i) => x - centres[i]);
    const pitch = Math.max(Math.min(...steps), 0.6 * median(heights));
    for (let i = 0; i + 1 < letters.length; i++) {
      const [before, after] = [letters[i], letters[i + 1]];
      const apart = (after[0] + after[2] - before[0] - before[2]) / 2;
      if (apart < MISSING * pitch || apart > MOST * pitch) continue;
      const gap: Box = [before[2], Math.min(before[1], after[1]), after[0], Math.max(before[3], after[3])];
      const free = !boxes.some((b) => b[0] < gap[2] && b[2] > gap[0] && b[1] < gap[3] && b[3] > gap[1]);
      if (free) more.push(...lettersIn(image, gap));
    }
  }
  return [...quads, ...more];
}

function lettersIn(image: Pixels, gap: Box): Quad[] {
  const [left, top, right, bottom] = gap.map(roundEven);
  const height = bottom - top;
  const reach = roundEven(BEYOND * height);
  const first = Math.max(top - reach, 0);
  const last = Math.min(bottom + reach, image.height);
  const [from, to] = [Math.max(left, 0), Math.min(right, image.width)];
  const [rows, columns] = [last - first, to - from];
  if (rows <= 0 || columns <= 0) return [];
  const grey = new Float64Array(rows * columns);
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) grey[y * columns + x] = greyAt(image, first + y, from + x);
  }
  const ground = median([...grey]);
  const ink = grey.map((value) => (Math.abs(value - ground) > INK ? 1 : 0));
  for (let y = 0; y < rows; y++) {
    const line = ink.subarray(y * columns, (y + 1) * columns);
    if (line.reduce((a, b) => a + b, 0) / columns > RULED_ROW) line.fill(0);
  }
  const filled: boolean[] = [];
  for (let x = 0; x < columns; x++) {
    let count = 0;
    for (let y = 0; y < rows; y++) count += ink[y * columns + x];
    const ruled = count / rows > RULED_COLUMN;
    if (ruled) for (let y = 0; y < rows; y++) ink[y * columns + x] = 0;
    filled.push(count > 0 && !ruled);
  }
  const quads: Quad[] = [];
  for (let start = 0; start < columns; start++) {
    if (!filled[start] || (start > 0 && filled[start - 1])) continue;
    let end = start;
    while (end < columns && filled[end]) end++;
    const inked = Array.from({ length: rows }, (_, y) => y).filter((y) =>
      ink.subarray(y * columns + start, y * columns + end).some((value) => value > 0),
    );
    const [low, high] = [inked[0], inked[inked.length - 1]];
    const share = (high - low + 1) / height;
    if (end - start > WIDE * height || share < LOW || share > HIGH) continue;
    const side = Math.max(MARGIN * height, (NARROWEST * height - (end - start)) / 2);
    const [x0, x1] = [f(left + start - side), f(left + end + side)];
    const [y0, y1] = [f(first + low - MARGIN * height), f(first + high + 1 + MARGIN * height)];
    quads.push([
      [x0, y0],
      [x1, y0],
      [x1, y1],
      [x0, y1],
    ]);
  }
  return quads;
}

/** OpenCV's grey, with weights of 15 bits. */
function greyAt(image: Pixels, y: number, x: number): number {
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
