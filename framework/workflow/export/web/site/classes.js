/** What an image shows as a whole. */
import { outputOf } from "./runtime.js";
import { prepare } from "./transforms.js";
/** The best classes, best first, ties to the lower class; of a model of several classes all from its threshold on. */
export function bestClasses(scores, parameters) {
    const values = Array.from(scores, Number);
    const order = values.map((_, i) => i).sort((a, b) => values[b] - values[a] || a - b);
    const { threshold, labels, top } = parameters;
    const best = threshold === null ? order.slice(0, top) : order.filter((i) => values[i] >= threshold);
    return best.map((i) => ({ label: labels[i] ?? String(i), category_id: i, score: values[i] }));
}
export async function classify(image, model, parameters) {
    const { height, width, channels, data } = prepare(image, parameters.transforms).image;
    const outputs = await model.run({ image: { dtype: "uint8", data, shape: [1, height, width, channels] } });
    return bestClasses(outputOf(outputs, "scores").data, parameters);
}
