/** Image files, frames of a camera and what was pasted, as the model was shown images: RGB of 8 bits, turned by EXIF. */
import { rgbOnWhite } from "./image.js";
const MOST_PIXELS = 200_000_000;
/** The image of a file. Colour profiles are left out, as Python does; transparency is laid on white. */
export async function decode(file) {
    let bitmap;
    try {
        bitmap = await createImageBitmap(file, {
            colorSpaceConversion: "none",
            imageOrientation: "from-image",
            premultiplyAlpha: "none",
        });
    }
    catch {
        throw new Error(`This browser cannot read the image${file.type ? ` (${file.type})` : ""}.`);
    }
    return fromBitmap(bitmap);
}
export function fromBitmap(bitmap) {
    const video = bitmap instanceof HTMLVideoElement;
    const [width, height] = video ? [bitmap.videoWidth, bitmap.videoHeight] : [bitmap.width, bitmap.height];
    if (width * height > MOST_PIXELS)
        throw new Error(`The image of ${width}x${height} pixels is too large.`);
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d", { willReadFrequently: true, colorSpace: "srgb" });
    if (context === null)
        throw new Error("This browser gives no canvas.");
    context.drawImage(bitmap, 0, 0);
    return rgbOnWhite(context.getImageData(0, 0, width, height).data, height, width);
}
/** RGBA of RGB, for a canvas. */
export function toImageData(image) {
    const out = new ImageData(image.width, image.height);
    for (let i = 0, j = 0; j < image.data.length; i += 4, j += 3) {
        out.data[i] = image.data[j];
        out.data[i + 1] = image.data[j + 1];
        out.data[i + 2] = image.data[j + 2];
        out.data[i + 3] = 255;
    }
    return out;
}
