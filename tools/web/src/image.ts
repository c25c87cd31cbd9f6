/** Images as arrays: rows of interleaved channels, as Python's `[H, W, C]`. */

export interface Pixels {
  readonly height: number;
  readonly width: number;
  readonly channels: number;
  readonly data: Uint8Array;
}

export type Size = readonly [height: number, width: number];

export function emptyPixels(height: number, width: number, channels: number): Pixels {
  return { height, width, channels, data: new Uint8Array(height * width * channels) };
}

/** The RGB of RGBA laid on white, as Pillow's alpha_composite does. */
export function rgbOnWhite(rgba: Uint8ClampedArray | Uint8Array, height: number, width: number): Pixels {
  const out = emptyPixels(height, width, 3);
  for (let i = 0, j = 0; i < rgba.length; i += 4, j += 3) {
    const alpha = rgba[i + 3];
    for (let c = 0; c < 3; c++) {
      out.data[j + c] =
        alpha === 255 ? rgba[i + c] : Math.round((rgba[i + c] * alpha + 255 * (255 - alpha)) / 255);
    }
  }
  return out;
}

/** The rows from `top` and the columns from `left`; all of it is inside. */
export function crop(image: Pixels, top: number, left: number, height: number, width: number): Pixels {
  const out = emptyPixels(height, width, image.channels);
  const row = width * image.channels;
  for (let y = 0; y < height; y++) {
    const start = ((top + y) * image.width + left) * image.channels;
    out.data.set(image.data.subarray(start, start + row), y * row);
  }
  return out;
}

/** The image on a canvas of `fill` (one number, or one a channel), its corner at (top, left); what sticks out is cut. */
export function place(
  image: Pixels,
  top: number,
  left: number,
  size: Size,
  fill: number | readonly number[],
): Pixels {
  const [height, width] = size;
  const { channels } = image;
  const out = emptyPixels(height, width, channels);
  if (typeof fill === "number") out.data.fill(fill);
  else for (let i = 0; i < out.data.length; i++) out.data[i] = fill[i % channels];
  const [y0, x0] = [Math.max(0, top), Math.max(0, left)];
  const [y1, x1] = [Math.min(height, top + image.height), Math.min(width, left + image.width)];
  for (let y = y0; y < y1 && x1 > x0; y++) {
    const start = ((y - top) * image.width + x0 - left) * channels;
    out.data.set(image.data.subarray(start, start + (x1 - x0) * channels), (y * width + x0) * channels);
  }
  return out;
}

/** The image turned by quarters, clockwise; negative: counter-clockwise. */
export function rotate90(image: Pixels, turns: number): Pixels {
  const { height, width, channels, data } = image;
  const quarter = ((turns % 4) + 4) % 4;
  if (quarter === 0) return { ...image, data: data.slice() };
  const out = quarter === 2 ? emptyPixels(height, width, channels) : emptyPixels(width, height, channels);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [ty, tx] =
        quarter === 1
          ? [x, height - 1 - y]
          : quarter === 2
            ? [height - 1 - y, width - 1 - x]
            : [width - 1 - x, y];
      for (let c = 0; c < channels; c++) {
        out.data[(ty * out.width + tx) * channels + c] = data[(y * width + x) * channels + c];
      }
    }
  }
  return out;
}

/** Python's `round`: of two that are as near the even one. */
export function roundEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
