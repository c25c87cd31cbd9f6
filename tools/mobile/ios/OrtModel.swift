// A model.ort of `oar export --format ort` on iOS. Not compiled here, as LiteRtModel.swift is not.
// Podfile: pod 'onnxruntime-objc'.
import Foundation
import onnxruntime_objc

/// Runs one `.ort` on the bytes of an image, [1, height, width, 3] uint8 RGB.
final class OrtModel {
    private let session: ORTSession
    private let environment: ORTEnv

    init(modelPath: String, threads: Int32 = 4) throws {
        environment = try ORTEnv(loggingLevel: ORTLoggingLevel.warning)
        let options = try ORTSessionOptions()
        try options.setIntraOpNumThreads(threads)
        session = try ORTSession(env: environment, modelPath: modelPath, sessionOptions: options)
    }

    /// The values of outputs by name, such as "scores" of a classifier and "boxes", "scores" and "labels" of a detector.
    func run(_ rgb: Data, width: Int, height: Int, outputs: Set<String>) throws -> [String: Data] {
        let shape: [NSNumber] = [1, NSNumber(value: height), NSNumber(value: width), 3]
        let image = try ORTValue(
            tensorData: NSMutableData(data: rgb), elementType: ORTTensorElementDataType.uInt8, shape: shape)
        let values = try session.run(withInputs: ["image": image], outputNames: outputs, runOptions: nil)
        return try values.mapValues { try $0.tensorData() as Data }
    }
}
