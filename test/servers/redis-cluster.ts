import { Redis } from 'ioredis'
import { startRedis } from './redis-server.ts'
import type { TestServer } from './redis-server.ts'

/** A Redis Cluster for a test: primaries only, each with its share of the slots. */
export interface TestCluster {
  readonly url: string
  readonly nodes: readonly TestServer[]
  /** A connection to each of the nodes. */
  readonly operators: readonly Redis[]
  remove(): Promise<void>
}

const SLOTS = 16_384
const SETTINGS = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1']

export async function startCluster(primaries: number): Promise<TestCluster> {
  const nodes = await Promise.all(Array.from({ length: primaries }, () => startRedis(SETTINGS)))
  const operators = nodes.map(({ port }) => new Redis(port))
  const share = Math.ceil(SLOTS / primaries)
  for (const [index, operator] of operators.entries()) {
    await operator.cluster('ADDSLOTSRANGE', index * share, Math.min((index + 1) * share, SLOTS) - 1)
  }
  for (const { port } of nodes.slice(1)) await operators[0]?.cluster('MEET', '127.0.0.1', port)
  for (const operator of operators) {
    for (;;) {
      const info = await operator.cluster('INFO')
      if (info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${primaries}`)) break
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')
  return {
    url: `redis://${hosts}?cluster=true`,
    nodes,
    operators,
    async remove() {
      for (const operator of operators) operator.disconnect()
      await Promise.all(nodes.map((node) => node.remove()))
    },
  }
}
