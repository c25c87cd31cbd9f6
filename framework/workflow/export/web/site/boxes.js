/** Objects: the boxes of a detector's program, in pixels of the image as it was read. */
import { outputOf } from "./runtime.js";
import { boxToSource, prepare } from "./transforms.js";
/** The boxes from the threshold on, best first as the program gives them; a score of 0 is padding. */
export function readBoxes(outputs, prepared, parameters, threshold) {
    const [boxes, scores, labels] = ["boxes", "scores", "labels"].map((name) => outputOf(outputs, name).data);
    const found = [];
    for (let i = 0; i < scores.length; i++) {
        const score = Number(scores[i]);
        if (!(score >= threshold) || score <= 0)
            continue;
        const box = boxToSource([0, 1, 2, 3].map((k) => Number(boxes[4 * i + k])), prepared);
        if (box[2] <= box[0] || box[3] <= box[1])
            continue;
        const index = Number(labels[i]);
        found.push({ label: parameters.labels[index] ?? String(index), category_id: index, score, box });
    }
    return found;
}
export async function detect(image, model, parameters, threshold = parameters.threshold) {
    const prepared = prepare(image, parameters.transforms);
    const { height, width, channels, data } = prepared.image;
    const outputs = await model.run({ image: { dtype: "uint8", data, shape: [1, height, width, channels] } });
    return readBoxes(outputs, prepared, parameters, threshold);
}
