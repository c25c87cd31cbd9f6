/** What is done to an image before the program, as the artifact's transforms say, and the way back. */

import { clamp, type Pixels, place, roundEven, type Size } from "./image.js";
import { type Interpolation, resize, resizeFloat } from "./resize.js";

/** A transform of the manifest: its type and all of its fields. */
export type Transform =
  | {
      readonly type: "Resize";
      size_hw: Size;
      mode: "exact" | "short" | "long" | "fit";
      interpolation: Interpolation;
    }
  | { readonly type: "ResizeShort"; short: number; longest: number; interpolation: Interpolation }
  | { readonly type: "LetterBox"; size_hw: Size; align: Align; fill: Fill; interpolation: Interpolation }
  | { readonly type: "CenterCrop"; size_hw: Size; fill: Fill }
  | { readonly type: "Pad"; padding: number | readonly [number, number, number, number]; fill: Fill }
  | { readonly type: "PadToSize"; size_hw: Size; align: Align; fill: Fill }
  | { readonly type: "PadToMultiple"; multiple: number; per_octave: number | null; align: Align; fill: Fill };

type Align = "top_left" | "center";
type Fill = number | readonly number[];

/** An image of `source` scaled to `scaled`, whose corner then stands at (top, left) of a canvas of `size`. */
interface Step {
  readonly source: Size;
  readonly scaled: Size;
  readonly top: number;
  readonly left: number;
  readonly size: Size;
  readonly fill: Fill;
  readonly interpolation: Interpolation;
}

/** An image as the program sees it, and how it became so. */
export interface Prepared {
  readonly image: Pixels;
  readonly source: Size;
  readonly steps: readonly Step[];
}

const scaleSize = ([height, width]: Size, factor: number): Size => [
  Math.max(1, roundEven(height * factor)),
  Math.max(1, roundEven(width * factor)),
];

function plan(transform: Transform, source: Size): Step {
  const [height, width] = source;
  const resized = (scaled: Size, interpolation: Interpolation): Step => ({
    source,
    scaled,
    top: 0,
    left: 0,
    size: scaled,
    fill: 0,
    interpolation,
  });
  const placed = (top: number, left: number, size: Size, fill: Fill): Step => ({
    source,
    scaled: source,
    top,
    left,
    size,
    fill,
    interpolation: "linear",
  });
  const aligned = (size: Size, align: Align, fill: Fill) =>
    align === "center"
      ? placed(Math.floor((size[0] - height) / 2), Math.floor((size[1] - width) / 2), size, fill)
      : placed(0, 0, size, fill);
  switch (transform.type) {
    case "Resize": {
      const factors = [transform.size_hw[0] / height, transform.size_hw[1] / width];
      if (transform.mode === "exact") return resized(transform.size_hw, transform.interpolation);
      const factor = transform.mode === "short" ? Math.max(...factors) : Math.min(...factors);
      return resized(scaleSize(source, factor), transform.interpolation);
    }
    case "ResizeShort": {
      const factor = Math.min(transform.short / Math.min(...source), transform.longest / Math.max(...source));
      return resized(scaleSize(source, factor), transform.interpolation);
    }
    case "LetterBox": {
      const [rows, columns] = transform.size_hw;
      const factor = Math.min(rows / height, columns / width);
      const scaled: Size = [
        Math.min(rows, Math.max(1, roundEven(height * factor))),
        Math.min(columns, Math.max(1, roundEven(width * factor))),
      ];
      const middle = transform.align === "center";
      return {
        source,
        scaled,
        top: middle ? Math.floor((rows - scaled[0]) / 2) : 0,
        left: middle ? Math.floor((columns - scaled[1]) / 2) : 0,
        size: transform.size_hw,
        fill: transform.fill,
        interpolation: transform.interpolation,
      };
    }
    case "CenterCrop": {
      const [rows, columns] = transform.size_hw;
      const cut = (side: number, room: number) => -Math.floor((side - room) / 2);
      return placed(cut(height, rows), cut(width, columns), transform.size_hw, transform.fill);
    }
    case "Pad": {
      const one = transform.padding;
      const [left, top, right, bottom] = typeof one === "number" ? [one, one, one, one] : one;
      return placed(top, left, [height + top + bottom, width + left + right], transform.fill);
    }
    case "PadToSize": {
      const [rows, columns] = transform.size_hw;
      if (height > rows || width > columns) {
        throw new Error(
          `The image of ${width}x${height} pixels is larger than ${columns}x${rows}, which the model takes.`,
        );
      }
      return aligned(transform.size_hw, transform.align, transform.fill);
    }
    case "PadToMultiple": {
      const side = (length: number) => {
        let step = transform.multiple;
        if (transform.per_octave !== null) while (step * 2 * transform.per_octave < length) step *= 2;
        return Math.ceil(length / step) * step;
      };
      return aligned([side(height), side(width)], transform.align, transform.fill);
    }
  }
}

/** The image after the transforms. */
export function prepare(image: Pixels, transforms: readonly Transform[]): Prepared {
  const source: Size = [image.height, image.width];
  const steps: Step[] = [];
  let current = image;
  for (const transform of transforms) {
    const step = plan(transform, [current.height, current.width]);
    const scaled = resize(current, step.scaled, step.interpolation);
    const same =
      step.top === 0 && step.left === 0 && step.size[0] === scaled.height && step.size[1] === scaled.width;
    current = same ? scaled : place(scaled, step.top, step.left, step.size, step.fill);
    steps.push(step);
  }
  return { image: current, source, steps };
}

/** A box (x0, y0, x1, y1) of the prepared image in pixels of the source and inside of it. */
export function boxToSource(
  box: readonly number[],
  { source, steps }: Prepared,
): [number, number, number, number] {
  const back = (value: number, axis: 0 | 1) => {
    let at = value;
    for (const step of [...steps].reverse()) {
      const start = axis === 0 ? step.top : step.left;
      at = (at - start) / (step.scaled[axis] / step.source[axis]);
    }
    return clamp(at, 0, source[axis]);
  };
  return [back(box[0], 1), back(box[1], 0), back(box[2], 1), back(box[3], 0)];
}

interface Cut {
  readonly from: readonly [number, number];
  readonly to: readonly [number, number];
}

function wholePixels(from: readonly [number, number], to: readonly [number, number]): Cut | null {
  const ends = [...from, ...to];
  const [s0, s1, t0, t1] = ends.map(roundEven);
  const off = Math.max(...ends.map((end) => Math.abs(end - roundEven(end))));
  return off > 1e-6 || s1 <= s0 || t1 <= t0 ? null : { from: [s0, s1], to: [t0, t1] };
}

/** Where an axis of the prepared image lies in the source: what is seen of it, and all of it, on whole pixels. */
function cuts(prepared: Prepared, axis: 0 | 1): { seen: Cut | null; whole: Cut | null; scale: number } {
  let [scale, shift] = [1, 0];
  for (const step of prepared.steps) {
    const factor = step.scaled[axis] / step.source[axis];
    scale *= factor;
    shift = shift * factor + (axis === 0 ? step.top : step.left);
  }
  const [back, start] = [1 / scale, -shift / scale];
  const [side, room] = [axis === 0 ? prepared.image.height : prepared.image.width, prepared.source[axis]];
  const source: [number, number] = [Math.max(0, -start / back), Math.min(side, (room - start) / back)];
  return {
    seen: wholePixels(source, [source[0] * back + start, source[1] * back + start]),
    whole: wholePixels([0, side], [start, side * back + start]),
    scale: back,
  };
}

/** One channel of the prepared image's size brought back to the source by bilinear interpolation. */
export function floatsToSource(values: Float32Array, prepared: Prepared): Float32Array {
  const [down, across] = [cuts(prepared, 0), cuts(prepared, 1)];
  const { height, width } = prepared.image;
  const [rows, columns] = prepared.source;
  const wasteful = across.scale * width * down.scale * height > 4 * rows * columns;
  const useSeen = down.whole === null || across.whole === null || wasteful;
  const [y, x] = useSeen ? [down.seen, across.seen] : [down.whole, across.whole];
  if (y === null || x === null) throw new Error("The model's transforms cannot be undone on whole pixels.");
  const [partRows, partColumns] = [y.from[1] - y.from[0], x.from[1] - x.from[0]];
  const part = new Float32Array(partRows * partColumns);
  for (let row = 0; row < partRows; row++) {
    const start = (y.from[0] + row) * width + x.from[0];
    part.set(values.subarray(start, start + partColumns), row * partColumns);
  }
  const size: Size = [y.to[1] - y.to[0], x.to[1] - x.to[0]];
  const scaled = resizeFloat(part, [partRows, partColumns], size);
  if (y.to[0] === 0 && x.to[0] === 0 && size[0] === rows && size[1] === columns) return scaled;
  const out = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    const line = clamp(row - y.to[0], 0, size[0] - 1) * size[1];
    for (let column = 0; column < columns; column++) {
      out[row * columns + column] = scaled[line + clamp(column - x.to[0], 0, size[1] - 1)];
    }
  }
  return out;
}

/** Labels of a prepared image that was filled up and not scaled, cut to the source. */
export function labelsToSource(
  labels: ArrayLike<number | bigint>,
  { image, source, steps }: Prepared,
): Uint16Array {
  const top = steps.reduce((sum, step) => sum + step.top, 0);
  const left = steps.reduce((sum, step) => sum + step.left, 0);
  const out = new Uint16Array(source[0] * source[1]);
  for (let y = 0; y < source[0]; y++) {
    for (let x = 0; x < source[1]; x++) {
      out[y * source[1] + x] = Number(labels[(top + y) * image.width + left + x]);
    }
  }
  return out;
}
