import { storedCopy } from '@impresario/core'
import type { Desk, Receipt } from '@impresario/engine'
import { LIMITS, readUsage } from '@impresario/protocol'
import type { EventRequest } from '@impresario/protocol'

/** Takes an event in which a worker says what its task has used; or says what is wrong with it. */
export async function takeUsage(desk: Desk, workerId: string, event: EventRequest): Promise<Receipt | string> {
  const taskId = event.target_task_id ?? event.origin_task_id
  const { event_id: eventId } = event
  if (typeof taskId !== 'string') return 'Usage needs the task in target_task_id.'
  if (typeof eventId !== 'string' || eventId === '' || eventId.length > LIMITS.identifierCharsMax) {
    return `Usage needs an event_id of 1 to ${LIMITS.identifierCharsMax} characters, so that it counts once.`
  }
  const usage = readUsage(storedCopy(event.payload ?? {}))
  return typeof usage === 'string' ? usage : desk.meter(workerId, taskId, { usage, eventId })
}
