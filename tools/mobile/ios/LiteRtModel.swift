// A model.tflite of `oar export --format tflite` on iOS. Not compiled here: this project has no Swift compiler with the
// pod in its tests. Podfile: pod 'TensorFlowLiteSwift'. model.tflite and labels.txt in the bundle.
import CoreGraphics
import Foundation
import TensorFlowLite

struct DetectedBox {
    let label: String
    let score: Float
    /// In pixels of the image.
    let rect: CGRect
}

/// Runs one `.tflite`; one call at a time.
final class LiteRtModel {
    private let interpreter: Interpreter
    private let labels: [String]
    private let width: Int
    private let height: Int
    private let outputs: [String: Int]

    init(modelPath: String, labels: [String], threads: Int = 4) throws {
        var options = Interpreter.Options()
        options.threadCount = threads
        interpreter = try Interpreter(modelPath: modelPath, options: options)
        try interpreter.allocateTensors()
        let shape = try interpreter.input(at: 0).shape.dimensions  // [1, height, width, 3]
        (height, width) = (shape[1], shape[2])
        self.labels = labels
        var outputs: [String: Int] = [:]
        for index in 0..<interpreter.outputTensorCount {
            outputs[try interpreter.output(at: index).name] = index
        }
        self.outputs = outputs
    }

    /// The classes of an image, best first.
    func classify(_ image: CGImage, top: Int = 5) throws -> [(label: String, score: Float)] {
        try run(image)
        let scores: [Float] = try values("scores")
        return scores.indices.sorted { scores[$0] > scores[$1] }.prefix(top).map { (name($0), scores[$0]) }
    }

    /// The objects of an image; a score of 0 is padding.
    func detect(_ image: CGImage, threshold: Float = 0.5) throws -> [DetectedBox] {
        try run(image)
        let boxes: [Float] = try values("boxes")
        let scores: [Float] = try values("scores")
        let classes: [Int32] = try values("labels")
        let scaleX = CGFloat(image.width) / CGFloat(width)
        let scaleY = CGFloat(image.height) / CGFloat(height)
        return scores.indices.filter { scores[$0] >= threshold && scores[$0] > 0 }.map { row in
            let corner = boxes[(4 * row)..<(4 * row + 4)].map { CGFloat($0) }
            let rect = CGRect(
                x: corner[0] * scaleX, y: corner[1] * scaleY,
                width: (corner[2] - corner[0]) * scaleX, height: (corner[3] - corner[1]) * scaleY)
            return DetectedBox(label: name(Int(classes[row])), score: scores[row], rect: rect)
        }
    }

    private func run(_ image: CGImage) throws {
        try interpreter.copy(rgb(image), toInputAt: 0)
        try interpreter.invoke()
    }

    private func values<T>(_ output: String) throws -> [T] {
        let data = try interpreter.output(at: outputs[output] ?? 0).data
        return data.withUnsafeBytes { Array($0.bindMemory(to: T.self)) }
    }

    private func name(_ index: Int) -> String {
        labels.indices.contains(index) ? labels[index] : String(index)
    }

    /// [1, height, width, 3] uint8 RGB: the program normalises.
    private func rgb(_ image: CGImage) -> Data {
        var rgba = [UInt8](repeating: 0, count: 4 * width * height)
        let context = CGContext(
            data: &rgba, width: width, height: height, bitsPerComponent: 8, bytesPerRow: 4 * width,
            space: CGColorSpaceCreateDeviceRGB(), bitmapInfo: CGImageAlphaInfo.noneSkipLast.rawValue)
        context?.interpolationQuality = .medium
        context?.draw(image, in: CGRect(x: 0, y: 0, width: width, height: height))
        var bytes = Data(capacity: 3 * width * height)
        for pixel in 0..<(width * height) {
            bytes.append(contentsOf: rgba[(4 * pixel)..<(4 * pixel + 3)])
        }
        return bytes
    }
}
