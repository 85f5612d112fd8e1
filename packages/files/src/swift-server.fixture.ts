export { missingSwift, startSwift } from '../../../test/servers/swift-server.ts'
export type { SwiftServer } from '../../../test/servers/swift-server.ts'
