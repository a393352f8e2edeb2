/** The generated decoder of the official package; later versions of the package only encode. */
declare module "otlp-decoder/build/src/generated/root.js" {
  namespace root {
    type Json = Record<string, unknown>
    interface MessageType {
      decode(bytes: Uint8Array): unknown
      toObject(message: unknown, options: object): Json
    }
    const opentelemetry: {
      readonly proto: {
        readonly collector: {
          readonly trace: { readonly v1: { readonly ExportTraceServiceRequest: MessageType } }
          readonly logs: { readonly v1: { readonly ExportLogsServiceRequest: MessageType } }
          readonly metrics: { readonly v1: { readonly ExportMetricsServiceRequest: MessageType } }
        }
      }
    }
  }
  export default root
}
