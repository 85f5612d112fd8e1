export { ApiError } from './api.ts'
export type { Api, ApiReply, ApiRequest } from './api.ts'
export { createMcpEndpoint } from './endpoint.ts'
export type { McpEndpoint, McpEndpointOptions } from './endpoint.ts'
