export { startCluster } from '../../../test/servers/redis-cluster.ts'
export type { TestCluster } from '../../../test/servers/redis-cluster.ts'
