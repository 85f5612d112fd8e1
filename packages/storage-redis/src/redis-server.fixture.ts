export { startRedis } from '../../../test/servers/redis-server.ts'
export type { TestServer } from '../../../test/servers/redis-server.ts'
