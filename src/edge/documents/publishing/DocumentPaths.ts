export const openApiPaths = ["/openapi.json", "/openapi.yaml"] as const

/** Texts that contain the service's address. */
export const textPaths = ["/llms.txt", "/llms-full.txt"] as const

/** The reference, which is also the start of the documentation site. */
export const referencePath = "/docs/"
