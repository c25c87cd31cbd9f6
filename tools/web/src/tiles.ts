/** Detection on images too large to be seen whole: overlapping tiles, and lines that a cut went through joined again. */

import type { Point, Quad } from "./crops.js";
import { crop, type Pixels, roundEven } from "./image.js";

const SHARED = 0.25; // of a tile's length lies in the next tile too
const TOUCH = 0.01; // of a tile's length: a quad that comes this close to a cut was probably cut
const LEAST_TILE = 160; // pixels along a strip: shorter tiles of a low one cost as much each, and cut its words
const FLAT = 12; // values between the darkest and the brightest of a tile in which nothing is written

type Find = (tile: Pixels) => Promise<readonly Quad[]>;
type Axis = 0 | 1;

/** Where tiles of `tile` pixels start so that they cover `length` and share about a quarter with the next. */
export function tileStarts(length: number, tile: number): number[] {
  if (length <= tile) return [0];
  const count = Math.ceil((length - tile) / (tile * (1 - SHARED))) + 1;
  return Array.from({ length: count }, (_, i) => roundEven((i * (length - tile)) / (count - 1)));
}

/** The quads of an image, tile by tile where it is longer than `maxAspect` times its other side; tiles of one colour are
 * left out. */
export async function detectInTiles(find: Find, image: Pixels, maxAspect: number): Promise<readonly Quad[]> {
  const { height, width } = image;
  const shorter = Math.min(height, width);
  if (Math.max(height, width) <= maxAspect * shorter) return find(image);
  const tile = Math.max(roundEven((shorter * maxAspect) / 2), LEAST_TILE);
  return detectAlong(skipFlat(find), image, tile, width >= height ? 0 : 1);
}

/** The quads of square tiles of `side` pixels that cover the image; tiles of one colour are left out. */
export function detectInGrid(find: Find, image: Pixels, side: number): Promise<readonly Quad[]> {
  const findInTile = skipFlat(find);
  return detectAlong((strip) => detectAlong(findInTile, strip, side, 0), image, side, 1);
}

function skipFlat(find: Find): Find {
  return async (tile) => (isFlat(tile) ? [] : find(tile));
}

function isFlat({ data }: Pixels): boolean {
  let [least, most] = [255, 0];
  for (const value of data) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return most - least < FLAT;
}

const lowest = (quad: Quad, axis: Axis) => Math.min(...quad.map((point) => point[axis]));
const highest = (quad: Quad, axis: Axis) => Math.max(...quad.map((point) => point[axis]));
const extent = (quad: Quad, axis: Axis) => highest(quad, axis) - lowest(quad, axis);

interface Seen {
  readonly quad: Quad;
  readonly wasCut: boolean;
}

async function detectAlong(find: Find, image: Pixels, tile: number, along: Axis): Promise<readonly Quad[]> {
  const { height, width } = image;
  const length = along === 0 ? width : height;
  const starts = tileStarts(length, tile);
  if (starts.length === 1) return find(image);
  const last = starts.length - 1;
  // A line in the overlap is seen twice; the middle of the overlap decides whose it is, unless it was cut.
  const seen: Seen[] = [];
  for (const [number, start] of starts.entries()) {
    const size = Math.min(tile, length - start);
    const strip = along === 0 ? crop(image, 0, start, height, size) : crop(image, start, 0, size, width);
    const lower = number === 0 ? -1 : (start + starts[number - 1] + tile) / 2;
    const upper = number === last ? length + 1 : (starts[number + 1] + start + tile) / 2;
    for (const quad of await find(strip)) {
      const [low, high] = [lowest(quad, along), highest(quad, along)];
      // A line across the cut: the next tile sees all of it.
      const crosses = high - low < Math.min((tile * SHARED) / 2, extent(quad, along === 0 ? 1 : 0));
      const touches = (number > 0 && low < tile * TOUCH) || (number < last && high > tile * (1 - TOUCH) - 1);
      const wasCut = touches && !crosses;
      const middle = (low + high) / 2 + start;
      if (!wasCut && !(lower <= middle && middle < upper)) continue;
      const moved = quad.map(([x, y]): Point => (along === 0 ? [x + start, y] : [x, y + start]));
      seen.push({ quad: moved as unknown as Quad, wasCut });
    }
  }
  return mergeTiles(seen, along);
}

/** One quad for each line: those that overlap, a little where one was cut, else by half or by more than their height. */
function mergeTiles(seen: readonly Seen[], along: Axis): Quad[] {
  const merged: Seen[] = [];
  for (const one of [...seen].sort((a, b) => lowest(a.quad, along) - lowest(b.quad, along))) {
    const same = merged.findIndex((other) =>
      isSameLine(one.quad, other.quad, along, one.wasCut || other.wasCut ? 0 : 0.5),
    );
    if (same < 0) merged.push(one);
    else merged[same] = { quad: join(merged[same].quad, one.quad, along), wasCut: true };
  }
  return merged.map(({ quad }) => quad);
}

/** Whether two quads stand on one line and share more than `least` of the shorter one's length, or a word. */
function isSameLine(a: Quad, b: Quad, along: Axis, least: number): boolean {
  const across = along === 0 ? 1 : 0;
  const common = (axis: Axis) =>
    Math.min(highest(a, axis), highest(b, axis)) - Math.max(lowest(a, axis), lowest(b, axis));
  const shorter = (axis: Axis) => Math.max(Math.min(extent(a, axis), extent(b, axis)), 1e-6);
  const pixels = Math.min(least * shorter(along), shorter(across));
  return common(along) > pixels && common(across) > 0.6 * shorter(across);
}

/** The quad from the near end of `first` to the far end of whichever reaches farther. */
function join(first: Quad, second: Quad, along: Axis): Quad {
  const far = highest(second, along) >= highest(first, along) ? second : first;
  return along === 0 ? [first[0], far[1], far[2], first[3]] : [first[0], first[1], far[2], far[3]];
}
