import { isEnded, messageId } from '@impresario/core'
import type { Storage } from '@impresario/core'
import type { Version } from '../chronicle.ts'
import type { Finding } from './finding.ts'

/**
 * [H-07] A client that gave a webhook is notified of the end: its message is in the outbox, which is never emptied
 * here.
 */
export async function told(stored: readonly Version[], storage: Pick<Storage, 'peek'>): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const { id, job } of stored) {
    if (!isEnded(job) || job.webhookUrl === undefined) continue
    const [message] = await storage.peek('outbox', [messageId(id, job.visit, job.status)])
    if (message !== undefined) continue
    findings.push({ rule: 'told', problem: `${id} is ${job.status}, and no message to its webhook says so` })
  }
  return findings
}
